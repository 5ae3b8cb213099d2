package measure

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

// visitsOf returns random operations of one worker. Waits have any number of tries, holds end in each possible way,
// and some replies are late. All times are different.
func visitsOf(r *rand.Rand, worker int32, keys int, unique *time.Duration) (ops []history.Op) {
	at := time.Duration(0)
	n := uint64(0)
	tick := func(most int) time.Duration {
		*unique++
		lasts := time.Duration(1+r.IntN(most)) * ms
		at += lasts/100000*100000 + *unique
		return at
	}
	add := func(op history.Op) history.ID {
		n++
		op.ID, op.Worker = history.ID(worker+1)<<40|history.ID(n), worker
		ops = append(ops, op)
		return op.ID
	}
	for range 2 + r.IntN(6) {
		key, begin := int32(r.IntN(keys)), tick(150)
		granted := history.ID(0)
		for range 1 + r.IntN(3) {
			call := tick(20)
			reasons := []history.Reason{history.Busy, history.Busy, history.Unreachable, history.Timeout}
			op := history.Op{Kind: history.Acquire, Key: key, Call: call, Return: tick([]int{5, 300}[r.IntN(2)]),
				Due:     begin,
				Outcome: history.Failed, Reason: reasons[r.IntN(4)]}
			if r.IntN(3) == 0 {
				op.Outcome, op.Reason = history.OK, history.None
				if op.Until = 0; r.IntN(2) == 0 {
					op.Until = op.Call + time.Duration(r.IntN(400))*ms + 7
				}
				granted = add(op)
				break
			}
			add(op)
		}
		if granted != 0 {
			hold := history.Op{Hold: granted, Key: key, Outcome: history.OK, Due: begin}
			if hold.Call = tick([]int{3, 300}[r.IntN(2)]); r.IntN(4) == 0 {
				hold.Kind, hold.Return, hold.Until = history.Extend, tick(5), hold.Call+time.Duration(r.IntN(300))*ms+3
				add(hold)
				hold.Call, hold.Until = tick(200), 0
			}
			switch r.IntN(6) {
			case 0:
				hold.Kind, hold.Return = history.Crash, hold.Call+1
			case 1:
				hold.Kind, hold.Return = history.Lose, hold.Call+1
			case 2:
				hold.Kind, hold.Return, hold.Outcome = history.Release, tick(400), history.Unknown
			default:
				hold.Kind, hold.Return = history.Release, tick([]int{3, 300}[r.IntN(2)])
			}
			add(hold)
		}
		add(history.Op{Kind: history.End, Key: key, Call: begin, Due: begin, Return: tick(3), Outcome: history.OK})
	}
	if r.IntN(3) == 0 { // the run ends during its visit
		ops = ops[:len(ops)-1-r.IntN(min(3, len(ops)-1))]
	}
	return ops
}

// lived is a hold or a wait, in the form for the oracle.
type lived struct{ from, to time.Duration }

// slowly computes the outages of a page by their definition, from all holds and all waits.
func slowly(ops []history.Op, key int32, least, end time.Duration) (found []string) {
	var holds, waits []lived
	grants := map[time.Duration]bool{}
	byWorker := map[int32][]history.Op{}
	for _, op := range ops {
		byWorker[op.Worker] = append(byWorker[op.Worker], op)
	}
	for _, list := range byWorker {
		slices.SortFunc(list, func(a, b history.Op) int { return cmp.Compare(a.ID, b.ID) })
		first, until, granted := time.Duration(-1), time.Duration(0), time.Duration(-1)
		for _, op := range list {
			over := time.Duration(-1)
			switch {
			case op.Key != key:
				continue
			case op.Kind == history.Acquire:
				if first < 0 {
					first = op.Call
				}
				if op.Outcome == history.OK {
					waits, grants[op.Return] = append(waits, lived{first, op.Return}), true
					first, granted, until = -1, op.Return, cmp.Or(op.Until, history.Forever)
				}
			case op.Kind == history.Extend:
				until = op.Until
			case op.Kind == history.Release, op.Kind == history.Crash:
				over = op.Call
			case op.Kind == history.Lose, op.Kind == history.End:
				if over = op.Return; first >= 0 {
					waits, first = append(waits, lived{first, op.Return}), -1
				}
			}
			if over >= 0 && granted >= 0 {
				holds, granted = append(holds, lived{granted, max(granted, min(over, until))}), -1
			}
		}
		if granted >= 0 {
			holds = append(holds, lived{granted, max(granted, until)})
		}
		if first >= 0 {
			waits = append(waits, lived{first, history.Forever})
		}
	}
	return gapsBetween(holds, waits, grants, key, least, end)
}

func gapsBetween(holds, waits []lived, grants map[time.Duration]bool, key int32, least,
	end time.Duration) (found []string) {
	for _, to := range append([]time.Duration{end}, slices.Collect(maps.Keys(grants))...) {
		from := time.Duration(0) // the last earlier time at which a hold was in progress
		for _, h := range holds {
			if h.from < to {
				from = max(from, min(h.to, to))
			}
		}
		asked := history.Forever
		for _, w := range waits {
			if w.from < to && w.to > from {
				asked = min(asked, w.from)
			}
		}
		if from = max(from, asked); to-from >= least && (to != end || !grants[end]) {
			found = append(found, fmt.Sprintf("page %d from %d to %d", key, from, to))
		}
	}
	return found
}

// TestOutagesAgreeWithTheirDefinition compares the results of the meter with a direct implementation of the
// definition, on random histories. The meter gets operations in the order of their returns.
func TestOutagesAgreeWithTheirDefinition(t *testing.T) {
	t.Parallel()
	total := 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		workers, keys := 1+r.IntN(5), 1+r.IntN(2)
		var ops []history.Op
		unique := time.Duration(0)
		for w := range workers {
			ops = append(ops, visitsOf(r, int32(w), keys, &unique)...)
		}
		slices.SortFunc(ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
		end := ops[len(ops)-1].Return + 5
		m := NewMeter(Options{Workers: workers, Keys: keys, To: end, Backoff: ms})
		for i := range ops {
			m.Observe(&ops[i])
		}
		m.Finish()
		var got, want []string
		for _, g := range m.outages.all(m.workers, end) {
			got = append(got, fmt.Sprintf("page %d from %d to %d", g.key, g.from, g.to))
		}
		for key := range keys {
			want = append(want, slowly(ops, int32(key), 100*ms, end)...)
		}
		slices.Sort(got)
		slices.Sort(want)
		if total += len(want); !slices.Equal(got, want) {
			var text strings.Builder
			for _, op := range ops {
				fmt.Fprintf(&text, "w%d page %d %s %s %s call %d return %d until %d\n", op.Worker, op.Key, op.Kind,
					op.Outcome, op.Reason, op.Call, op.Return, op.Until)
			}
			t.Fatalf("seed %d: got\n%s\nwant\n%s\nof\n%s", seed, strings.Join(got, "\n"), strings.Join(want, "\n"),
				text.String())
		}
	}
	if total < 600 {
		t.Errorf("%d outages in all: nothing to compare", total)
	}
}

// TestWhatARecoveryIsSpentOn: known events of servers and replies divide the time.
func TestWhatARecoveryIsSpentOn(t *testing.T) {
	t.Parallel()
	noticed := results.RoleChange{Node: "s0", Became: results.NoticedDown, After: int64(400 * ms), By: int64(500 * ms)}
	primary := results.RoleChange{Node: "n1", Became: results.BecamePrimary, After: int64(800 * ms),
		By: int64(1000 * ms)}
	mended := &results.FaultWindow{Healing: 700 * ms, To: 900 * ms}
	for name, c := range map[string]struct {
		answered time.Duration
		fault    *results.FaultWindow
		roles    []results.RoleChange
		want     string
	}{
		"the end was first": {2000 * ms, &results.FaultWindow{Healing: 2100 * ms}, nil, "down 1.90 s"},
		"sentinel": {1500 * ms, mended, []results.RoleChange{noticed, primary},
			"detection 400 ms, election 500 ms, reconnecting 500 ms, a lease not given back 500 ms"},
		"nobody told when": {2000 * ms, nil, []results.RoleChange{primary},
			"detection and election 900 ms, reconnecting 1.00 s"},
		"answered at once": {850 * ms, nil, []results.RoleChange{primary},
			"detection and election 750 ms, a lease not given back 1.15 s"},
		"one server":        {2000 * ms, mended, nil, "down 600 ms, reconnecting 1.30 s"},
		"a crashed worker":  {100 * ms, nil, nil, "a lease not given back 1.90 s"},
		"nothing was known": {2000 * ms, nil, nil, "unserved 1.90 s"},
		"too late": {750 * ms, nil, []results.RoleChange{primary},
			"unserved 650 ms, a lease not given back 1.25 s"},
	} {
		x := timeline{begin: 100 * ms, end: 2000 * ms, answered: c.answered, fault: c.fault, roles: c.roles,
			open: c.fault != nil && c.fault.Healing > 2000*ms}
		o := results.Outage{Parts: x.parts()}
		if got := strings.ReplaceAll(o.PartsText(), "\u00a0", " "); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestAFaultOwnsOutagesUntilThePageIsServedAgain: once a page was served again after a fault, that fault no longer
// explains outages of the page, even if it is still in force. A later outage belongs to a later fault, or to no
// fault.
func TestAFaultOwnsOutagesUntilThePageIsServedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second bool // a fault at 7 s
		want   []string
	}{
		"the machine paused": {false, []string{"0 1.51s", "- 600ms"}},
		"a worker crashed":   {true, []string{"0 1.51s", "1 600ms"}},
	} {
		s := &script{}
		fault := func(value int64, at time.Duration) {
			s.op(-1, history.Fault, 0, at, at+10*ms, history.OK, history.None)
			s.ops[len(s.ops)-1].Value, s.ops[len(s.ops)-1].Key = value, -1
		}
		s.visit(0, 1900*ms, 1950*ms, 1990*ms)
		fault(0, 2000*ms)
		s.visit(1, 1980*ms, 3510*ms, 3520*ms) // the lock is served again
		for at := 3600 * ms; at < 7000*ms; at += 90 * ms {
			s.visit(0, at, at+ms, at+2*ms)
		}
		if c.second {
			fault(1, 6995*ms)
		}
		s.op(0, history.Acquire, 0, 6998*ms, 6999*ms, history.OK, history.None)
		s.op(0, history.Crash, 0, 7000*ms, 7000*ms, history.OK, history.None)
		s.visit(1, 6999*ms, 7600*ms, 7610*ms)
		a := s.meter(Options{Workers: 2, Keys: 1, To: 9 * time.Second, Backoff: ms}).Availability(nil)
		var got []string
		for _, o := range a.Outages {
			of := "-"
			if o.Fault != nil {
				of = fmt.Sprint(*o.Fault)
			}
			got = append(got, of+" "+time.Duration(o.Recovery).String())
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if a.Recovery == nil || *a.Recovery != int64(1510*ms) {
			t.Errorf("%s: the recovery is %v", name, a.Recovery)
		}
	}
}

// TestAnOutageStaysFoundAmongGaps: rarely visited pages have many gaps in which no worker asked.
func TestAnOutageStaysFoundAmongGaps(t *testing.T) {
	t.Parallel()
	s := &script{}
	s.visit(0, 50*ms, 51*ms, 52*ms)
	s.visit(0, 300*ms, 700*ms, 701*ms)
	for i := range time.Duration(3 * keptGaps) {
		at := time.Second + i*200*ms
		s.visit(0, at, at+ms, at+2*ms)
	}
	m := s.meter(Options{Workers: 1, Keys: 1, To: time.Hour, Backoff: ms})
	a := m.Availability(nil)
	if a.Count != 1 || a.Longest != int64(400*ms) || a.Total != a.Longest || len(m.outages.found) != 1 {
		t.Errorf("got %+v", a)
	}
}

// TestALockThatComesBack: after a release, the servers reply that the lock is held again. It counts as resurrected
// only if no try of a worker can be the reason, and the release had returned.
func TestALockThatComesBack(t *testing.T) {
	released, asked := 51*ms, 401*ms
	for name, c := range map[string]struct {
		released, asked time.Duration // return of the release, and call of the next grant
		outcome         history.Outcome
		reason          history.Reason // of another worker's try; None = there is none
		want            int
	}{
		"it comes back":            {released, asked, 0, history.None, 1},
		"a slow release":           {380 * ms, asked, 0, history.None, 0},
		"a release of 250 ms":      {330 * ms, asked, 0, history.None, 0},
		"a slow grant":             {released, 55 * ms, 0, history.None, 0},
		"a try of unknown fate":    {released, asked, history.Unknown, history.Dropped, 0},
		"a try that is taken back": {released, asked, history.Failed, history.Quorum, 0},
		"a try that came too late": {released, asked, history.Failed, history.Expired, 0},
		"a try that fails":         {released, asked, history.Failed, history.Unreachable, 1},
	} {
		s := &script{}
		id := s.op(0, history.Acquire, 0, 1*ms, 2*ms, history.OK, history.None)
		s.op(0, history.Release, 0, 50*ms, c.released, history.OK, history.None)
		s.ops[len(s.ops)-1].Hold = id
		if c.reason != history.None {
			s.op(2, history.Acquire, 0, 52*ms, 53*ms, c.outcome, c.reason)
		}
		for at := 60 * ms; at < 400*ms; at += 20 * ms {
			s.op(1, history.Acquire, 0, at, at+ms, history.Failed, history.Busy)
		}
		s.op(3, history.Acquire, 0, c.asked, 410*ms, history.OK, history.None)
		slices.SortStableFunc(s.ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
		a := s.meter(Options{Workers: 4, Keys: 1, To: time.Second, Backoff: ms}).Availability(nil)
		if a == nil || len(a.Outages) == 0 || a.Outages[0].Resurrected != c.want {
			t.Errorf("%s: got %+v, want %d", name, a, c.want)
		}
	}
}

// TestALockThatKeepsItsOwnPauses: the lock itself pauses for 200 ms between tries. A grant that comes late for this
// reason is no outage. The servers do not count as silent between the tries.
func TestALockThatKeepsItsOwnPauses(t *testing.T) {
	t.Parallel()
	s := &script{}
	asks := func(at time.Duration, o history.Outcome, why history.Reason) history.ID {
		id := s.op(1, history.Acquire, 0, at, at+ms, o, why)
		s.ops[len(s.ops)-1].Woken = history.Poll
		return id
	}
	at := ms
	for range 10 {
		s.visit(0, at, at+ms, at+100*ms)
		asks(at+50*ms, history.Failed, history.Busy)
		id := asks(at+250*ms, history.OK, history.None)
		s.op(1, history.Release, 0, at+350*ms, at+351*ms, history.OK, history.None)
		s.ops[len(s.ops)-1].Hold = id
		at += 400 * ms
	}
	s.op(0, history.Acquire, 0, at, at+ms, history.OK, history.None)
	s.ops[len(s.ops)-1].Until = at + 100*ms
	for i := range time.Duration(25) {
		asks(at+50*ms+i*200*ms, history.Failed, history.Busy)
	}
	asks(at+5050*ms, history.OK, history.None)
	slices.SortStableFunc(s.ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	a := s.meter(Options{Workers: 2, Keys: 1, To: 10 * time.Second, Backoff: ms}).Availability(nil)
	if len(a.Outages) != 1 || a.Longest != int64(4951*ms) || a.Least < int64(1500*ms) || a.Least > int64(2500*ms) {
		t.Fatalf("got %+v, want one outage of 4.951 s, at least ten pauses of 200 ms", a)
	}
	if parts := a.Outages[0].Parts; len(parts) != 1 || parts[0].Name != results.LeaseLeft {
		t.Errorf("it was spent on %+v, want the lease only", parts)
	}
}

// TestALeaseThatIsRenewedIsNoOutage: the extension of a lease in the background has a token, but no page. The meter
// must use the token. Otherwise the page would seem unavailable from the end of the first lease.
func TestALeaseThatIsRenewedIsNoOutage(t *testing.T) {
	s := &script{}
	id := s.op(0, history.Acquire, 0, 1*ms, 2*ms, history.OK, history.None)
	s.ops[0].Until, s.ops[0].Token = 300*ms, 7
	s.op(1, history.Acquire, 0, 3*ms, 4*ms, history.Failed, history.Busy)
	for at := 200 * ms; at < 900*ms; at += 200 * ms {
		s.op(0, history.Extend, 0, at, at+ms, history.OK, history.None)
		s.ops[len(s.ops)-1].Until, s.ops[len(s.ops)-1].Token = at+300*ms, 7
	}
	s.op(0, history.Release, 0, 950*ms, 951*ms, history.OK, history.None)
	s.ops[len(s.ops)-1].Hold = id
	s.op(1, history.Acquire, 0, 952*ms, 953*ms, history.OK, history.None)
	m := s.meter(Options{Workers: 2, Keys: 1, To: time.Second, Backoff: ms})
	if a := m.Availability(nil); a == nil || len(a.Outages) != 0 {
		t.Errorf("got %+v, want no outage", a)
	}
}

// TestAnOutageThatOutlastsTheMeasurementIsOpen: the time after the measurement does not belong to it.
func TestAnOutageThatOutlastsTheMeasurementIsOpen(t *testing.T) {
	t.Parallel()
	s := &script{}
	s.visit(0, 50*ms, 51*ms, 52*ms)
	s.visit(0, 300*ms, 700*ms, 701*ms)
	for end, open := range map[time.Duration]bool{600 * ms: true, 800 * ms: false} {
		a := s.meter(Options{Workers: 1, Keys: 1, To: end, Backoff: ms}).Availability(nil)
		if len(a.Outages) != 1 || a.Outages[0].Open != open || a.Outages[0].To != int64(min(end, 700*ms)) {
			t.Errorf("measured for %v: got %+v", end, a)
		}
	}
}
