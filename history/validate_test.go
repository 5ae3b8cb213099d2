package history

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const lane0 = ID(1) << idLaneShift

// small is a valid history: worker 0 is granted, loads, stores and releases; worker 1 reads the stored value.
func small() *History {
	return &History{
		Header: Header{Workers: 2, Keys: 1, Processes: 1, Faults: []Injection{{Name: "flush"}}},
		Ops: []Op{
			{ID: lane0 | 1, Hold: lane0 | 1, Kind: Acquire, Outcome: OK, Call: 10, Return: 20, Until: 100, TTL: 90},
			{ID: lane0 | 2, Hold: lane0 | 1, Kind: Load, Outcome: OK, Call: 21, Return: 30},
			{ID: lane0 | 3, Hold: lane0 | 1, Kind: Store, Outcome: OK, Call: 31, Return: 40, Value: 1},
			{ID: lane0 | 4, Hold: lane0 | 1, Kind: Release, Outcome: OK, Call: 41, Return: 50},
			{ID: lane0 | 5, Kind: End, Outcome: OK, Call: 10, Return: 51},
			{ID: lane0<<1 | 1, Kind: Load, Outcome: OK, Worker: 1, Seen: lane0 | 3, Value: 1, Call: 45, Return: 60},
			{ID: lane0<<1 | 2, Kind: Acquire, Worker: 1, Call: 61, Return: Forever},
		},
		Notes: map[ID]string{lane0 | 1: "noted"},
	}
}

var nonsense = map[string]struct {
	spoil func(h *History)
	want  string
}{
	"return before call": {func(h *History) {
		h.Ops[1].Call = 31
	}, "operation 1 (0.2): returned at 30ns, before its call at 31ns"},
	"duplicate id": {func(h *History) {
		h.Ops[6].ID = h.Ops[5].ID
	}, "operation 6 (1.1): its id was used before"},
	"one call for two pages with two outcomes": {func(h *History) {
		h.Workers, h.Callers, h.Keys = 2, 1, 2
		h.Ops[6] = Op{ID: lane0<<1 | 2, Kind: Acquire, Outcome: OK, Worker: 1, Key: 1, Call: 61, Return: 70}
		h.Ops = append(h.Ops, Op{ID: lane0 | 6, Kind: Acquire, Outcome: Failed, Reason: Busy, Call: 61, Return: 71})
	}, "operation 7 (0.6): is failed, and 1.2 of the same call for several pages is ok"},
	"no id":     {func(h *History) { h.Ops[5].ID = 0 }, "operation 5 (-): impossible id"},
	"no number": {func(h *History) { h.Ops[5].ID = lane0 << 1 }, "operation 5 (1.0): impossible id"},
	"huge number": {func(h *History) {
		h.Ops[6].ID = lane0 | 1<<39
	}, "operation 6 (0.549755813888): impossible id"},
	"huge lane": {func(h *History) {
		h.Ops[6].ID = lane0<<20 | 1
	}, "operation 6 (1048575.1): impossible id"},
	"negative call": {func(h *History) {
		h.Ops[0].Call = -1
	}, "operation 0 (0.1): was called at the negative time -1ns"},
	"negative due": {func(h *History) {
		h.Ops[0].Due = -1
	}, "operation 0 (0.1): was due at the negative time -1ns"},
	"negative return": {func(h *History) {
		h.Ops[0].Call, h.Ops[0].Return = -5, -1
	}, "returned at the negative time -1ns"},
	"negative until": {func(h *History) {
		h.Ops[0].Until = -1
	}, "operation 0 (0.1): holds until the negative time -1ns"},
	"negative ttl": {func(h *History) { h.Ops[0].TTL = -1 }, "operation 0 (0.1): negative TTL -1ns"},
	"never called": {func(h *History) { h.Ops[6].Call = Forever }, "operation 6 (1.2): was never called"},
	"until before call": {func(h *History) {
		h.Ops[0].Until = 9
	}, "operation 0 (0.1): holds until 9ns, before its call at 10ns"},
	"kind 0": {func(h *History) { h.Ops[4].Kind = 0 }, "operation 4 (0.5): unknown kind 0"},
	"kind": {func(h *History) {
		h.Ops[4].Kind = Kind(len(kinds))
	}, "operation 4 (0.5): unknown kind 18"},
	"outcome": {func(h *History) { h.Ops[4].Outcome = 3 }, "operation 4 (0.5): unknown outcome 3"},
	"reason":  {func(h *History) { h.Ops[4].Reason = 15 }, "operation 4 (0.5): unknown reason 15"},
	"wake":    {func(h *History) { h.Ops[4].Woken = 4 }, "operation 4 (0.5): unknown wake 4"},
	"overlap": {func(h *History) {
		h.Ops[2].Call = 29
	}, "operation 2 (0.3): is called at 29ns, while the one before in its lane returns at 30ns"},
	"after an open call": {func(h *History) {
		h.Ops[6].ID = lane0 | 6
		h.Ops[6].Call = 45
	}, "operation 6 (0.6): is called at 45ns, while"},
	"two open calls": {func(h *History) {
		op := h.Ops[6]
		op.ID++
		op.Call++
		h.Ops = append(h.Ops, op)
	}, "operation 7 (1.3): is called at 62ns, in a lane with a call that never returned"},
	"out of order": {func(h *History) {
		h.Ops[5], h.Ops[4] = h.Ops[4], h.Ops[5]
	}, "operation 5 (0.5): returns at 51ns, after one that returned at 60ns"},
	"hold of nothing": {func(h *History) {
		h.Ops[1].Hold = lane0 | 9
	}, "operation 1 (0.2): its hold 0.9 is not an acquire"},
	"hold of a load": {func(h *History) {
		h.Ops[2].Hold = lane0 | 2
	}, "operation 2 (0.3): its hold 0.2 is not an acquire"},
	"hold of itself": {func(h *History) {
		h.Ops[2].Hold = lane0 | 3
	}, "operation 2 (0.3): is its own hold but not an acquire"},
	"hold of another page": {func(h *History) {
		h.Keys, h.Ops[2].Hold, h.Ops[2].Key = 2, lane0|1, 1
	}, "operation 2 (0.3): is of page 1, its hold 0.1 is of page 0"},
	"before its hold": {func(h *History) {
		h.Ops[5].Hold, h.Ops[5].Call, h.Ops[0].Call = lane0|1, 0, 1
	}, "operation 5 (1.1): is called at 0s, before its hold 0.1 was asked for"},
	"seen the future": {func(h *History) {
		op := h.Ops[5]
		op.Call, op.Return = 22, 29
		h.Ops = slices.Insert(slices.Delete(h.Ops, 5, 6), 1, op)
	}, "operation 1 (1.1): returned at 29ns and has seen 0.3, which was called at 31ns"},
	"read before the end": {func(h *History) {
		h.Ops = slices.Insert(h.Ops, 2, Op{
			ID: lane0<<2 | 1, Kind: Final, Outcome: OK, Worker: -1, Call: 30, Return: 30,
		})
	}, "operation 2 (3.1): was read at 30ns, and a store was called at 31ns: that is not the end"},
	"seen nothing": {func(h *History) {
		h.Ops[5].Seen = lane0<<3 | 3
	}, "operation 5 (1.1): has seen 7.3, which is not a store"},
	"seen a load": {func(h *History) {
		h.Ops[5].Seen = lane0 | 2
	}, "operation 5 (1.1): has seen 0.2, which is not a store"},
	"worker":     {func(h *History) { h.Ops[5].Worker = 2 }, "operation 5 (1.1): worker 2 of 2"},
	"worker -2":  {func(h *History) { h.Ops[5].Worker = -2 }, "operation 5 (1.1): worker -2 of 2"},
	"key":        {func(h *History) { h.Ops[5].Key = 1 }, "operation 5 (1.1): key 1 of 1"},
	"process":    {func(h *History) { h.Ops[5].Process = 1 }, "operation 5 (1.1): process 1 of 1"},
	"process -1": {func(h *History) { h.Ops[5].Process = -1 }, "operation 5 (1.1): process -1 of 1"},
	"open and ok": {func(h *History) {
		h.Ops[6].Outcome = OK
	}, "operation 6 (1.2): never returned, but its outcome is ok"},
	"fault not planned": {func(h *History) {
		h.Ops[4].Kind, h.Ops[4].Value = Fault, 1
	}, "operation 4 (0.5): is fault 1 of 1, counted from 0"},
	"rate is no number": {func(h *History) {
		h.Bounds.Rate = math.NaN()
	}, "header: rate of the servers' clocks of NaN"},
	"rate is infinite": {func(h *History) {
		h.Bounds.Rate = math.Inf(1)
	}, "header: rate of the servers' clocks of +Inf"},
	"sites": {func(h *History) { h.Sites = -1 }, "header: -1 sites"},
	"nodes": {func(h *History) { h.Nodes = 1 << 20 }, "header: 1048576 nodes"},
	"slack": {func(h *History) {
		h.Bounds.Slack = 3 * MaxDoubt
	}, "header: slack of the clocks of 3000h0m0s"},
	"doubts": {func(h *History) {
		h.Bounds.Doubts = []Doubt{{Offset: -1}}
	}, "header: impossible doubt of the clock of process 0: machine 0, 0s and -1ns"},
	"too few doubts": {func(h *History) {
		h.Processes, h.Bounds.Doubts = 2, []Doubt{{}}
	}, "header: what is known of 1 clocks of 2 processes"},
	"round":   {func(h *History) { h.Bounds.Round = -1 }, "header: rounding of the servers' clocks of -1ns"},
	"workers": {func(h *History) { h.Workers = -1 }, "header: -1 workers"},
	"retry":   {func(h *History) { h.Retry = -1 }, "header: retry of -1ns"},
	"a negative fault": {func(h *History) {
		h.Ops[4].Kind, h.Ops[4].Value = Fault, -1
	}, "operation 4 (0.5): is fault -1 of 1, counted from 0"},
	"hits an unknown party": {func(h *History) { h.Faults[0].Effect.Hits = []Party{Servers, "disks"} },
		`header: fault 0, flush, hits "disks"; there is servers, clocks, links, clients, holders, nobody`},
	"loses who knows what": {func(h *History) {
		h.Faults[0].Effect.Loses = "sleep"
	}, `header: fault 0, flush, loses "sleep"; there is keys, writes, time`},
	"fault ends too early": {func(h *History) {
		h.Faults[0].From, h.Faults[0].To = 2, 1
	}, "header: fault 0, flush, is from 2ns to 1ns"},
	"permits of a load": {func(h *History) { h.Ops[1].Permits = 1 }, "operation 1 (0.2): asks for 1 permits of 0"},
	"too many permits": {func(h *History) {
		h.Claims.Permits, h.Ops[0].Permits = 2, 3
	}, "operation 0 (0.1): asks for 3 permits of 2"},
	"permits": {func(h *History) { h.Claims.Permits = -1 }, "header: -1 permits"},
	"upgrade of nothing": {func(h *History) {
		h.Ops[6].Seen = lane0 | 9
	}, "takes the place of 0.9, which is not a shared hold"},
	"upgrade of a writer": {func(h *History) {
		h.Ops[6].Seen = lane0 | 1
	}, "takes the place of 0.1, which is not a shared hold"},
	"upgrade of another's": {func(h *History) {
		h.Ops[0].Permits, h.Ops[6].Seen = 1, lane0|1
	}, "takes the place of 0.1, which is another worker's"},
	"note on nothing": {func(h *History) { h.Notes[lane0|99] = "?" }, "header: a note on 0.99, which is not there"},
}

func TestValidateFindsNonsense(t *testing.T) {
	if err := small().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range nonsense {
		t.Run(name, func(t *testing.T) {
			h := small()
			c.spoil(h)
			err := h.Validate()
			var problems problemList
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestPartialHistoryMayHaveLostWhatItNames(t *testing.T) {
	h := small()
	h.Ops = h.Ops[3:] // an acquire and a store are missing
	if h.Notes = nil; h.Validate() == nil {
		t.Error("a whole history without its acquire is valid")
	}
	if h.Partial = "killed"; h.Validate() != nil {
		t.Error(h.Validate())
	}
	if h.Ops[0].Hold = lane0; h.Validate() == nil {
		t.Error("a hold that no lane can have named was only lost")
	}
}

func TestValidateTellsTenProblems(t *testing.T) {
	h := small()
	for range 100 {
		h.Ops = append(h.Ops, Op{})
	}
	var problems problemList
	if err := h.Validate(); !errors.As(err, &problems) || len(problems) != 10 {
		t.Errorf("got %v", err)
	}
}

// TestPlainAndExplainAgree: explain gives a reason exactly if an operation is not plain.
func TestPlainAndExplainAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	h := &History{Header: Header{Workers: 2, Keys: 2, Faults: make([]Injection, 2), Claims: Claims{Permits: 2}},
		Ops: make([]Op, 1)}
	n, fine := func(below int) int64 { return r.Int64N(int64(below)) - 1 + r.Int64N(2) }, 0
	operations := many(300_000)
	for range operations {
		h.Ops[0] = Op{
			Kind: Kind(max(0, n(14))), Outcome: Outcome(max(0, n(4))), Reason: Reason(max(0, n(16))),
			Woken: Wake(max(0, n(5))),
			Due:   time.Duration(n(9)), Call: time.Duration(n(9)), Return: time.Duration(n(20)),
			Until: time.Duration(n(20)),
			TTL:   time.Duration(n(9)), Worker: int32(n(3)), Key: int32(n(3)), Process: int16(n(2)), Value: n(3),
			Permits: uint16(max(0, n(4))),
		}
		if r.IntN(5) == 0 {
			h.Ops[0].Return = Forever
		}
		if r.IntN(50) == 0 {
			h.Ops[0].Call = Forever
		}
		v := validation{h: h}
		v.explain(0, &h.Ops[0])
		if plain(&h.Ops[0], &h.Header) != (len(v.problems) == 0) {
			t.Fatalf("%+v: %v", h.Ops[0], v.problems)
		}
		if len(v.problems) == 0 {
			fine++
		}
	}
	if fine < operations/300 {
		t.Errorf("only %d operations were plain", fine)
	}
}

const opening = `{"format":"hammerlock-history","version":1,"workers":2,"keys":1}` + "\n"

// aLoad is a line of a history.
const aLoad = `{"op":"load","id":"a","worker":0,"call_ns":1,"return_ns":2}` + "\n"

// judgedLines are wrong files, with the beginning of the error that names the wrong line.
var judgedLines = map[string]struct{ file, want string }{
	"empty":         {"", "line 1: the file is empty"},
	"blank":         {"\n\n", "line 1: the file is empty"},
	"no header":     {aLoad, "line 1: not the beginning of a history"},
	"other format":  {`{"format":"x"}`, `line 1: format "x", want "hammerlock-history"`},
	"other version": {`{"format":"hammerlock-history","version":2}`, "line 1: version 2 of the format"},
	"header field": {`{"format":"hammerlock-history","version":1,"worker":2}`, "line 1: not the beginning " +
		"of a history: json: unknown field"},
	"torn header": {`{"format":"hammerlock-hist`, "line 1: not the beginning of a history"},
	"field":       {opening + aLoad + `{"op":"load","ID":"b"}` + "\n", `line 3: "ID": unknown field "ID"`},
	"field twice": {opening + `{"op":"load","op":"load"}` + "\n", `line 2: "op": is given twice`},
	"kind":        {opening + `{"op":"lod"}` + "\n", `line 2: "op": "lod" is not one of skip acquire`},
	"kind ?":      {opening + `{"op":"?"}` + "\n", `line 2: "op": "?" is not one of skip acquire`},
	"reason":      {opening + `{"reason":"boredom"}` + "\n", `line 2: "reason": "boredom" is not one of`},
	"no worker":   {opening + `{"op":"load","id":"a","call_ns":1}` + "\n", `line 2: "worker" is missing`},
	"no id":       {opening + `{"op":"load","worker":0,"call_ns":1}` + "\n", `line 2: "id" is missing`},
	"empty id": {
		opening + `{"op":"load","id":"","worker":0,"call_ns":1}` + "\n", `line 2: "id": is empty`,
	},
	"number as id": {opening + `{"op":"load","id":7}` + "\n", `line 2: "id": must be a string`},
	"fraction":     {opening + `{"call_ns":1.5}` + "\n", `line 2: "call_ns": "1.5" is not a whole number`},
	"exponent":     {opening + `{"call_ns":1e3}` + "\n", `line 2: "call_ns": "1e3" is not a whole number`},
	"too great": {
		opening + `{"call_ns":9223372036854775808}` + "\n",
		`line 2: "call_ns": "9223372036854775808" is not a whole number`,
	},
	"worker too great":  {opening + `{"worker":4294967296}` + "\n", `line 2: "worker": 4294967296 is out of range`},
	"leading zero":      {opening + `{"worker":01}` + "\n", `line 2: "worker": "01" is not a whole number`},
	"nested":            {opening + `{"op":["load"]}` + "\n", `line 2: "op": '[' begins neither`},
	"null":              {opening + `{"op":null}` + "\n", `line 2: "op": 'n' begins neither`},
	"not an object":     {opening + "7\n", `line 2: '7' stands where '{' is expected`},
	"two objects":       {opening + aLoad[:len(aLoad)-1] + aLoad, "line 2: trailing data"},
	"torn in the midst": {opening + aLoad[:20] + "\n" + aLoad, "line 2: "},
	"not UTF-8":         {opening + "{\"op\":\"\xff\"}\n", "line 2: is not UTF-8"},
	"id twice":          {opening + aLoad + "\n" + aLoad, "line 4: the id of line 2 again"},
	"our id twice": {opening + strings.ReplaceAll(aLoad+aLoad, `"a"`, `"0.1"`), "line 3: operation 1 (0.1): " +
		"its id was used before"},
	"hold of nothing": {opening + strings.Replace(aLoad, `"a"`, `"a","hold":"b"`, 1) + `{"end":"complete"}`,
		"line 2: its hold, or what it has seen"},
	"end and count": {opening + aLoad + `{"end":"complete","ops":2}`, ""},
	"wrong count": {opening + aLoad + `{"end":"complete","ops":2}` + "\n", "line 3: the file has 1 operations, " +
		"and 2 by its end"},
	"after the end":    {opening + `{"end":"complete"}` + "\n" + aLoad, "line 3: the file goes on after its end"},
	"end without why":  {opening + `{"end":"partial"}` + "\n", "line 2: the end is"},
	"worker of header": {opening + strings.Replace(aLoad, `:0`, `:2`, 1), "line 2: operation 0 (0.1): worker 2 of 2"},
	"header is insane": {strings.Replace(opening, `"keys":1`, `"keys":-1`, 1), "line 1: -1 keys"},
	"sorted": {opening + `{"op":"load","id":"b","worker":1,"call_ns":1,"return_ns":9}` + "\n" +
		strings.Replace(aLoad, `:2}`, `:0}`, 1) + `{"end":"complete"}` + "\n",
		"line 3: operation 0 (1.1): returned at 0s, before its call"},
	"torn and not sorted": {opening + `{"op":"load","id":"b","worker":1,"call_ns":1,"return_ns":9}` + "\n" + aLoad,
		"line 4: the end is missing, and the lines are not"},
	"long": {opening + strings.Repeat(" ", maxLine), "line 2: is longer than"},
}

func TestLinesAreJudgedByLine(t *testing.T) {
	for name, c := range judgedLines {
		t.Run(name, func(t *testing.T) {
			h, err := readJSONL(strings.NewReader(c.file))
			if c.want == "" {
				if err != nil || h.Partial == "" {
					t.Errorf("got %v, want a partial history", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestForeignIDs reads a history with ids of another system.
func TestForeignIDs(t *testing.T) {
	h, err := readJSONL(strings.NewReader(opening +
		` { "op" : "store", "id": "1.1", "worker": 1, "key": 0, "call_ns": 50, "return_ns": 60, "hold":"\u0041 1", ` +
		`"seen":"s" }
{"op":"store","id":"s","worker":0,"key":0,"call_ns":20,"return_ns":30,"value":7,"hold":"held"}
{"op":"acquire","id":"held","worker":0,"key":0,"call_ns":0,"return_ns":10,"outcome":"ok","token":"secret",` +
		`"until_ns":"forever","note":"first"}
{"op":"extend","id":"x","worker":0,"key":0,"call_ns":5,"return_ns":25,"hold":"held"}

{"op":"acquire","id":"A 1","worker":1,"key":0,"call_ns":40,"return_ns":45,"token":"0xff"}
{"op":"acquire","id":"open","worker":0,"call_ns":70}
{"end":"complete"}`))
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, op := range h.Ops {
		names += op.ID.String() + " " + op.Hold.String() + " " + op.Seen.String() + ", "
	}
	if want := "1.2 - -, 2.1 1.2 -, 1.1 1.2 -, 0.2 - -, 0.1 0.2 1.1, 1.3 - -, "; names != want {
		t.Errorf("got  %s\nwant %s", names, want)
	}
	first, open := h.Ops[0], h.Ops[5]
	if first.Token != Hash("secret") || first.Until != Forever || h.Notes[first.ID] != "first" ||
		h.Ops[3].Token != 255 {
		t.Errorf("got %+v, %v", first, h.Notes)
	}
	if open.Return != Forever || open.Key != -1 || h.Partial != "" {
		t.Errorf("got %+v, %q", open, h.Partial)
	}
	var b bytes.Buffer
	if err := WriteJSONL(&b, h); err != nil {
		t.Fatal(err)
	}
	again, err := readJSONL(&b)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, again, h)
}

// TestSparseIDsAreForeign: sparse ids in our form must not take memory by their size.
func TestSparseIDsAreForeign(t *testing.T) {
	h, err := readJSONL(strings.NewReader(opening +
		`{"op":"load","id":"20240101.1099511627775","worker":0,"call_ns":1,"return_ns":2}
{"end":"complete"}`))
	if err != nil || h.Ops[0].ID != lane0|1 {
		t.Errorf("got %+v, %v", h, err)
	}
}

// TestFormatExample reads the example of FORMAT.md.
func TestFormatExample(t *testing.T) {
	doc, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(doc), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	h, err := readJSONL(strings.NewReader(example))
	if err != nil || len(h.Ops) != 5 || h.Partial != "" {
		t.Fatalf("got %+v, %v", h, err)
	}
	for name := range fields {
		if !strings.Contains(string(doc), "| `"+name+"` |") {
			t.Errorf("FORMAT.md does not have the field %s", name)
		}
	}
	for _, names := range [][]string{kinds[1:], outcomes[:], reasons[1:], wakes[:]} {
		for _, name := range names {
			if !strings.Contains(string(doc), "`"+name+"`") {
				t.Errorf("FORMAT.md does not have the name %s", name)
			}
		}
	}
}
