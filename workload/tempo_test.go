package workload

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"hammerlock/history"
)

func TestATempoChangesOnlyWhatIsToCome(t *testing.T) {
	tempo, err := TempoIn(make([]byte, int(unsafe.Sizeof(tempoWords{}))))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		now   time.Duration
		speed float64
	}{{time.Second, 2}, {time.Second, 2.5}, {2 * time.Second, 0.1}, {2010 * time.Millisecond, 7},
		{3 * time.Second, 1}} {
		var before []time.Duration
		const step, end = time.Millisecond, 10 * time.Second
		for at := time.Duration(0); at < end; at += step {
			before = append(before, tempo.due(at))
		}
		from, err := tempo.Change(c.now, c.speed)
		if err != nil || from < c.now+tempoLead || tempo.Speed() != c.speed {
			t.Fatalf("change %d: from %v, speed %v, %v", i, from, tempo.Speed(), err)
		}
		for k, was := range before {
			at := time.Duration(k) * step
			now := tempo.due(at)
			if was < from && now != was {
				t.Fatalf("change %d at %v: what was due at %v is due at %v", i, from, was, now)
			}
			if was >= from && now < from {
				t.Fatalf("change %d at %v: what was to come at %v was due at %v", i, from, was, now)
			}
			if gap := tempo.due(at+step) - now; now >= from &&
				(gap < time.Duration(float64(step)/c.speed)-2 || gap > time.Duration(float64(step)/c.speed)+2) {
				t.Fatalf("change %d: a gap of %v at %v, want %v", i, gap, now, float64(step)/c.speed)
			}
		}
	}
}

func TestATempoIsFullSomeTime(t *testing.T) {
	tempo := NewTempo()
	for range mostChanges {
		if _, err := tempo.Change(0, 2); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tempo.Change(0, 3); !errors.Is(err, errChanges) || tempo.Speed() != 2 {
		t.Errorf("got %v, speed %v", err, tempo.Speed())
	}
	for _, memory := range [][]byte{
		nil, make([]byte, int(unsafe.Sizeof(tempoWords{}))-1), make([]byte, int(unsafe.Sizeof(tempoWords{}))+8)[1:],
	} {
		if _, err := TempoIn(memory); err == nil {
			t.Errorf("%d bytes were enough", len(memory))
		}
	}
}

// TestAChangedRateLosesNoVisit changes the rate while workers wait for visits. Because of the change, some of these
// visits become due, and others are no longer due. Every visit that is due has a worker, or is counted as unfinished.
func TestAChangedRateLosesNoVisit(t *testing.T) {
	const first, apart, told = 300 * time.Millisecond, 100 * time.Millisecond, 50 * time.Millisecond
	for name, c := range map[string]struct {
		rate   float64
		speeds []float64
		least  int // visits
		most   int
	}{
		"as planned":     {200, nil, 140, 180},
		"faster":         {100, []float64{10}, 400, 560},
		"slower":         {1000, []float64{0.05}, 320, 420},
		"wakes sleepers": {1, []float64{300}, 100, 170},
		"to and fro":     {200, []float64{4, 0.01, 5}, 280, 480},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tempo := NewTempo()
				plan := Shape{Workers: 8, Keys: 3, Rate: c.rate, Arrivals: Poisson, End: 800 * time.Millisecond,
					Seed: 5, Wait: time.Minute}
				changed := make(chan struct{})
				go func() {
					defer close(changed)
					<-time.After(told) // long before the change takes effect, but when workers already wait
					for i, speed := range c.speeds {
						if _, err := tempo.Change(first+time.Duration(i)*apart, speed); err != nil {
							t.Error(err)
						}
					}
				}()
				due, ops, _ := runWith(t, plan, catalogued(t, "none"), t.Context(), func(c *Workers) {
					c.Tempo = tempo
				})
				<-changed
				got, early := begun(t, ops, plan.End)
				n := len(got)
				left := due.Unfinished(func(d time.Duration) { got = append(got, d) })
				if int64(n) != due.Begun+due.Skipped || int64(len(got)-n) != left {
					t.Errorf("%d begun, %d skipped, %d left; %d and %d were shown", due.Begun, due.Skipped,
						left, n, len(got)-n)
				}
				want := bent(plan, tempo, due.ended)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("visits were due at\n%v, want\n%v", got, want)
				}
				if n := len(want); n < c.least || n > c.most || early < n/4 {
					t.Errorf("%d visits, want from %d to %d; %d began before the end", n, c.least, c.most, early)
				}
			})
		})
	}
}

// begun returns the due times of the visits that a worker took, and how many of them began before the end.
func begun(t *testing.T, ops []history.Op, end time.Duration) (due []time.Duration, early int) {
	t.Helper()
	for _, op := range ops {
		if op.Kind != history.End && op.Kind != history.Skip {
			continue
		}
		due = append(due, op.Due)
		if op.Call < op.Due {
			t.Errorf("a visit due at %v began at %v", op.Due, op.Call)
		}
		if op.Call < end {
			early++
		}
	}
	return due, early
}

// bent returns the due times before the end, at the tempo.
func bent(plan Shape, tempo *Tempo, end time.Duration) (due []time.Duration) {
	plan.End *= 300 // as much of the schedule as the fastest tempo can bring
	for _, a := range schedule(plan) {
		if d := tempo.due(a.due); d < end {
			due = append(due, d)
		}
	}
	return due
}
