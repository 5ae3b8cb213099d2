package harness

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestARoomHasLimits: so many as the plan says; else none before it is known how the last run went, and few more than there are cores.
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

// TestAJobSaysHowFarItIs: what is left takes as long, for its length, as what is over; what is asked again is not counted.
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
