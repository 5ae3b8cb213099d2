package fleet

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
)

// wrong is an agent's clock with a known error: for each of its times, the coordinator's time is known.
type wrong struct {
	shift int64
	began int64     // time on its clock from which its speed differs
	speed []float64 // error in ppm, for each second
}

// truth returns the coordinator's time for a time of the agent's clock.
func (w *wrong) truth(at int64) int64 {
	true := at + w.shift
	for i, ppm := range w.speed {
		if from := w.began + int64(i)*1e9; at > from {
			true += int64(ppm * 1e-6 * float64(min(at, from+1e9)-from))
		}
	}
	return true
}

// exchangeAt returns an exchange that the agent begins at a given time of its clock. Both ways take random times.
func (w *wrong) exchangeAt(r *rand.Rand, at, up, down int64) exchange {
	there := r.Int64N(up + 1)
	back := r.Int64N(down + 1)
	at3 := at + there + 5000 + back
	return exchange{A0: at, C1: w.truth(at + there), C2: w.truth(at + there + 5000), A3: at3}
}

// TestTheTruthIsWithinTheBound uses random clocks that are offset, and drift by less than is assumed. Messages take
// very different times in the two directions, and sometimes none is exchanged for a while. At the end, every
// translated time stamp is within the proven bound of the truth, and time stamps keep their order.
func TestTheTruthIsWithinTheBound(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		w := wrong{shift: r.Int64N(2e15) - 1e15}
		for range 6 {
			w.speed = append(w.speed, 900*r.Float64()-450)
		}
		up, down := int64(r.ExpFloat64()*1e6), int64(r.ExpFloat64()*1e6)
		var k track
		s := scale{track: &k, from: 1e6, to: w.truth(1e6)}
		var stamps, got []int64
		pending := []int64{}
		for at := int64(2e6); at < 5e9; at += r.Int64N(1e8) + 1 {
			pending = append(pending, at)
			if r.IntN(20) == 0 {
				at += r.Int64N(1e9) // a time without an exchange
			}
			e := w.exchangeAt(r, at, up, down)
			at = e.A3
			k.add(e)
			k.fix(s.from) // only the first time
			k.fix(e.A3)
			if r.IntN(3) > 0 {
				continue
			}
			k.fix(at + 1000)
			for _, p := range pending {
				stamps, got = append(stamps, p), append(got, int64(s.time(time.Duration(p-s.from)))+s.to)
			}
			pending = pending[:0]
		}
		if k.err != nil {
			t.Fatalf("seed %d: %v", seed, k.err)
		}
		bound := int64(k.proven())
		for i, at := range stamps {
			if off := got[i] - w.truth(at); max(off, -off) > bound+2 {
				t.Fatalf("seed %d: at %d off by %d ns, proven are %d", seed, at, off, bound)
			}
		}
		if !slices.IsSorted(got) {
			t.Fatalf("seed %d: the order was changed", seed)
		}
	}
}

// TestTheBoundIsNarrow: on a fast network, the bound is far shorter than usual holds.
func TestTheBoundIsNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	w := wrong{shift: 5e9, speed: []float64{60, 60, 60, 60}}
	var k track
	for at := int64(0); at < 4e9; at += int64(exchangeEvery) {
		k.add(w.exchangeAt(r, at, 1e5, 1e5))
		k.fix(k.at)
	}
	if got := k.proven(); got < 10*time.Microsecond || got > 200*time.Microsecond || k.exchanges != 80 {
		t.Errorf("%d exchanges prove %v", k.exchanges, got)
	}
}

// TestAStepIsNoticed: exchanges that contradict each other are an error. So are exchanges with a clock that is wrongly
// said to be the same.
func TestAStepIsNoticed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, same := range map[string]bool{"another machine": false, "the same": true} {
		w := wrong{}
		k := track{same: same}
		for at := int64(0); at < 1e9; at += 5e7 {
			if k.add(w.exchangeAt(r, at, 1e5, 1e5)); k.err != nil {
				t.Fatalf("%s, at %d: %v", name, at, k.err)
			}
		}
		w.shift = 1e7
		if k.add(w.exchangeAt(r, 1e9, 1e5, 1e5)); k.err == nil {
			t.Errorf("%s: a step of 10 ms was not noticed", name)
		}
	}
}

// TestABeliefIsNotMadeLonger: in translated times, a holder does not believe in its lease for longer than before.
func TestABeliefIsNotMadeLonger(t *testing.T) {
	k := track{exchanges: 1, points: []point{{at: 0, used: 0}, {at: 1e9, used: 1e6}}}
	s := scale{track: &k}
	op := history.Op{Kind: history.Acquire, Call: 5e8, Return: 6e8, Until: 5e8 + time.Second}
	s.op(&op)
	if believed := op.Until - op.Call; op.Call != 5e8+5e5 || believed > time.Second ||
		believed < time.Second-time.Millisecond {
		t.Errorf("%+v: believes for %v", op, believed)
	}
	op = history.Op{Kind: history.Visit, Call: 5e8, Return: 6e8, Until: 4e8, Began: 4e8, Released: 55e7}
	s.op(&op)
	if op.Until != 4e8+4e5 || op.Began != op.Until || op.Released != 55e7+55e4 {
		t.Errorf("%+v", op)
	}
}

// TestTheTruthIsWithinTheBoundInRealTime takes a second.
func TestTheTruthIsWithinTheBoundInRealTime(t *testing.T) {
	t.Parallel()
	over, end := context.WithTimeout(t.Context(), time.Second)
	defer end()
	inRealTime(t, func() bool { return over.Err() == nil })
}

// BenchmarkTheTruthInRealTime takes as long as it is told: -bench InRealTime -benchtime 10m -timeout 20m.
func BenchmarkTheTruthInRealTime(b *testing.B) { inRealTime(b, b.Loop) }

// inRealTime compares a coordinator's clock, over NATS, with a clock that is 5 s ahead and 60 ppm too fast. At any
// time the true offset is within the bounds that are known then. At the end, the used offsets differ from the true
// one by at most the proven error.
func inRealTime(t testing.TB, more func() bool) {
	t.Helper()
	b := coordinator(t, func(*Options) {})
	nc, err := connect(b.Address(), "other", b.token, Login{})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	w := task{w: &worker{clock: nc}}
	zero := crew.Monotonic()
	reads := func(true int64) int64 { return true + 5e9 + int64(60e-6*float64(true-zero)) }
	truth := func(at int64) int64 { return int64(float64(at-5e9-zero)/(1+60e-6)) + zero }
	var k track
	var seconds []int64
	for range firstTime { // before the run
		w.exchange()
	}
	ticker := time.NewTicker(exchangeEvery)
	defer ticker.Stop()
	for ; more(); <-ticker.C {
		w.exchange()
		for _, e := range w.exchanged() {
			e.A0, e.A3 = reads(e.A0), reads(e.A3)
			k.add(e)
			k.fix(e.A3)
		}
		if k.err != nil || k.exchanges == 0 {
			t.Fatalf("%d exchanges: %v", k.exchanges, k.err)
		}
		at := reads(crew.Monotonic())
		if lo, hi := k.bounds(at); truth(at)-at < lo-2 || truth(at)-at > hi+2 {
			t.Fatalf("after %d exchanges the offset is %d, not between %d and %d", k.exchanges, truth(at)-at, lo, hi)
		}
		if len(seconds) == 0 || at-seconds[len(seconds)-1] >= 1e9 {
			k.fix(at)
			seconds = append(seconds, at)
		}
	}
	worst, bound := int64(0), k.proven()
	for _, at := range seconds {
		off := k.offset(at) - (truth(at) - at)
		worst = max(worst, off, -off)
	}
	t.Logf("%d seconds, %d exchanges: at most %v off, %v are proven", len(seconds), k.exchanges, time.Duration(worst),
		bound)
	if time.Duration(worst) > bound+2 {
		t.Errorf("off by %v, proven are %v", time.Duration(worst), bound)
	}
}
