package harness

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/results"
)

// TestARoomHasLimits: a plan may fix the number of parallel runs. Otherwise a run begins only when the effect of the
// last one on the machine is known, and there are at most about twice as many runs as cores.
func TestARoomHasLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fixed, measured := room{jobs: 3}, room{}
		for running := range 5 {
			if got := fixed.more(running); got != (running < 3) {
				t.Errorf("3 jobs, %d running: %v", running, got)
			}
		}
		if measured.more(1) {
			t.Error("a run has room before anything was measured")
		}
		for range 3 * settled / asked {
			<-time.After(asked)
			if measured.more(2*runtime.GOMAXPROCS(0) + 2) {
				t.Fatal("there is no end of runs")
			}
		}
		<-time.After(settled + prompt)
		if measured.more(1) {
			t.Error("a run has room although the room was asked far too late")
		}
	})
}

// TestAJobSaysHowFarItIs: the estimate for the remaining runs assumes that they are as slow, compared with their
// planned lengths, as those that ended. A repeated run does not count twice.
func TestAJobSaysHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Combination{Plan: Plan{Duration: 1500 * time.Millisecond, Warmup: time.Second}}
		j := Job{Plan: Plan{Jobs: 1}, Combinations: []Combination{c, c, c}, begun: time.Now()}
		if got := j.Expected(); got != 9*time.Second {
			t.Errorf("three times three seconds take %v", got)
		}
		<-time.After(6 * time.Second)
		e := Event{Stage: Saved, Combination: c}
		j.count(&e)
		if e.Ended != 1 || e.Left != 12*time.Second {
			t.Errorf("after one of three in 6 s: %d, %v left", e.Ended, e.Left)
		}
		e.Combination.Before = []string{"it was too short"}
		if j.count(&e); e.Ended != 1 || e.Left != 12*time.Second {
			t.Errorf("asked again: %d, %v left", e.Ended, e.Left)
		}
	})
}

// TestWhatBreaksBesideOthersIsAskedAgain: a run that could not be made beside other runs is repeated, since those may
// be the reason. A run that could not be made alone is an error.
func TestWhatBreaksBesideOthersIsAskedAgain(t *testing.T) {
	broken := errors.New("the servers did not come up")
	for beside, want := range map[bool]error{true: nil, false: broken} {
		b := batch{Job: &Job{Plan: Plan{Attempts: 1}}, runs: map[int]*results.Run{}}
		b.take(outcome{question{number: 3, shared: beside}, nil, broken})
		if b.err != want || len(b.open) == 1 != beside || beside && !b.open[0].spoilt() {
			t.Errorf("beside others %v: %v, to be asked again: %v", beside, b.err, b.open)
		}
		if b.Plan.Attempts = 0; beside {
			if b.again(t.Context(), t.Context()); b.err != broken {
				t.Errorf("no time to ask again: %v", b.err)
			}
		}
	}
}
