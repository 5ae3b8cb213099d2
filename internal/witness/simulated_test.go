package witness

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/wire"
)

const (
	simulatedLease = 60 * time.Millisecond
	freeScript     = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
)

// world is a simulated server with locks. A Reader learns of its actions late and out of order.
type world struct {
	*rand.Rand
	epoch    time.Time
	told     []telling
	effects  time.Duration // time at which the last effect was read
	executed time.Duration // time at which the last command was executed
	tx       int64
	number   int64
	plain    bool // a release is a DEL, even of another client's lock
	same     bool // all clients write the same token
	late     float64
	lost     float64 // share of the replies that are lost

	owner  string
	holder int // worker that wrote the key
	until  time.Duration

	grants   map[string]bool // token -> it was granted
	answered map[string]bool // token -> its grant was answered
	freed    map[string]bool // token of the client -> a release that deleted something was answered
	foreign  int

	soFar *history.History // the history that was read before everything was known
}

// telling is an event for the sink.
type telling struct {
	at time.Duration
	do func(*Reader)
}

func (w *world) ms(at time.Duration) int64 { return w.epoch.Add(at).UnixMilli() }

// effect makes an effect, which is read some time after its execution, and never before the previous effect.
func (w *world) effect(at time.Duration, commands ...[]string) {
	w.effects = max(w.effects+1, at+time.Duration(w.ExpFloat64()*float64(3*time.Millisecond)))
	tx := int64(0)
	if len(commands) > 1 {
		w.tx++
		tx = w.tx
	}
	for _, args := range commands {
		e := &wire.Effect{At: w.effects, Args: args, Tx: tx}
		w.told = append(w.told, telling{w.effects, func(r *Reader) { r.Effect(e) }})
		w.effects++
	}
}

// lapse deletes a key whose lease has ended, when a client accesses it.
func (w *world) lapse(at time.Duration) bool {
	if w.owner != "" && w.ms(at) > w.ms(w.until) {
		w.owner = ""
		return true
	}
	return false
}

// request makes a request of a worker, which is executed between its call and its return. It returns the time of the
// reply, and the reply.
func (w *world) request(worker int, at time.Duration, execute func(at time.Duration) wire.Reply,
	args ...string) (time.Duration, wire.Reply) {
	delay := func() time.Duration { return 1 + time.Duration(w.ExpFloat64()*float64(400*time.Microsecond)) }
	w.number++
	q := &wire.Request{Conn: int64(worker + 1), Number: w.number, Args: args, Call: at}
	w.told = append(w.told, telling{at, func(r *Reader) { r.Sent(q) }})
	w.executed = max(w.executed+1, at+delay())
	executed := w.executed
	reply := execute(executed)
	end := executed + delay()
	if w.Float64() < w.lost {
		w.told = append(w.told, telling{end, func(r *Reader) {
			q.Return, q.Lost = history.Forever, true
			r.Request(q)
		}})
		return end, wire.Reply{}
	}
	w.told = append(w.told, telling{end, func(r *Reader) { q.Return, q.Reply = end, reply; r.Request(q) }})
	return end, reply
}

func (w *world) try(worker int, token string, at time.Duration) (time.Duration, bool) {
	ttl := strconv.FormatInt(simulatedLease.Milliseconds(), 10)
	end, reply := w.request(worker, at, func(at time.Duration) wire.Reply {
		over := w.lapse(at)
		if w.owner != "" {
			return wire.Reply{Kind: wire.Nil}
		}
		w.owner, w.holder, w.until = token, worker, at+simulatedLease
		w.grants[token] = true
		set := []string{"SET", "lock:1", token, "PXAT", strconv.FormatInt(w.ms(w.until), 10)}
		if over {
			w.effect(at, []string{"DEL", "lock:1"}, set)
		} else {
			w.effect(at, set)
		}
		return wire.Reply{Kind: wire.Simple, Text: "OK"}
	}, "SET", "lock:1", token, "NX", "PX", ttl)
	if reply.Kind == wire.Simple {
		w.answered[token] = true
	}
	return end, reply.Kind == wire.Simple
}

func (w *world) free(worker int, token string, at time.Duration) time.Duration {
	args := []string{"EVAL", freeScript, "1", "lock:1", token}
	if w.plain {
		args = []string{"DEL", "lock:1"}
	}
	end, reply := w.request(worker, at, func(at time.Duration) wire.Reply {
		if w.lapse(at) {
			w.effect(at, []string{"DEL", "lock:1"})
		}
		if w.owner == "" || !w.plain && w.owner != token {
			return wire.Reply{Kind: wire.Integer}
		}
		if w.holder != worker {
			w.foreign++
		}
		w.owner = ""
		w.effect(at, []string{"DEL", "lock:1"})
		return wire.Reply{Kind: wire.Integer, Int: 1}
	}, args...)
	if reply.Int == 1 {
		w.freed[token] = true
	}
	return end
}

// run lets workers visit. The worker whose turn is next comes first.
func (w *world) run(workers, visits int) {
	type worker struct {
		at    time.Duration
		token string
		held  bool
		left  int
	}
	all := make([]worker, workers)
	for i := range all {
		all[i].at, all[i].left = time.Duration(w.IntN(1000))*time.Microsecond+1, visits
	}
	for n := 0; ; n++ {
		i := -1
		for k := range all {
			if all[k].left > 0 && (i < 0 || all[k].at < all[i].at) {
				i = k
			}
		}
		if i < 0 {
			return
		}
		switch x := &all[i]; {
		case x.held:
			x.at, x.held, x.token = w.free(i, x.token, x.at)+time.Duration(w.IntN(500))*time.Microsecond, false, ""
			x.left--
		default:
			if x.token == "" {
				x.token = fmt.Sprintf("token-%d-%d", i, n)
				if w.same {
					x.token = "1"
				}
			}
			if x.at, x.held = w.try(i, x.token, x.at); !x.held {
				x.at += time.Duration(w.IntN(3000)) * time.Microsecond
				break
			}
			x.at += time.Duration(w.IntN(2000)) * time.Microsecond
			if w.Float64() < w.late {
				x.at += simulatedLease
			}
		}
	}
}

// read passes everything to a Reader, and returns its history.
func (w *world) read(o Options) (*Reader, *history.History) {
	slices.SortStableFunc(w.told, func(a, b telling) int { return cmp.Compare(a.at, b.at) })
	o.Locks, o.Most, o.Epoch = []string{"lock:*"}, cmp.Or(o.Most, 1<<20), w.epoch
	r := NewReader(o)
	r.Event(wire.Event{Kind: wire.TapBegan})
	next := time.Duration(0)
	for _, t := range w.told {
		for ; next < t.at; next += 20 * time.Millisecond {
			r.Tick(next)
		}
		t.do(r)
	}
	head := history.Header{Bounds: history.Bounds{Rate: Rate, Round: Round},
		NotAbout: []string{history.Liveness, history.Fairness, history.Updates}}
	w.soFar = r.SoFar(&history.History{Header: head})
	return r, r.History(&history.History{Header: head}, true)
}

func newWorld(seed uint64) *world {
	return &world{
		Rand: rand.New(rand.NewPCG(seed, 7)), epoch: time.UnixMilli(1_700_000_000_000), grants: map[string]bool{},
		answered: map[string]bool{}, freed: map[string]bool{},
	}
}

// failed returns the causes of the failed verdicts.
func failed(t *testing.T, h *history.History) (causes []string) {
	t.Helper()
	verdicts, err := checker.JudgeHistory(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Status == checker.Fail {
			causes = append(causes, v.Checker+": "+v.Cause)
		}
	}
	return causes
}

// TestSimulatedLocks compares the holds that were read with those that a simulated server granted, even if effects
// were read late. It also compares the verdict with the actions of the clients: no right lock is accused, and a
// foreign release is named.
func TestSimulatedLocks(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 40
	}
	caught, wrong := 0, 0
	for seed := range seeds {
		w := newWorld(seed)
		w.plain, w.same = seed%3 == 1, seed%6 == 4
		w.late = []float64{0, 0.05, 0.2}[seed%3]
		if seed%5 == 0 && !w.plain {
			w.lost = 0.02
		}
		w.run(2+int(seed%5), 25)
		r, h := w.read(Options{Holder: Holder{By: Auto}})
		if !w.same {
			w.compare(t, seed, h)
		}
		if r.Ambiguous+r.Outsiders > 0 && w.lost == 0 {
			t.Errorf("seed %d: %d ambiguous, %d of unseen clients: each connection has one holder, "+
				"and all of them were seen", seed, r.Ambiguous, r.Outsiders)
		}
		causes := failed(t, h)
		if before := failed(t, w.soFar); w.foreign == 0 && w.lost == 0 && len(before) > 0 {
			t.Errorf("seed %d: a right run is accused by what was read so far: %v", seed, before)
		}
		switch {
		case w.lost > 0 && slices.Equal(causes, []string{"exclusion: phantom"}): // its clients really repeat a SET NX
		case w.foreign == 0 && len(causes) > 0:
			t.Errorf("seed %d: a right run is accused: %v", seed, causes)
		case w.foreign > 0:
			wrong++
			if slices.ContainsFunc(causes, func(c string) bool {
				return c == "exclusion: foreign-release" || c == "release: false-release" ||
					c == "lease-validity: foreign-release"
			}) {
				caught++
			} else if len(causes) > 0 {
				t.Logf("seed %d: %d foreign releases: %v", seed, w.foreign, causes)
			}
		}
	}
	t.Logf("%d of %d runs with foreign releases are named so", caught, wrong)
	if caught*10 < wrong*9 {
		t.Errorf("%d of %d runs with foreign releases are named so", caught, wrong)
	}
}

// compare checks each grant and release.
func (w *world) compare(t *testing.T, seed uint64, h *history.History) {
	t.Helper()
	tokens := map[uint64]string{}
	for token := range w.grants {
		tokens[history.Hash(token)] = token
		tokens[history.Hash(token+"#2")] = token // a second grant, after the first had no reply and was over
	}
	granted, freed := map[string]bool{}, map[string]bool{}
	for _, op := range h.Ops {
		token := tokens[op.Token]
		switch {
		case op.Kind == history.Acquire && op.Outcome == history.OK:
			if granted[token] && w.lost == 0 || !w.answered[token] {
				t.Errorf("seed %d: %q was granted: twice %v, answered %v", seed, token, granted[token],
					w.answered[token])
			}
			granted[token] = true
		case op.Kind == history.Release && op.Outcome == history.OK:
			freed[token] = true
			if !w.freed[token] {
				t.Errorf("seed %d: the release of %q was invented", seed, token)
			}
		}
	}
	if len(granted) != len(w.answered) {
		t.Errorf("seed %d: %d grants read, %d given", seed, len(granted), len(w.answered))
	}
	if n := len(w.freed); len(freed) < n && !w.plain && w.lost == 0 {
		t.Errorf("seed %d: %d releases read, %d made", seed, len(freed), n)
	}
}
