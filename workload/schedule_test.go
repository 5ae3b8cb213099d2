package workload

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"hammerlock/history"
)

// stretches puts loads one after another.
func stretches(all ...Stretch) []Stretch {
	var at time.Duration
	for i := range all {
		all[i].From = at
		at += all[i].To // in the tests, To is a length
		all[i].To = at
	}
	return all
}

// dueIn counts the visits of a schedule that are due in a period.
func dueIn(all []arrival, from, to time.Duration) (n int) {
	for _, v := range all {
		if v.due >= from && v.due < to {
			n++
		}
	}
	return n
}

// TestStretchesHaveTheirRates: with uniform arrivals, each stretch has as many visits as its rate says. Each half
// and quarter of a stretch has as many visits as the integral of the rate says.
func TestStretchesHaveTheirRates(t *testing.T) {
	p := Shape{Workers: 1, Keys: 1, Rate: 1, Arrivals: Uniform, Seed: 3, Stretches: stretches(
		Stretch{To: 2 * time.Second, Rate: Rate{First: 100, Last: 100}},
		Stretch{To: 10 * time.Second, Rate: Rate{First: 100, Last: 500}},
		Stretch{To: time.Second},
		Stretch{To: 2 * time.Second, Rate: Rate{First: 50, Last: 50}, Burst: 300},
		Stretch{To: 8 * time.Second, Rate: Rate{First: 200, Last: 200, Amplitude: 200, Period: 4 * time.Second}},
		Stretch{To: time.Second, Burst: 7},
	)}
	p.End = p.Stretches[len(p.Stretches)-1].To
	all := schedule(p)
	if !slices.IsSortedFunc(all, func(a, b arrival) int { return int(a.due - b.due) }) {
		t.Error("the visits are not in the order of time")
	}
	// Half a wave differs from the mean by 2/π of its amplitude.
	for _, c := range []struct {
		from, to time.Duration // in seconds
		want     int
	}{{0, 2, 200}, {2, 7, 1000}, {7, 12, 2000}, {12, 13, 0}, {13, 15, 400}, {15, 17, 655}, {17, 19, 145},
		{19, 23, 800}, {23, 24, 7}} {
		if n := dueIn(all, c.from*time.Second, c.to*time.Second); n < c.want-2 || n > c.want+2 {
			t.Errorf("%d visits from %d s to %d s, want %d", n, c.from, c.to, c.want)
		}
	}
	for at, want := range map[time.Duration]int{13 * time.Second: 300, 23 * time.Second: 7} {
		if n := dueIn(all, at, at+1); n != want {
			t.Errorf("%d visits at once at %s, want %d", n, at, want)
		}
	}
}

// TestAnyStretchesKeepTheirMean draws stretches and compares the schedule with the integral of their rates.
func TestAnyStretchesKeepTheirMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Shape{Workers: 1, Keys: 3, Rate: 1, Arrivals: rapid.SampledFrom(AllArrivals).Draw(t, "arrivals"),
			Seed: rapid.Uint64().Draw(t, "seed")}
		var all []Stretch
		for range rapid.IntRange(1, 4).Draw(t, "stretches") {
			rate := rapid.Float64Range(0, 500)
			s := Stretch{To: time.Duration(rapid.Int64Range(1, int64(3*time.Second)).Draw(t, "length")),
				Burst: rapid.IntRange(0, 20).Draw(t, "burst")}
			s.Rate = Rate{First: rate.Draw(t, "first"), Last: rate.Draw(t, "last")}
			if rapid.Bool().Draw(t, "wave") {
				s.Rate.Amplitude = min(s.Rate.First, s.Rate.Last) * rapid.Float64Range(0, 1).Draw(t, "amplitude")
				s.Rate.Period = time.Duration(rapid.Int64Range(int64(time.Millisecond),
					int64(time.Second)).Draw(t, "period"))
			}
			all = append(all, s)
		}
		p.Stretches = stretches(all...)
		p.End = p.Stretches[len(p.Stretches)-1].To
		got, want := schedule(p), 0.0
		for _, s := range p.Stretches {
			want += s.Visits()
		}
		slack := 2 + float64(len(p.Stretches)) // for rounding
		if p.Arrivals == Poisson {
			slack += 6 * math.Sqrt(want)
		}
		if n := float64(len(got)); math.Abs(n-want) > slack {
			t.Fatalf("%v visits, want %v: %+v", n, want, p.Stretches)
		}
		p.Parts = 2
		q := p
		q.Part = 1
		if a, b := schedule(p), schedule(q); len(a)+len(b) != len(got) {
			t.Fatalf("two processes take %d and %d of %d visits", len(a), len(b), len(got))
		}
	})
}

// TestATraceIsTheSchedule: a trace replaces the rate.
func TestATraceIsTheSchedule(t *testing.T) {
	p := Shape{Workers: 1, Keys: 1, Rate: 5, Trace: []time.Duration{0, 3, 3, 70, 200}, End: 100}
	var got []time.Duration
	for _, v := range schedule(p) {
		got = append(got, v.due)
	}
	if want := p.Trace[:4]; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestOnlyWhoIsCalledVisits: in a closed loop, a stretch limits the number of workers that visit.
func TestOnlyWhoIsCalledVisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = 200 * time.Millisecond
		p := Shape{Workers: 3, Keys: 3, Think: 2 * time.Millisecond, Retry: time.Millisecond, End: 3 * s,
			Stretches: []Stretch{
				{To: s, Workers: 1}, {From: s, To: 2 * s}, {From: 2 * s, To: 3 * s, Workers: 2}}}
		_, ops, _ := run(t, p, catalogued(t, "local"), t.Context())
		visits := [3][3]int{}
		for _, op := range ops {
			if op.Kind == history.End {
				visits[min(op.Due/s, 2)][op.Worker]++
			}
		}
		for stretch, workers := range [][3]bool{{true, false, false}, {true, true, true}, {true, true, false}} {
			for w, works := range workers {
				if n := visits[stretch][w]; works == (n == 0) {
					t.Errorf("worker %d made %d visits in stretch %d", w, n, stretch)
				}
			}
		}
	})
}

// TestALoadInRounds: no visit begins in a rest, and each round has some visits.
func TestALoadInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds, round = 3, time.Second
		p := Shape{Workers: 3, Keys: 3, Think: 2 * time.Millisecond, Retry: time.Millisecond,
			End: rounds * round, Rounds: rounds,
			Rest: 300 * time.Millisecond}
		_, ops, _ := run(t, p, catalogued(t, "local"), t.Context())
		var visits [rounds]int
		for _, op := range ops {
			if op.Kind != history.End {
				continue
			}
			if visits[op.Due/round]++; op.Due%round > round-p.Rest {
				t.Errorf("a visit was due at %v", op.Due)
			}
		}
		if slices.Contains(visits[:], 0) {
			t.Errorf("visits in each round: %v", visits)
		}
	})
}
