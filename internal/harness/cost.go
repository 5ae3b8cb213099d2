package harness

import (
	"fmt"

	"hammerlock/checker"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// A visit to an uncontended lease costs so many commands: SET, and a script with GET and DEL. A waiter tries once a
// backoff. A storm is more than ten times that, on each server.
const (
	commandsOfALease = 4
	storm            = 10
)

// thrift adds the verdict on what the load made the servers do, in a scenario that asks for it.
func (x *execution) thrift(all []checker.Verdict) []checker.Verdict {
	if !x.combo.Scenario.Frugal {
		return all
	}
	return append(all, weighCost(x.run, x.combo.Topology.Nodes))
}

// weighCost judges what a visit to the only page cost. All but its holder wait for it all the time.
func weighCost(run *results.Run, nodes int) checker.Verdict {
	v := checker.Verdict{Checker: "cost", Exposed: run.Visits.Done, Summary: "it is not known what a visit cost"}
	if run.Cost.Commands == nil || run.Visits.Done == 0 {
		return v
	}
	tries := float64(run.Workers-1) * float64(run.Duration) / float64(run.Visits.Done) / float64(run.Retry)
	most := storm * (commandsOfALease + tries) * float64(nodes)
	v.Summary = fmt.Sprintf("a visit costs %s commands, with up to %d waiting", human.Number(*run.Cost.Commands), run.Workers-1)
	if run.Cost.RoundTrips != nil {
		v.Summary += fmt.Sprintf(", in %s round trips", human.Number(*run.Cost.RoundTrips))
	}
	v.Summary += fmt.Sprintf("; more than %s would be a storm", human.Number(most))
	if v.Status = checker.Pass; *run.Cost.Commands > most {
		v.Status, v.Cause, v.Violations = checker.Fail, "storm", run.Visits.Done
		v.Causes, v.Story = map[string]int64{v.Cause: v.Violations}, []string{v.Summary}
	}
	return v
}
