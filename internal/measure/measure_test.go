package measure

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"hammerlock/history"
	"hammerlock/results"
)

const ms = time.Millisecond

func TestLatencyIsExactWhereAHistogramIsNot(t *testing.T) {
	l := newFine()
	for _, d := range []time.Duration{1234567, 3 * time.Hour, 17} {
		l.record(d)
	}
	s := l.summary()
	if s.Min != 17 || s.Max != int64(3*time.Hour) || s.Count != 3 || s.Mean != (1234567+int64(3*time.Hour)+17)/3 {
		t.Errorf("got %+v", s)
	}
	if q := l.quantile(1); q < time.Hour || q > time.Hour+2*time.Second {
		t.Errorf("what lies beyond the range stands at %v in the percentiles, want an hour", q)
	}
}

func TestQuantilesAreWithinThreeDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(int64(10*time.Microsecond), int64(time.Minute)), 1, 300).Draw(t,
			"values")
		q := rapid.Float64Range(0.01, 1).Draw(t, "q")
		l := newFine()
		for _, v := range values {
			l.record(time.Duration(v))
		}
		slices.Sort(values)
		nearest := min(max(int(q*float64(len(values))+0.5), 1), len(values))
		want := float64(values[nearest-1])
		if got := float64(l.quantile(q)); math.Abs(got-want) > want/500+32 {
			t.Errorf("quantile %v of %d values: got %v, want %v", q, len(values), got, want)
		}
	})
}

// aWait is a wait in the form for the oracles.
type aWait struct {
	first, last time.Duration
	granted     bool
}

var window = struct{ from, to time.Duration }{100 * ms, 300 * ms}

// clip returns the visible part of a wait within the window: its length, its age when it became visible, and its end.
func (w aWait) clip() (length, entry time.Duration, granted, in bool) {
	if w.last < window.from || w.first >= window.to {
		return 0, 0, false, false
	}
	last, granted := w.last, w.granted
	if last > window.to {
		last, granted = window.to, false
	}
	return last - w.first, max(window.from-w.first, 0), granted, true
}

// survival returns the product of the textbook: at every length with grants, one minus grants divided by waits at risk.
func survival(waits []aWait, upTo time.Duration) float64 {
	left := 1.0
	lengths := map[time.Duration]bool{}
	for _, w := range waits {
		if length, _, granted, in := w.clip(); in && granted && length <= upTo {
			lengths[length] = true
		}
	}
	for at := range lengths {
		var risk, grants float64
		for _, w := range waits {
			length, entry, granted, in := w.clip()
			if in && entry <= at && length >= at {
				risk++
				if granted && length == at {
					grants++
				}
			}
		}
		left *= 1 - grants/risk
	}
	return left
}

func TestWaitsAgreeWithTheTextbook(t *testing.T) {
	// Whole milliseconds, so that every length has its own bucket.
	when := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 400).Draw(t,
			"ms")) * ms
	})
	wait := rapid.Custom(func(t *rapid.T) aWait {
		a, b := when.Draw(t, "a"), when.Draw(t, "b")
		return aWait{min(a, b), max(a, b) + ms, rapid.Bool().Draw(t, "granted")}
	})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(wait, 1, 40).Draw(t, "waits")
		w := newWaits(window.from, window.to)
		w.random = newFine()
		for _, x := range all {
			w.record(x.first, x.last, x.granted)
		}
		qs := []float64{0.1, 0.5, 0.9, 0.99}
		for i, got := range w.quantiles(qs...) {
			q := qs[i]
			switch reached := 1 - survival(all, time.Hour); {
			case got == results.Beyond:
				if reached >= q+1e-9 {
					t.Fatalf("quantile %v was not reached, but %v of the waits end", q, reached)
				}
			case 1-survival(all, got+ms/2) < q-1e-9:
				t.Fatalf("quantile %v is %v, but only %v have ended by then", q, got, 1-survival(all, got+ms/2))
			case 1-survival(all, got-ms/2) >= q+1e-9:
				t.Fatalf("quantile %v is %v, but %v have ended before", q, got, 1-survival(all, got-ms/2))
			}
		}
		checkRandomWaiter(t, w, all)
	})
}

// checkRandomWaiter reads the lengths of the waits in progress at every instant of the window.
func checkRandomWaiter(t *rapid.T, w *waits, all []aWait) {
	var lengths []time.Duration
	for at := window.from + ms/2; at < window.to; at += ms {
		for _, x := range all {
			if length, _, _, in := x.clip(); in && x.first <= at && at < x.last {
				lengths = append(lengths, length)
			}
		}
	}
	if len(lengths) == 0 {
		return
	}
	slices.Sort(lengths)
	for _, q := range []float64{0.25, 0.5, 0.75} {
		low := lengths[max(int(q*float64(len(lengths)))-1, 0)] - ms/2
		high := lengths[min(int(q*float64(len(lengths)))+1, len(lengths)-1)] + ms/2
		if got := w.randomWaiter(q); got < low || got > high {
			t.Fatalf("random waiter's quantile %v: got %v, want %v to %v", q, got, low, high)
		}
	}
}

// script makes operations by hand. A meter gets them in the order of their returns, as in a run.
type script struct {
	ops  []history.Op
	next history.ID
}

func (s *script) op(worker int32, kind history.Kind, due, call, ret time.Duration, o history.Outcome,
	r history.Reason) history.ID {
	s.next++
	s.ops = append(s.ops, history.Op{ID: s.next, Worker: worker, Kind: kind, Due: due, Call: call, Return: ret,
		Outcome: o, Reason: r})
	return s.next
}

// visit waits from due, with a failed try, is granted the lock, and releases it.
func (s *script) visit(worker int32, due, grant, release time.Duration) {
	s.op(worker, history.Acquire, due, due, due+ms/10, history.Failed, history.Busy)
	id := s.op(worker, history.Acquire, due, grant-ms/10, grant, history.OK, history.None)
	s.op(worker, history.Store, due, release-ms/10, release-ms/20, history.OK, history.None)
	rel := s.op(worker, history.Release, due, release, release+3*ms, history.OK, history.None)
	s.ops[rel-1].Hold = id
	s.op(worker, history.End, due, due, release+3*ms, history.OK, history.None)
}

func (s *script) meter(o Options) *Meter {
	m := NewMeter(o)
	slices.SortStableFunc(s.ops, func(a, b history.Op) int { return int(a.Return - b.Return) })
	for i := range s.ops {
		m.Observe(&s.ops[i])
	}
	m.Finish()
	return m
}

func TestHandoffGoesFromTheReleasesCallToTheNextGrant(t *testing.T) {
	s := &script{}
	s.visit(0, 10*ms, 11*ms, 20*ms)
	s.visit(1, 12*ms, 22*ms, 30*ms) // granted 2 ms after the call of w00's release, and before that release returns
	s.visit(0, 40*ms, 45*ms, 50*ms) // no worker waited when w01 released the lock at 30 ms
	s.visit(1, 46*ms, 57*ms, 60*ms) // hand-off of 7 ms
	m := s.meter(Options{Workers: 2, Keys: 1, To: time.Second, Excludes: true})
	if n, mean := m.handoff.count, m.handoff.summary().Mean; n != 2 || mean != int64(45*ms/10) {
		t.Errorf("got %d hand-offs of %v on average, want 2 of 4.5ms", n, time.Duration(mean))
	}
	// Held: 9+8+5+3 ms. Free while a worker waited: 2 ms, 40 to 45 ms, 7 ms.
	if f := m.fairness(); math.Abs(*f.IdleShare-14.0/39) > 1e-9 {
		t.Errorf("idle share %v, want %v", *f.IdleShare, 14.0/39)
	}
}

// TestAReentryIsNoWait: a holder enters the lock again without waiting, and leaves the inner hold before the outer.
func TestAReentryIsNoWait(t *testing.T) {
	s := &script{}
	id := s.op(0, history.Acquire, 0, 10*ms, 11*ms, history.OK, history.None)
	for _, op := range []history.Op{
		{Kind: history.Acquire, Call: 12 * ms, Return: 13 * ms, Value: 2},
		{Kind: history.Release, Call: 14 * ms, Return: 15 * ms, Value: 1},
		{Kind: history.Release, Call: 31 * ms, Return: 33 * ms},
	} {
		s.next++
		op.ID, op.Hold, op.Outcome = s.next, id, history.OK
		s.ops = append(s.ops, op)
	}
	s.op(0, history.End, 0, 0, 33*ms, history.OK, history.None)
	m := s.meter(Options{Workers: 1, Keys: 1, To: time.Second, Excludes: true})
	if m.acquire.count != 1 || m.tries.count != 1 || m.release.count != 1 {
		t.Errorf("%d waits, %d tries, %d releases, want 1 of each", m.acquire.count, m.tries.count, m.release.count)
	}
	if m.hold.count != 1 || m.hold.max != 20*ms || m.held != 20*ms {
		t.Errorf("%d holds, the longest %v, %v in all, want one of 20 ms", m.hold.count, m.hold.max, m.held)
	}
}

func TestTheMeasurementLeavesOutTheWarmUp(t *testing.T) {
	s := &script{}
	s.visit(0, 10*ms, 11*ms, 20*ms)
	s.visit(0, 110*ms, 111*ms, 120*ms)
	s.visit(0, 190*ms, 191*ms, 230*ms) // due within the measurement, ends after it
	s.visit(0, 300*ms, 301*ms, 310*ms)
	m := s.meter(Options{Workers: 1, Keys: 1, From: 100 * ms, To: 200 * ms, Excludes: true})
	if m.visits.Done != 2 || m.response.count != 2 || m.acquire.count != 2 {
		t.Errorf("measured %+v, %d responses, %d acquires, want 2 of each", m.visits, m.response.count, m.acquire.count)
	}
	if m.Finished() != 1 {
		t.Errorf("%d visits finished within the measurement, want 1", m.Finished())
	}
	for _, tt := range []struct {
		from, to time.Duration
		visits   float64
		// as after a late reading
	}{{100 * ms, 200 * ms, 1}, {100 * ms, 122 * ms, 0}, {124 * ms, 200 * ms, 0}, {124 * ms, 400 * ms, 2}} {
		if n := m.Between(tt.from, tt.to); n < tt.visits-0.01 || n > tt.visits+0.01 {
			t.Errorf("%.2f visits from %v to %v, want %v", n, tt.from, tt.to, tt.visits)
		}
	}
	if m.Stores.Acknowledged != 4 {
		t.Errorf("%d stores in the whole run, want 4", m.Stores.Acknowledged)
	}
}

func TestOutcomesOfVisitsAreToldApart(t *testing.T) {
	s := &script{}
	for i, c := range []struct {
		outcome history.Outcome
		reason  history.Reason
	}{{history.OK, 0}, {history.Failed, history.Impatient}, {history.Failed, history.Refused},
		{history.Unknown, history.Timeout}} {
		due := time.Duration(i+1) * ms
		s.op(0, history.End, due, due, due+ms/2, c.outcome, c.reason)
	}
	s.op(0, history.Skip, 9*ms, 9*ms, 9*ms, history.Failed, history.Impatient)
	m := s.meter(Options{Workers: 1, Keys: 1, To: time.Second})
	if want := (results.Visits{Begun: 4, Done: 1, Timeout: 1, Failed: 1, Unknown: 1, Skipped: 1}); m.visits != want {
		t.Errorf("got %+v, want %+v", m.visits, want)
	}
	if n := m.errors["end unknown timeout"]; n != 1 {
		t.Errorf("errors: %v", m.errors)
	}
}

// TestAFixedNumberOfVisitsIsMeasuredWhileItLasts: neither the start of the workers nor the wait for their end counts.
func TestAFixedNumberOfVisitsIsMeasuredWhileItLasts(t *testing.T) {
	s := &script{}
	for i := range 100 {
		due := 150*ms + time.Duration(i)*ms/100
		s.op(int32(i), history.End, due, due, due+time.Duration(i+1)*10*ms, history.OK, 0)
	}
	var r results.Run
	s.meter(Options{Workers: 100, Keys: 1, To: 2 * time.Second, Finite: true}).Summarize(&r, results.Usage{})
	length := time.Second + 990*time.Microsecond
	if r.Measured != int64(length) || math.Abs(r.Throughput-100/length.Seconds()) > 1e-9 {
		t.Errorf("%v and %v/s, want %v", time.Duration(r.Measured), r.Throughput, length)
	}
}

func TestAWaitWithoutEndIsSeen(t *testing.T) {
	s := &script{}
	for i := range 100 {
		at := time.Duration(10+i) * ms
		s.visit(0, at, at+ms/2, at+ms*6/10)
	}
	s.op(1, history.Acquire, 5*ms, 5*ms, 6*ms, history.Failed, history.Busy)
	m := s.meter(Options{Workers: 2, Keys: 1, From: 10 * ms, To: 200 * ms, Excludes: true})
	var r results.Run
	m.Summarize(&r, results.Usage{})
	w := &r.Waiting
	if w.Censored != 1 || w.Longest != int64(195*ms) {
		t.Errorf("%d unfinished waits, the longest %v; want 1 of 195ms", w.Censored, time.Duration(w.Longest))
	}
	if half := time.Duration(*w.RandomWaiter.P50); half < 190*ms {
		t.Errorf("a random waiter's median wait is %v, want the long one", half)
	}
	if f := m.fairness(); f.Starving != 1 || f.StarvingWorkers[0] != 1 || f.Worst.Worker != 1 ||
		f.Worst.Longest != w.Longest {
		t.Errorf("got %+v", f)
	}
}

// TestRowsWithUnfinishedAgreeWithTheOthers: they have the same visits, and say what they know only in part.
func TestRowsWithUnfinishedAgreeWithTheOthers(t *testing.T) {
	s := &script{}
	s.visit(0, 5*ms, 12*ms, 13*ms) // due in the warm-up
	for i := range 20 {
		at := time.Duration(20+5*i) * ms
		s.visit(0, at, at+ms, at+2*ms)
	}
	s.visit(1, 150*ms, 290*ms, 300*ms) // due in the measurement, which ends before it
	var r results.Run
	s.meter(Options{Workers: 2, Keys: 1, From: 10 * ms, To: 200 * ms, Excludes: true}).Summarize(&r, results.Usage{})
	response, all := &r.Latency.Response, &r.Waiting.Response
	if response.Count != 21 || all.Count != 21 || all.Censored != 1 || all.Entered != 0 {
		t.Errorf("%d response times, %+v with unfinished; want 21 of the measurement", response.Count, all)
	}
	if got := all.Text(&all.Max); got != ">50.0 ms" {
		t.Errorf("the longest of them took %s, but the end cut it off after 50 ms", got)
	}
	if got := response.Text(&response.Max); got != "153 ms" {
		t.Errorf("the longest response took %s", got)
	}
	waits := &r.Waiting.Unfinished
	if in := r.Latency.Acquire.Count + waits.Entered; waits.Count != in || waits.Entered != 1 {
		t.Errorf("%+v, but %d were granted, or began in the warm-up", waits, in)
	}
	if text := r.CensoredText(); text != "1 wait ended without a grant or outlasted the measurement; "+
		"1 visit did not go well or outlasted the measurement; they count with what was seen of them; "+
		"1 wait in acquire with unfinished began in the warm-up" {
		t.Error(text)
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		visits []int64
		want   float64
	}{{[]int64{5, 5, 5, 5}, 1}, {[]int64{8, 0, 0, 0}, 0.25}, {[]int64{1, 2, 3}, 36.0 / 42}, {[]int64{0, 0}, 0}} {
		m := NewMeter(Options{Workers: len(c.visits), Keys: 1, To: time.Second})
		for i, v := range c.visits {
			m.workers[i].finish = v
		}
		if got := m.fairness().Jain; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: got %v, want %v", c.visits, got, c.want)
		}
	}
}

func TestGeneratorJudgesItself(t *testing.T) {
	calm := results.Usage{OpenLoop: true, OwnCPU: 0.1, MachineCPU: 0.3}
	with := func(f func(*results.Usage)) results.Usage { l := calm; f(&l); return l }
	for name, c := range map[string]struct {
		used results.Usage
		late time.Duration
		want results.GeneratorState
	}{
		"calm":        {calm, 0, results.GeneratorOK},
		"closed loop": {with(func(l *results.Usage) { l.OpenLoop = false }), 0, results.Suspect},
		"busy":        {with(func(l *results.Usage) { l.MachineCPU = 0.8 }), 0, results.Suspect},
		"full":        {with(func(l *results.Usage) { l.MachineCPU = 0.97 }), 0, results.Saturated},
		"stolen": {with(func(l *results.Usage) { l.MachineCPU, l.StolenCPU = 0.6, 0.3 }), 0,
			results.Disturbed},
		"others busy": {with(func(l *results.Usage) { l.MachineCPU, l.OthersCPU = 0.6, 0.5 }), 0,
			results.Disturbed},
		"room for others": {with(func(l *results.Usage) { l.MachineCPU, l.OthersCPU = 0.35, 0.3 }), 0,
			results.Suspect},
		"late for others": {with(func(l *results.Usage) { l.MachineCPU, l.OthersCPU = 1, 0.6 }), 50 * ms,
			results.Disturbed},
		"others do a little": {with(func(l *results.Usage) { l.MachineCPU, l.OthersCPU = 0.4, 0.15 }), 0,
			results.Suspect},
		"suite uses it up": {with(func(l *results.Usage) { l.MachineCPU, l.OthersCPU = 1, 0.02 }), 0,
			results.Saturated},
		"late":                {calm, 2 * ms, results.Suspect},
		"very late":           {calm, 50 * ms, results.Saturated},
		"late but closed":     {with(func(l *results.Usage) { l.OpenLoop = false }), 50 * ms, results.Suspect},
		"unknown machine":     {with(func(l *results.Usage) { l.MachineCPU = -1 }), 0, results.GeneratorOK},
		"collector":           {with(func(l *results.Usage) { l.GCPauseMax = int64(30 * ms) }), 0, results.Saturated},
		"waits for a core":    {with(func(l *results.Usage) { l.SchedulingP99 = int64(3 * ms) }), 0, results.Suspect},
		"waits for a conn":    {with(func(l *results.Usage) { l.PoolWaits = 1 }), 0, results.Suspect},
		"waits for recording": {with(func(l *results.Usage) { l.Stalls = 1 }), 0, results.Suspect},
	} {
		m := NewMeter(Options{Workers: 1, Keys: 1, To: time.Second})
		m.late.record(c.late)
		g := m.judge(c.used)
		if g.State != c.want || (g.State != results.GeneratorOK) != (len(g.Reasons) > 0) {
			t.Errorf("%s: got %s %v, want %s", name, g.State, g.Reasons, c.want)
		}
	}
}

// TestAMeterTakesVisitsApart passes the same visits to two meters: as single operations, and as Visits.
func TestAMeterTakesVisitsApart(t *testing.T) {
	full := lonelyVisits(5000, 3)
	stores, releases := map[history.ID]history.Op{}, map[history.ID]history.Op{}
	var short []history.Op
	for _, op := range full {
		switch op.Kind {
		case history.Store:
			stores[op.Hold] = op
		case history.Release:
			releases[op.Hold] = op
		case history.End:
			store, release := stores[op.Hold], releases[op.Hold]
			op.Kind, op.ID, op.Began, op.Call, op.Released = history.Visit, store.ID, op.Call, store.Call, release.Call
			short = append(short, op)
		default:
			short = append(short, op)
		}
	}
	measure := func(ops []history.Op) *results.Run {
		m := NewMeter(Options{Workers: 64, Keys: 3, From: 100 * ms, To: 900 * ms, Excludes: true, OpenLoop: true})
		for i := range ops {
			m.Observe(&ops[i])
		}
		m.Finish()
		if m.handoff.count == 0 || m.late.count == 0 || m.Stores.Acknowledged != 5000 || m.idleWaited == 0 {
			t.Fatalf("%d hand-offs, %d late, %d stores, %v idle: nothing to compare", m.handoff.count, m.late.count,
				m.Stores.Acknowledged, m.idleWaited)
		}
		r := &results.Run{}
		m.Summarize(r, results.Usage{})
		return r
	}
	a, b := measure(full), measure(short)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("operation by operation:\n%+v\nin one:\n%+v", a, b)
	}
}

func TestASummaryLeavesOutWhatFewObservationsDoNotSupport(t *testing.T) {
	l := newFine()
	for range 50 {
		l.record(ms)
	}
	if s := l.summary(); s.P50 == nil || s.P90 == nil || s.P99 != nil || s.P999 != nil {
		t.Errorf("50 observations gave %+v", s)
	}
}

// TestIntervalsAddUp: the latency log has each duration exactly once, in the second in which it ended. HdrHistogram's
// own reader can read the log.
func TestIntervalsAddUp(t *testing.T) {
	var log bytes.Buffer
	started := time.Unix(1e9, 0)
	i := newInterval(time.Second, &log, started)
	for k := range 100 {
		i.record(i.acquire, time.Second+time.Duration(k*k)*ms, 5*ms)
	}
	i.flush(time.Hour)
	r := hdrhistogram.NewHistogramLogReader(&log)
	var total, last int64
	for {
		h, err := r.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		total += h.TotalCount()
		from := h.StartTimeMs() - started.UnixMilli()
		if h.Tag() != "acquire" || from <= last || from%1000 != 0 || h.EndTimeMs()-h.StartTimeMs() != 1000 ||
			!h.ValuesAreEquivalent(h.Max(), int64(5*ms)) {
			t.Errorf("read %s from %d ms to %d ms after %d ms, the greatest %d", h.Tag(), from,
				h.EndTimeMs()-started.UnixMilli(), last, h.Max())
		}
		last = from
	}
	if total != 100 {
		t.Errorf("%d durations came out of the intervals, want 100", total)
	}
}

// TestARefusalIsNoError: a try without a quorum is an error only if a site did not answer.
func TestARefusalIsNoError(t *testing.T) {
	s := &script{}
	s.op(0, history.Acquire, 0, 1*ms, 2*ms, history.Failed, history.Busy)
	s.op(0, history.Acquire, 0, 3*ms, 4*ms, history.Failed, history.Quorum)
	s.op(0, history.Acquire, 0, 5*ms, 6*ms, history.Failed, history.Quorum)
	s.ops[2].Value = 1 // site
	var run results.Run
	m := s.meter(Options{Workers: 1, Keys: 1, To: window.to, Excludes: true})
	m.Summarize(&run, results.Usage{})
	if n := run.Errors["acquire failed quorum"]; n != 1 || m.Live(10*ms).Errors != 1 {
		t.Errorf("%d errors in the record, %d live, want 1", n, m.Live(10*ms).Errors)
	}
}

// TestSwing: the differences between the seconds of a run show its noise.
func TestSwing(t *testing.T) {
	s := &script{}
	at := time.Duration(0)
	for second, waits := range []time.Duration{ms, 5 * ms, 3 * ms} {
		for range 3 - second {
			s.visit(0, at, at+waits, at+waits+ms)
			at += 20 * ms
		}
		at = time.Duration(second+1) * time.Second
	}
	var run results.Run
	s.meter(Options{Workers: 1, Keys: 1, To: 3 * time.Second, Excludes: true}).Summarize(&run, results.Usage{})
	near := func(got int64, want time.Duration) bool { return (time.Duration(got) - want).Abs() < want/50 }
	if a, v := run.Swing.Acquire, run.Swing.Visits; !near(a[0], ms) || !near(a[1], 5*ms) || v != [2]float64{1, 3} {
		t.Errorf("got %v, %v", a, v)
	}
}
