package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// generate makes a random valid history of about n operations.
func generate(r *rand.Rand, n int) *History {
	workers := 1 + r.IntN(5)
	h := &History{Header: generateHeader(r, workers)}
	now := make([]time.Duration, 2*workers+1)
	number, open, acquires, stores := make([]ID, len(now)), make([]bool, len(now)), []Op(nil), []Op(nil)
	for range n {
		lane := r.IntN(len(now))
		if open[lane] {
			continue
		}
		now[lane] += time.Duration(r.IntN(5_000_000))
		number[lane]++
		op := Op{
			ID: ID(lane+1)<<idLaneShift | number[lane], Worker: int32(lane / 2), Key: int32(r.IntN(h.Keys+1) - 1),
			Process: int16(r.IntN(h.Processes)), Call: now[lane], Value: r.Int64N(1000) - 1,
			Outcome: Outcome(r.IntN(3)),
			Token:   r.Uint64() >> r.IntN(64), Reason: Reason(r.IntN(len(reasons))), Woken: Wake(r.IntN(len(wakes))),
		}
		op.Due = max(0, op.Call-time.Duration(r.IntN(1000)))
		now[lane] += time.Duration(r.IntN(3)) * time.Microsecond
		op.Return = now[lane]
		if lane == 2*workers {
			op.Worker, op.Kind, op.Value = -1, Fault+Kind(r.IntN(2)), int64(r.IntN(2))
			if r.IntN(2) == 0 {
				h.note(op.ID, fmt.Sprintf("a \"note\"\n%d \u00e9 \\", r.IntN(10)))
			}
		} else if op.Kind = Acquire + Kind(r.IntN(int(Store))); op.Kind > Store {
			op.Kind = End
		}
		if r.IntN(20) == 0 {
			op.Return, op.Outcome, open[lane] = Forever, Unknown, true
		}
		if op.Kind == Acquire || op.Kind == Extend {
			generateLease(r, &op)
		}
		if op.Kind == Acquire && r.IntN(4) > 0 {
			op.Hold = op.ID
		} else if len(acquires) > 0 && r.IntN(2) == 0 {
			if a := acquires[r.IntN(len(acquires))]; a.Call <= op.Call {
				op.Hold, op.Key = a.ID, a.Key
			}
		}
		if (op.Kind == Load || op.Kind == Store) && len(stores) > 0 {
			if s := stores[r.IntN(len(stores))]; s.Call <= op.Return && (s.Key == op.Key || s.Key < 0) {
				op.Seen = s.ID
			}
		}
		switch h.Ops = append(h.Ops, op); op.Kind {
		case Acquire:
			acquires = append(acquires, op)
		case Store:
			stores = append(stores, op)
		}
	}
	if r.IntN(3) == 0 {
		h.Partial, h.Allowed = "interrupted", true
	}
	sortOps(h.Ops, nil)
	return h
}

func generateLease(r *rand.Rand, op *Op) {
	if op.Kind == Acquire && r.IntN(3) == 0 {
		op.Permits = uint16(r.IntN(1 << 16))
	}
	op.TTL, op.Fence = time.Duration(r.IntN(1e9)), r.Int64()-r.Int64()
	op.Until = [...]time.Duration{0, Forever, op.Call + op.TTL}[r.IntN(3)]
}

func generateHeader(r *rand.Rand, workers int) Header {
	var doubts []Doubt
	if r.IntN(2) == 0 {
		doubts = []Doubt{{Own: 40}, {1, 20, time.Hour}, {1, 10, 30}, {}}
	}
	return Header{
		Name: "generated", Started: time.Date(2024, 2, 29, 12, 0, 0, r.IntN(1e9), time.UTC),
		Command:  `verify --x "<&>"`,
		Topology: "single", Lock: "lease", Workers: workers, Processes: 1 + r.IntN(3), Keys: 1 + r.IntN(3),
		Retry: time.Duration(r.IntN(1e9)), Wait: Forever, Claims: Claims{Excludes: true, Fences: r.IntN(2) == 0},
		Bounds: Bounds{Agreement: Agreement{100, doubts}, Rate: r.Float64() / 2, Round: time.Millisecond},
		Faults: []Injection{{Name: "kill-primary", At: "2s", From: 2e9, To: 5e9,
			Effect: Effect{Hits: []Party{Servers, Links}, Loses: LosesWrites, Blocks: true, Spares: true}},
			{Name: "flush", At: "@granted", Node: "a\u2028b"},
			{Name: "kill-node", ByHand: true, Effect: Effect{Hits: []Party{Servers}, Loses: LosesKeys}}},
	}
}

func (h *History) note(id ID, text string) {
	if h.Notes == nil {
		h.Notes = map[ID]string{}
	}
	h.Notes[id] = text
}

func equal(t *testing.T, got, want *History) {
	t.Helper()
	if !slices.Equal(got.Ops, want.Ops) {
		for i := range want.Ops {
			if i >= len(got.Ops) || got.Ops[i] != want.Ops[i] {
				t.Fatalf("%d operations, want %d; number %d:\ngot  %+v\nwant %+v", len(got.Ops), len(want.Ops), i,
					got.Ops[min(i, len(got.Ops)-1)], want.Ops[i])
			}
		}
		t.Fatalf("got %d operations, want %d", len(got.Ops), len(want.Ops))
	}
	if !reflect.DeepEqual(got.Header, want.Header) {
		t.Fatalf("header:\ngot  %+v\nwant %+v", got.Header, want.Header)
	}
	if got.Partial != want.Partial || got.Allowed != want.Allowed || !maps.Equal(got.Notes, want.Notes) {
		t.Fatalf("got %q %v, want %q %v", got.Partial, got.Notes, want.Partial, want.Notes)
	}
}

func write(w io.Writer, h *History) error {
	planned := h.Header
	planned.Faults = slices.DeleteFunc(slices.Clone(h.Faults), func(i Injection) bool { return i.ByHand })
	f, err := Create(w, planned)
	if err != nil {
		return err
	}
	for _, i := range h.Faults[len(planned.Faults):] {
		if err := f.Inject(i); err != nil {
			return err
		}
	}
	for i := range h.Ops {
		if err := f.Add(&h.Ops[i]); err != nil {
			return err
		}
		if note, ok := h.Notes[h.Ops[i].ID]; ok {
			if err := f.Note(h.Ops[i].ID, note); err != nil {
				return err
			}
		}
	}
	f.Allowed = h.Allowed
	return f.Close(h.Partial)
}

func readJSONL(r io.Reader) (*History, error) { return readLines(buffered(r)) }

func readFile(r io.Reader) (*History, error) { return readNative(buffered(r)) }

type format struct {
	write func(io.Writer, *History) error
	read  func(io.Reader) (*History, error)
}

var formats = map[string]format{"native": {write, readFile}, "lines": {WriteJSONL, readJSONL},
	"native by magic": {write, readAny},
	"lines by magic":  {WriteJSONL, readAny}}

func TestHistoriesRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range many(400) {
		h := generate(r, r.IntN(300))
		if i == 0 {
			h = generate(r, 20_000) // many chunks
		}
		if err := h.Validate(); err != nil {
			t.Fatalf("generated an invalid history: %v", err)
		}
		for name, f := range formats {
			var b bytes.Buffer
			if err := f.write(&b, h); err != nil {
				t.Fatal(name, err)
			}
			got, err := f.read(&b)
			if err != nil {
				t.Fatal(name, err)
			}
			equal(t, got, h)
		}
	}
}

// wild makes an operation with senseless values in all fields.
func wild(r *rand.Rand) Op {
	n := func() int64 { return int64(r.Uint64() >> r.IntN(64) * uint64(r.IntN(2))) }
	d := func() time.Duration {
		return [...]time.Duration{Forever, time.Duration(n()), 0, -Forever - 1}[r.IntN(4)]
	}
	return Op{ID: ID(n()), Hold: ID(n()), Seen: ID(n()), Token: uint64(n()), Fence: -n(), Value: n(), Due: d(),
		Call: d(), Return: d(),
		Until: d(), TTL: d(), Worker: int32(n()), Key: int32(n()), Process: int16(n()), Kind: Kind(n()),
		Outcome: Outcome(n()),
		Reason:  Reason(n()), Woken: Wake(n()), Permits: uint16(n())}
}

// many is the number of cases to try: all in make test-full, a part in make test, which is -short.
func many(all int) int {
	if testing.Short() {
		return all / 20
	}
	return all
}

func TestRecordKeepsEverything(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	b := make([]byte, 3*recordMax)
	for range many(200_000) {
		op, prev := wild(r), time.Duration(r.Uint64())
		var got Op
		end := putRecord(b, 7, &op, prev)
		next, ok := record(b, 7, &got, prev)
		if !ok || next != end || got != op {
			t.Fatalf("%v %d, want %d\ngot  %+v\nwant %+v", ok, next, end, got, op)
		}
	}
}

func TestRecordRefusesImpossibleLengths(t *testing.T) {
	b := make([]byte, recordMax+recordSlack)
	for field := range 16 {
		for size := range 16 {
			clear(b)
			b[field/2] = byte(size << (4 * (field % 2)))
			var op Op
			_, ok := record(b, 0, &op, 0)
			if want := size <= 8 && field < 15 || size < 8; ok != want {
				t.Errorf("length %d of field %d: accepted %v, want %v", size, field, ok, want)
			}
		}
	}
}

func TestOperationRoundTripsAsJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range many(20_000) {
		op := wild(r)
		op.Kind, op.Outcome, op.Reason, op.Woken = 1+op.Kind%13, op.Outcome%3, op.Reason%15, op.Woken%4
		for _, id := range []*ID{&op.ID, &op.Hold, &op.Seen} {
			if id.Lane() < 0 || id.Number() == 0 {
				*id = 0
			}
		}
		b, err := json.Marshal(op)
		if err != nil {
			t.Fatal(err)
		}
		var got Op
		if err := json.Unmarshal(b, &got); err != nil || got != op {
			t.Fatalf("%s: %v\ngot  %+v\nwant %+v", b, err, got, op)
		}
	}
}

// TestEveryTruncationIsNoticed cuts files at every byte, with -short at some of them.
func TestEveryTruncationIsNoticed(t *testing.T) {
	h := generate(rand.New(rand.NewPCG(4, 4)), 60)
	h.Partial = ""
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := f.write(&b, h); err != nil {
				t.Fatal(err)
			}
			partial := 0
			for n := 0; n < b.Len(); n += b.Len() / many(b.Len()) {
				got, err := f.read(bytes.NewReader(b.Bytes()[:n]))
				if n == b.Len()-1 && strings.HasPrefix(name, "lines") && err == nil && got.Partial == "" {
					continue // only the last line feed is missing
				}
				noticed(t, fmt.Sprint(n), h, got, err)
				if err == nil {
					partial++
				}
			}
			if partial == 0 {
				t.Error("no truncated file could be read")
			}
		})
	}
}

// noticed expects an error with a position, or a partial history that is the beginning of the whole one.
func noticed(t *testing.T, where string, whole, got *History, err error) {
	t.Helper()
	var wrong *formatError
	switch {
	case errors.As(err, &wrong):
		if wrong.Offset < 0 || wrong.Line < 0 || wrong.What == "" {
			t.Fatalf("%s: %+v", where, wrong)
		}
	case err != nil:
		t.Fatalf("%s: an error without a position: %v", where, err)
	case got.Partial == "":
		t.Fatalf("%s: was accepted as whole", where)
	case len(got.Ops) > len(whole.Ops) || !slices.Equal(got.Ops, whole.Ops[:len(got.Ops)]):
		t.Fatalf("%s: what was read is not the beginning of what was written", where)
	}
}

// chunked writes a history as a run does: a chunk every few operations.
func chunked(t testing.TB, h *History, every int) []byte {
	var b bytes.Buffer
	w, err := Create(&b, h.Header)
	for i := range h.Ops {
		err = errors.Join(err, w.Add(&h.Ops[i]))
		if note, ok := h.Notes[h.Ops[i].ID]; ok {
			err = errors.Join(err, w.Note(h.Ops[i].ID, note))
		}
		if i%every == every-1 {
			err = errors.Join(err, w.Flush())
		}
	}
	if err = errors.Join(err, w.Close(h.Partial)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestEveryCorruptionIsNoticed flips every bit of every byte of a file, and zeroes every byte; with -short of some.
func TestEveryCorruptionIsNoticed(t *testing.T) {
	h := generate(rand.New(rand.NewPCG(5, 5)), 25)
	h.Partial, h.Faults, h.Command = "", h.Faults[:1], ""
	for i := range h.Ops {
		if h.Ops[i].Kind == Fault || h.Ops[i].Kind == Heal {
			h.Ops[i].Value = 0
		}
	}
	file := chunked(t, h, 6)
	whole, err := readFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, whole, h)
	last := bytes.LastIndex(file, []byte(marker))
	for i := 0; i < len(file); i += len(file) / many(len(file)) {
		for bit := range 9 {
			bad := slices.Clone(file)
			if bad[i] ^= 1 << bit; bit == 8 {
				bad[i] = 0
			}
			if bad[i] == file[i] {
				continue
			}
			got, err := readFile(bytes.NewReader(bad))
			where := fmt.Sprintf("byte %d of %d, bit %d", i, len(file), bit)
			noticed(t, where, h, got, err)
			if (err == nil) != (i >= last) {
				t.Fatalf("%s: got %v; only the last chunk, at %d, may look torn", where, err, last)
			}
		}
	}
}

func TestChunksOutOfPlaceAreErrors(t *testing.T) {
	h := generate(rand.New(rand.NewPCG(6, 6)), 40)
	file := chunked(t, h, 10)
	pieces := bytes.Split(file, []byte(marker))
	n := len(pieces) - 1
	join := func(order ...int) []byte {
		b := []byte(magic)
		for _, i := range order {
			b = append(append(b, marker...), pieces[i+1]...)
		}
		return b
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	for name, file := range map[string][]byte{
		"missing":  join(append([]int{0, 1}, all[3:]...)...),
		"twice":    join(append([]int{0, 1, 1}, all[2:]...)...),
		"swapped":  join(append([]int{0, 2, 1}, all[3:]...)...),
		"headless": join(all[1:]...),
		"two ends": join(append(all, n-1)...),
		"behind":   append(join(all...), 0),
		"version":  []byte("\x89hist\r\n\x02"),
		"magic":    []byte("\x89hist\n\x01aaaaaaaa"),
		"empty":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readFile(bytes.NewReader(file))
			var wrong *formatError
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v, want a FormatError", err)
			}
			t.Log(err)
		})
	}
}

func TestOpenNamesTheFile(t *testing.T) {
	h := generate(rand.New(rand.NewPCG(7, 7)), 40)
	path := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(path, chunked(t, h, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, h)
	if err := os.WriteFile(path, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path+": line 1: ") {
		t.Errorf("got %v", err)
	}
}
