package cli

import (
	"context"
	"time"

	"hammerlock/checker"
	"hammerlock/explore"
	"hammerlock/internal/harness"
	"hammerlock/results"
)

// exploreFor is the time limit for exploring one lock, in real time. Most locks take a second or two.
const exploreFor = 20 * time.Second

// exploreFirst explores each lock of a job once, and adds the judgements to the options. The result not has the locks
// that cannot be explored or ran out of time. The result further tells whether the job's runs should follow.
func (s *series) exploreFirst(stop context.Context, job *harness.Job) (not []results.NotRun, further bool) {
	e, o := s.e, s.o
	x := &exploreOptions{e: e, options: o}
	job.Earlier = map[string]time.Duration{}
	for i := range job.Combinations {
		lock := &job.Combinations[i].Lock
		if _, known := job.Earlier[lock.Name]; known || job.Combinations[i].Topology.Can().Lock || stop.Err() != nil {
			continue
		}
		job.Earlier[lock.Name] = 0
		n := results.NotRun{Topology: "memory", Lock: lock.Name, Scenario: exploreScenario.Name}
		orders := explore.Orders{Lock: lock.Name, Options: explore.Briefly(*lock)}
		orders.Options.Budget = max(min(exploreFor, o.plan.Budget), time.Millisecond)
		if err := explore.Excluded(*lock, orders.Options); err != nil {
			n.Why = err.Error()
			not = append(not, n)
			continue
		}
		e.say(o, "exploring %s", lock.Name)
		begun := time.Now()
		shown := s.watch(&orders, i+1, len(job.Combinations))
		r, dir, err := x.one(stop, orders)
		shown.over()
		job.Earlier[lock.Name] = time.Since(begun)
		switch {
		case err != nil && stop.Err() != nil:
			return not, true // the runs report why they ended
		case err == nil && r.Excluded:
			n.Why = r.Verdict()
			not = append(not, n)
		case err == nil && r.Unfinished():
			n.Why, n.Unasked = r.Verdict(), true
			not = append(not, n)
		case err != nil && r.Found == nil:
			r = explore.Report{Lock: lock.Name, Status: checker.Inconclusive, Reason: err.Error()}
			fallthrough
		default:
			if r.Found != nil {
				e.complain(err) // the counterexample could not be saved
			}
			j := explored(r, dir, x.command(orders))
			j.Took = job.Earlier[lock.Name]
			o.explored = append(o.explored, j)
			shown.end(&r, &j)
		}
		if r.Found != nil && o.plan.FailFast {
			return not, false
		}
	}
	return not, len(o.plan.Scenarios) > 0
}
