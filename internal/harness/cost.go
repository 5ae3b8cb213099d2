package harness

import (
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
)

// measured is what the judge must know of a run besides its operations: the program that has the lock, what the load
// made the servers do, in a scenario that asks for it, and programs of a service that ended by themselves.
func (x *Run) measured(r *crew.Report) *history.Measured {
	m := history.Measured{Driver: x.run.Driver.Measured(), Hung: r.Hung, Crashes: r.Crashes, Stream: x.run.Stream}
	if r := x.run; x.combo.Scenario.Frugal {
		m.Cost = &history.Cost{Visits: r.Visits.Done, Commands: r.Cost.Commands, RoundTrips: r.Cost.RoundTrips, Duration: time.Duration(r.Duration)}
	}
	if x.combo.Plan.Service != nil {
		m.Ended = x.incidents
	}
	return &m
}
