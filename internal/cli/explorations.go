package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hammerlock/explore"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// explorations is a series of explorations, one lock after the other.
type explorations struct {
	*series
	x       *exploreOptions
	orders  []explore.Orders
	all     []explore.Report
	dirs    []string            // directory of the counterexample of each exploration; empty = there is none
	judged  []results.Judgement // nil for a replay
	unsaved error
}

func (r *explorations) steps(yield func(*step) bool) {
	for i := range r.orders {
		o := &r.orders[i]
		st := &step{instead: func(_, stop context.Context) (*results.Run, error) { return nil, r.one(stop, o, i+1) }}
		if !o.Replay {
			st.title = fmt.Sprintf("exploring %s: %s", o.Lock, o.Options.Plan())
		}
		if !yield(st) {
			break
		}
	}
	if r.x.sweep != "" && len(r.all) > 0 {
		r.dirs[0], r.failure = r.x.saveSweep(r.all, r.begun)
		r.kept(r.dirs[0])
	}
}

// The method one carries out one exploration. If that is interrupted, its result is inconclusive, and those of
// earlier ones are kept.
func (r *explorations) one(stop context.Context, o *explore.Orders, number int) error {
	shown := r.watch(o, number, len(r.orders))
	report, dir, err := r.x.one(stop, *o)
	if err != nil && report.Found == nil {
		if stop.Err() == nil || o.Sweep != nil {
			shown.over()
			return err
		}
		report.Reason, err = fmt.Sprintf("%v after %s", err, human.Quantity(shown.last.Schedules, "schedule")), nil
	}
	r.kept(dir)
	j := explored(report, dir, r.x.command(*o))
	j.Took = report.Took
	shown.end(&report, &j)
	r.all, r.dirs, r.unsaved = append(r.all, report), append(r.dirs, dir), errors.Join(r.unsaved, err)
	if !o.Replay {
		r.judged = append(r.judged, j)
	}
	return nil
}

// kept writes the extra files beside a counterexample that was saved in dir, if there is one.
func (r *explorations) kept(dir string) {
	if dir != "" {
		r.saved(dir)
	}
}

// watchedExploration shows an exploration to the user. For the outputs at a network address, its progress is events
// like those of a run.
type watchedExploration struct {
	views shows
	event harness.Event
	last  explore.Progress
	over  func() // ends the display of the progress
}

// watch starts to show an exploration, whose progress it gets by the orders.
func (s *series) watch(o *explore.Orders, number, of int) *watchedExploration {
	begun := time.Now()
	x := &watchedExploration{views: s.views, event: harness.Event{Number: number, Of: of, Stage: harness.Starting}}
	c := &x.event.Combination
	c.Topology.Name, c.Lock.Name, c.Scenario = "memory", o.Lock, exploreScenario
	tell, over := s.e.exploring(s.o, o.Lock)
	x.over = over
	x.send(harness.Exploration{})
	x.event.Stage = harness.Running
	o.Tell = func(p explore.Progress) {
		if tell != nil {
			tell(p)
		}
		x.last, x.event.Took = p, time.Since(begun)
		x.send(harness.Exploration{Progress: p})
	}
	return x
}

func (x *watchedExploration) send(now harness.Exploration) {
	event := x.event
	event.Explored = &now
	x.views.tell(event)
}

// end shows the result of the exploration, with its judgement.
func (x *watchedExploration) end(r *explore.Report, j *results.Judgement) {
	x.over()
	x.event.Stage, x.event.Took, x.event.Folder, x.event.Name = harness.Saved, r.Took, j.Saved, "explore-"+r.Lock
	x.event.Run = &results.Run{Name: x.event.Name, Explored: true, Topology: j.Topology, Lock: j.Lock,
		Scenario: j.Scenario, Verdicts: j.Verdicts}
	x.send(harness.Exploration{Progress: r.Last(), Result: r})
}
