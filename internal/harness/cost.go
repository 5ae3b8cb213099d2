package harness

import (
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
)

// measured returns what the judge must know besides the operations: about the lock's program, about the work of the
// servers (if the scenario asks for it), and about the programs of a service.
func (x *Run) measured(r *crew.Report) *history.Measured {
	m := history.Measured{Driver: x.run.Driver.Measured(), Hung: r.Hung, Crashes: r.Crashes, Wear: r.Wear,
		Stream: x.run.Stream, Said: r.Said, Unseen: x.deployment.Unseen(),
		Elsewhere: x.deployment.Elsewhere()}
	if run := x.run; x.combo.Scenario.CostJudged {
		m.Cost = &history.Cost{Visits: run.Visits.Done, Commands: run.Cost.Commands, RoundTrips: run.Cost.RoundTrips,
			Duration: time.Duration(run.Duration)}
		if lasted, workers := m.Cost.Duration, x.combo.Plan.Workload.Workers; r.CPU > 0 && lasted > 0 &&
			x.combo.Plan.Processes > 1 {
			cpu := float64(r.CPU) / float64(lasted) / float64(workers)
			m.Cost.CPU = &cpu
		}
	}
	if x.combo.Topology.Can().Lock {
		m.Programs, m.Ended = x.combo.Plan.programs(), x.incidents
	}
	return &m
}
