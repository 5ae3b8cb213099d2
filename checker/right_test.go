package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
)

// The tests of this file judge histories of a right lock, on servers, links, clocks and machines that fail: no checker
// may accuse it. Time is virtual; delays and failures are random.

// wrong is an error of a lock.
type wrong int

const (
	nothingWrong wrong = iota
	twoSteps           // now and then, a try that finds the lock taken takes it anyway
	anyRelease         // a release does not check the owner
	fromReply          // a lease is counted from the answer
	recreates          // an extension creates the lock again
	lateHolder         // the holder ignores its deadline
)

// world is one run of a lock.
type world struct {
	r      *rand.Rand
	h      *history.History
	start  time.Time
	ttl    time.Duration
	wrong  wrong
	skew   []time.Duration // by process
	gaps   []period        // by process: when it is paused; empty = never
	hangs  period          // when the server does not answer
	lossy  period          // when answers are lost
	server struct {
		owner  uint64
		count  int64
		until  time.Duration
		fence  int64
		views  int64
		writer history.ID
	}
	mu      sync.Mutex
	going   sync.WaitGroup // all events that may still happen
	numbers map[int]uint64 // by lane
	tokens  uint64
}

// pause waits on the simulated clock only.
func pause(d time.Duration) { <-time.After(d) }

func (w *world) now() time.Duration { return time.Since(w.start) }

// sleep lasts longer if the process is paused in that time.
func (w *world) sleep(process int16, d time.Duration) {
	to := w.now() + d
	if g := w.gaps[process]; g.to > 0 && to >= g.from && to < g.to {
		to = g.to + to%time.Microsecond // workers do not wake up at the same instant, so a seed gives one run
	}
	pause(to - w.now())
}

// delay draws a duration. The world's mutex is not held.
func (w *world) delay(most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(1 + w.r.Int64N(int64(most)))
}

// one draws an event that happens once in n times.
func (w *world) one(n int) bool { return w.delay(time.Duration(n)) == 1 }

// patienceOf is the time for which a client waits for an answer. A lane that renews a lease keeps time for another try.
func (w *world) patienceOf(lane int) time.Duration {
	if lane >= renewals {
		return w.ttl / 6
	}
	return 40 * time.Millisecond
}

// renewals is the first lane in which leases are renewed in the background.
const renewals = 20

// send carries out an operation. The function effect runs in the server between call and return. If the answer does
// not come in time, it may run later. The result says whether the answer came.
func (w *world) send(op *history.Op, lane int, effect func(op *history.Op)) bool {
	there, back, after := w.delay(3*time.Millisecond), w.delay(3*time.Millisecond), w.delay(time.Millisecond)
	w.mu.Lock()
	w.numbers[lane]++
	op.ID = history.ID(lane+1)<<40 | history.ID(w.numbers[lane])
	if op.Kind == history.Acquire && op.Hold == 0 {
		op.Hold = op.ID
	}
	op.Call = w.now()
	w.mu.Unlock()
	at := op.Call + there
	if at >= w.hangs.from && at < w.hangs.to {
		at = w.hangs.to + after
	}
	lost := at+back >= w.lossy.from && at+back < w.lossy.to
	late := lost || at+back-op.Call > w.patienceOf(lane)
	done := make(chan struct{})
	answer := *op
	w.going.Go(func() {
		pause(at - w.now())
		w.mu.Lock()
		defer w.mu.Unlock()
		effect(&answer)
		close(done)
	})
	if late {
		w.sleep(op.Process, w.patienceOf(lane))
		w.mu.Lock()
		op.Outcome, op.Reason = history.Unknown, history.Timeout
	} else {
		<-done
		*op = answer
		w.sleep(op.Process, back)
		w.mu.Lock()
	}
	op.Return = w.now()
	w.record(*op)
	w.mu.Unlock()
	return !late
}

// record stamps an operation by the clock of its process; the world's mutex is held.
func (w *world) record(op history.Op) {
	if op.Worker >= 0 {
		s := w.skew[op.Process]
		op.Call, op.Return = op.Call+s, op.Return+s
		if op.Until != 0 && op.Until != history.Forever {
			op.Until += s
		}
	}
	w.h.Ops = append(w.h.Ops, op)
}

func (w *world) mark(op history.Op, lane int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.numbers[lane]++
	op.ID = history.ID(lane+1)<<40 | history.ID(w.numbers[lane])
	op.Return = w.now()
	w.record(op)
}

func (w *world) free() bool {
	return w.server.owner == 0 || w.h.Claims.Expires && w.now() >= w.server.until
}

// expiry is the end of a lease that begins now.
func (w *world) expiry() time.Duration {
	if !w.h.Claims.Expires {
		return history.Forever
	}
	return w.now() + w.ttl
}

// acquire makes one try.
func (w *world) acquire(op *history.Op) {
	w.mu.Lock()
	if op.Token == 0 {
		w.tokens++
		op.Token = w.tokens
	}
	w.mu.Unlock()
	w.send(op, int(op.Worker), func(op *history.Op) {
		again := w.server.owner == op.Token && !w.free()
		if !w.free() && !again && !(w.wrong == twoSteps && w.r.IntN(4) == 0) {
			op.Outcome, op.Reason = history.Failed, history.Busy
			return
		}
		if !again {
			w.server.fence++
			w.server.count = 0
		}
		w.server.owner, w.server.until = op.Token, w.expiry()
		w.server.count++
		op.Outcome = history.OK
		if w.h.Claims.Fences {
			op.Fence = w.server.fence
		}
		if w.h.Claims.Reentrant {
			op.Value = w.server.count
		}
		op.Until = w.until(op.Call)
	})
}

func (w *world) until(call time.Duration) time.Duration {
	if !w.h.Claims.Expires {
		return history.Forever
	}
	if w.wrong == fromReply {
		call = w.now() + 4*time.Millisecond
	}
	return call + w.ttl - w.ttl/100 - 2*time.Millisecond
}

func (w *world) extend(op *history.Op, lane int) {
	w.send(op, lane, func(op *history.Op) {
		if (w.server.owner != op.Token || w.free()) && w.wrong != recreates {
			op.Outcome, op.Reason = history.Failed, history.Lost
			return
		}
		w.server.owner, w.server.until = op.Token, w.expiry()
		op.Outcome, op.Until = history.OK, w.until(op.Call)
	})
}

func (w *world) release(op *history.Op) {
	w.send(op, int(op.Worker), func(op *history.Op) {
		if (w.server.owner != op.Token || w.free()) && w.wrong != anyRelease {
			op.Outcome, op.Reason = history.Failed, history.Lost
			return
		}
		op.Outcome = history.OK
		if w.server.count--; w.server.count > 0 {
			op.Value = w.server.count
			return
		}
		w.server.owner = 0
	})
}

// watch renews a hold until it is stopped or the hold is lost; a loss is recorded. The function until returns the end
// of the lease, as far as is known.
func (w *world) watch(a *history.Op, stop <-chan struct{}) (until func() time.Duration) {
	end := a.Until
	until = func() time.Duration { w.mu.Lock(); defer w.mu.Unlock(); return end }
	lane := renewals + int(a.Worker)
	w.going.Go(func() {
		for pause := w.ttl / 3; ; {
			w.sleep(a.Process, pause)
			select {
			case <-stop:
				return
			default:
			}
			x := &history.Op{Kind: history.Extend, Worker: a.Worker, Process: a.Process, Token: a.Token, TTL: w.ttl}
			if w.now() < until() {
				w.extend(x, lane)
			}
			select {
			case <-stop:
				return
			default:
			}
			pause = w.ttl / 10
			if x.Outcome == history.OK {
				pause = w.ttl / 3
				w.mu.Lock()
				end = x.Until
				w.mu.Unlock()
			} else if x.Outcome == history.Failed || w.now() >= until() {
				w.mu.Lock()
				end = 0
				w.mu.Unlock()
				w.mark(history.Op{Kind: history.Lose, Worker: a.Worker, Process: a.Process, Hold: a.ID, Call: w.now(),
					Outcome: history.OK}, lane)
				return
			}
		}
	})
	return until
}

// visit does what a right user of the lock does.
func (w *world) visit(worker int32, process int16) {
	begun := w.now()
	defer func() {
		w.mark(history.Op{Kind: history.End, Worker: worker, Process: process, Call: begun}, int(worker))
	}()
	v := &visitor{world: w, worker: worker, process: process, count: 1}
	if !v.enter() {
		return
	}
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop) })
	defer end()
	if v.renewed = func() time.Duration { return v.until }; w.h.Claims.Renews {
		v.renewed = w.watch(v.grant, stop)
	}
	load := v.op(history.Load)
	ok := w.send(load, int(worker), func(op *history.Op) {
		op.Outcome, op.Value, op.Seen = history.OK, w.server.views, w.server.writer
	})
	ok = v.stay() && ok
	if w.one(12) {
		w.mark(history.Op{Kind: history.Crash, Worker: worker, Process: process, Call: w.now()}, int(worker))
		return
	}
	if ok && (w.now()+4*time.Millisecond < v.renewed() || w.wrong == lateHolder) { // the store needs time to arrive
		store := v.op(history.Store)
		store.Value, store.Seen = load.Value+1, load.Seen
		w.send(store, int(worker), func(op *history.Op) {
			w.server.views, w.server.writer = op.Value, op.ID
			op.Outcome = history.OK
		})
	}
	end()
	for ; v.count > 0; v.count-- {
		back := v.op(history.Release)
		if w.release(back); back.Outcome != history.OK {
			break // the outcome is unknown, so the hold is left to expire
		}
	}
}

// visitor is a worker during a visit.
type visitor struct {
	*world
	worker  int32
	process int16
	grant   *history.Op
	until   time.Duration
	renewed func() time.Duration // returns the end of the lease, as far as the visitor knows
	count   int                  // how often the visitor has entered
}

// op begins an operation of the visit's hold, or of no hold yet.
func (v *visitor) op(kind history.Kind) *history.Op {
	op := &history.Op{Kind: kind, Worker: v.worker, Process: v.process, TTL: v.ttl}
	if v.grant != nil {
		op.Hold, op.Token, op.Fence = v.grant.ID, v.grant.Token, v.grant.Fence
	}
	return op
}

// enter tries to get the lock. If a try had no answer, it releases the lock.
func (v *visitor) enter() bool {
	for range 32 {
		a := v.op(history.Acquire)
		if v.acquire(a); a.Outcome == history.OK {
			v.grant, v.until = a, a.Until
			return true
		}
		if a.Outcome == history.Unknown {
			back := v.op(history.Release)
			back.Hold, back.Token = a.ID, a.Token
			v.release(back)
		}
		v.sleep(v.process, v.delay(4*time.Millisecond))
	}
	return false
}

// stay does what a holder does between its load and its store. It returns false if the holder was told that the lock
// is lost.
func (v *visitor) stay() (ok bool) {
	ok = true
	heeds := func() bool { return v.now() < v.renewed() || v.wrong == lateHolder }
	if v.one(3) {
		if x := v.op(history.Extend); heeds() {
			if v.extend(x, int(v.worker)); x.Outcome == history.OK {
				v.until = x.Until
			} else if x.Outcome == history.Failed {
				ok = false
			}
		}
	}
	if v.h.Claims.Reentrant && v.one(2) && heeds() {
		in := v.op(history.Acquire)
		if v.acquire(in); in.Outcome == history.OK {
			v.until, v.count = in.Until, 2
		}
	}
	v.sleep(v.process, v.delay(10*time.Millisecond))
	if v.wrong != nothingWrong && v.one(6) {
		v.sleep(v.process, v.ttl) // a late holder
		if v.wrong == recreates {
			v.extend(v.op(history.Extend), int(v.worker))
		}
	}
	if v.h.Claims.Renews {
		v.sleep(v.process, v.delay(3*v.ttl))
	}
	return ok
}

// misfortune draws the failures of a world.
func (w *world) misfortune(processes int) {
	at := func() time.Duration { return time.Duration(20+w.r.IntN(150)) * time.Millisecond }
	w.skew, w.gaps = make([]time.Duration, processes), make([]period, processes)
	for p := range processes {
		if slack := w.h.Bounds.Slack; slack > 0 {
			w.skew[p] = time.Duration(w.r.Int64N(int64(slack)))
		}
		if w.r.IntN(3) == 0 {
			from := at()
			w.gaps[p] = period{from, from + w.delay(100*time.Millisecond)}
			w.h.Ops = append(w.h.Ops, history.Op{ID: history.ID(90+p)<<40 | 1, Kind: history.Gap, Worker: -1, Key: -1,
				Process: int16(p), Call: from, Return: w.gaps[p].to, Outcome: history.OK})
		}
	}
	fault := func(e history.Effect, p period) {
		n := uint64(len(w.h.Faults))
		w.h.Faults = append(w.h.Faults, history.Injection{Name: "f", Effect: e, From: p.from, To: p.to})
		w.h.Ops = append(w.h.Ops,
			history.Op{ID: history.ID(80+n)<<40 | 1, Kind: history.Fault, Worker: -1, Key: -1, Value: int64(n),
				Call: p.from, Return: p.from, Outcome: history.OK},
			history.Op{ID: history.ID(80+n)<<40 | 2, Kind: history.Heal, Worker: -1, Key: -1, Value: int64(n),
				Call: p.to, Return: p.to, Outcome: history.OK})
	}
	if w.r.IntN(3) == 0 {
		from := at()
		w.hangs = period{from, from + w.delay(60*time.Millisecond)}
		fault(serverHangs, w.hangs)
	}
	if w.r.IntN(3) == 0 {
		from := at()
		w.lossy = period{from, from + w.delay(20*time.Millisecond)}
		fault(messagesLate, w.lossy)
	}
}

// lived returns the history that workers of a lock leave.
func lived(t *testing.T, seed uint64, flaw wrong) *history.History {
	r := rand.New(rand.NewPCG(seed, 77))
	w := &world{r: r, wrong: flaw, h: &history.History{}, ttl: time.Duration(30+r.IntN(60)) * time.Millisecond,
		numbers: map[int]uint64{}}
	h := w.h
	h.Workers, h.Keys, h.Processes = 2+r.IntN(4), 1, 1+r.IntN(3)
	h.Retry, h.Wait = 2*time.Millisecond, time.Second
	h.Claims = history.Claims{Excludes: true, Expires: r.IntN(4) > 0, Owned: true, Fences: r.IntN(2) == 0,
		Reentrant: r.IntN(3) == 0}
	if h.Claims.Renews = h.Claims.Expires && !h.Claims.Reentrant && r.IntN(3) == 0; h.Claims.Renews {
		w.ttl *= 2
	}
	h.Bounds = history.Bounds{Round: 2 * time.Millisecond, Recovery: 50 * time.Millisecond, Gap: time.Millisecond}
	if h.Processes > 1 {
		h.Bounds.Slack = time.Duration(r.IntN(3)) * time.Millisecond
	}
	synctest.Test(t, func(*testing.T) {
		w.start = time.Now()
		w.misfortune(h.Processes)
		for i := range h.Workers {
			w.going.Go(func() {
				process := int16(i % h.Processes)
				pause(time.Duration(i))
				for w.now() < 250*time.Millisecond {
					w.visit(int32(i), process)
					w.sleep(process, w.delay(5*time.Millisecond))
				}
			})
		}
		w.going.Wait()
	})
	w.h.Ops = append(w.h.Ops, history.Op{ID: 99<<40 | 1, Kind: history.Final, Worker: -1, Value: w.server.views,
		Seen: w.server.writer,
		Call: time.Second, Return: time.Second, Outcome: history.OK})
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	return h
}

// judged returns the verdicts on a history that must be valid.
func judged(t *testing.T, h *history.History) ([]Verdict, *Case) {
	t.Helper()
	if err := h.Validate(); err != nil {
		t.Fatalf("the history is invalid: %v", err)
	}
	c, err := Prepare(h)
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := Judge(c)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts, c
}

// accused names the checkers that accuse the lock of a history; empty if none does.
func accused(t *testing.T, h *history.History) string {
	t.Helper()
	verdicts, c := judged(t, h)
	for _, v := range verdicts {
		if v.Status == Fail {
			return fmt.Sprintf("%s: %s\n%v\n%s", v.Checker, v.Summary, v.Story, show(c))
		}
	}
	return ""
}

// TestNobodyAccusesARightLock: no checker accuses a right lock, nor by a part of its history that was cut anywhere.
func TestNobodyAccusesARightLock(t *testing.T) {
	for seed := range uint64(many(6000)) {
		h := lived(t, seed, nothingWrong)
		if wrong := accused(t, h); wrong != "" {
			t.Fatalf("seed %d: %s", seed, wrong)
		}
		cut := *h
		cut.Ops, cut.Partial = h.Ops[:seed*7919%uint64(len(h.Ops))], "it was cut"
		if wrong := accused(t, &cut); wrong != "" {
			t.Fatalf("seed %d, cut after %d of %d: %s", seed, len(cut.Ops), len(h.Ops), wrong)
		}
	}
}

// TestWrongLocksAreAccused: wrong locks are accused in spite of all failures; the servers, which lose nothing, are not.
func TestWrongLocksAreAccused(t *testing.T) {
	lives := many(1200)
	for flaw, want := range map[wrong]struct {
		least  int
		causes []string
	}{
		twoSteps:   {lives / 2, []string{"double-grant", "exclusion", "not-linearizable"}},
		anyRelease: {lives / 4, []string{"foreign-release"}},
		fromReply:  {lives / 2, []string{"over-claim"}},
		recreates:  {lives / 10, []string{"silent-reacquire"}},
		lateHolder: {lives / 10, []string{"overrun"}},
	} {
		t.Run(fmt.Sprint(flaw), func(t *testing.T) {
			found := map[string]int{}
			failed := 0
			for seed := range uint64(lives) {
				verdicts, _ := judged(t, lived(t, seed, flaw))
				causes := map[string]bool{}
				for _, v := range verdicts {
					if v.Status == Fail {
						causes[v.Cause] = true
					}
				}
				for cause := range causes {
					found[cause]++
				}
				failed += min(len(causes), 1)
			}
			t.Logf("%d of %d failed: %v", failed, lives, found)
			if failed < want.least || found[want.causes[0]] < want.least {
				t.Errorf("%d of %d failed, want %d; by cause %v", failed, lives, want.least, found)
			}
			if found["service-loss"] > 0 {
				t.Errorf("the servers are blamed %d times", found["service-loss"])
			}
		})
	}
}
