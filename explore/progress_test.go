package explore

import (
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
)

// TestProgressIsTold: the number of schedules with these deviations and with more, and at the end all of them.
func TestProgressIsTold(t *testing.T) {
	o := bounded(2)
	o.Visits, o.only = 1, pauses
	var told []Progress
	s := newSearch(t, find(t, "lease"), o)
	s.o.tell = func(p Progress) {
		told = append(told, p)
		s.told = time.Time{} // report again immediately
	}
	if err := s.levels(); err != nil {
		t.Fatal(err)
	}
	if n := s.report.Schedules(); len(told) != n {
		t.Fatalf("got %d lines for %d schedules", len(told), n)
	}
	first, last := told[1], told[len(told)-1] // after the plain schedule
	if first.Deviations != 1 || first.Of != s.report.Levels[1].Schedules || first.Further < last.Of/2 ||
		first.Further > 2*last.Of {
		t.Errorf("got %+v, want about %d schedules with two deviations", first, last.Of)
	}
	if last.Run != last.Of || last.Of != s.report.Levels[2].Schedules || last.Further != 0 {
		t.Errorf("got %+v, want all schedules with two deviations", last)
	}
}

func TestProgressInWords(t *testing.T) {
	for want, p := range map[string]Progress{
		"with 1 deviation 40 of 240 schedules, then about 28000 with more, 1000 a second, about 29s to go": {
			Deviations: 1, Run: 40, Of: 240, Further: 28000, Speed: 1000,
		},
		"with 2 deviations 12000 of 27000 schedules, 2000 a second, about 8s to go, 5s of the budget left": {
			Deviations: 2, Run: 12000, Of: 27000, Speed: 2000, Left: 5 * time.Second,
		},
		"1500 random schedules with up to 6 deviations, 500 a second, 1s of the budget left": {Deviations: 6, Run: 1500,
			Speed: 500, Left: time.Millisecond, Random: true},
		"1500 of 2000 random schedules, 500 a second, about 1s to go": {Deviations: 6, Run: 1500, Of: 2000,
			Speed: 500, Random: true},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestPowerIsALowerBound: random schedules find a violation that needs one certain deviation at least as often as
// Power says.
func TestPowerIsALowerBound(t *testing.T) {
	b := &Beyond{Schedules: 2000, Fewest: 2, Deviations: 5, Decisions: 50, Options: 11}
	// Two of 50 decisions are 1225 pairs, with 10 options each. One in four schedules has two deviations.
	for _, want := range []string{
		"with a probability of\n86.5 %", "one of depth 2 with at least 0.407 %, one of depth 3",
	} {
		if !strings.Contains(b.Power(), want) {
			t.Errorf("got %q, want %q", b.Power(), want)
		}
	}
	o := bounded(0)
	o.Visits, o.Schedules, o.Seed, o.only = 1, 600, 1, pauses
	s, hits := newSearch(t, find(t, "lease"), o), 0
	s.judged = func(run *schedule, _ *checker.Verdict) bool {
		if len(run.taken) == 1 && run.taken[0].At == 3 {
			hits++
		}
		return false
	}
	if err := s.levels(); err != nil {
		t.Fatal(err)
	}
	b = s.report.Beyond
	once := 1.0 / float64(b.Deviations) / float64(b.Decisions) / float64(b.Options-1)
	if float64(hits) < 0.7*600*once { // the number of hits varies
		t.Errorf("it was drawn %d times, less often than %.2g of 600", hits, once)
	}
}
