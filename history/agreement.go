package history

import "time"

// Agreement says how well the clocks of a run's processes agree.
type Agreement struct {
	// Slack is the largest difference between the clocks of any two worker processes; 0 if there is only one process.
	Slack time.Duration `json:"slack_ns"`
	// Doubts has the error bounds of each process's clock, indexed by process number; empty = only Slack is known.
	Doubts []Doubt `json:"doubts,omitempty"`
}

// MaxDoubt is the error bound of a clock about which nothing is known. It is longer than any run.
const MaxDoubt = 1000 * time.Hour

// Doubt is the largest possible error of a process's clock.
type Doubt struct {
	Machine int           `json:"machine"`   // processes with the same number share its clock
	Own     time.Duration `json:"own_ns"`    // error of the process's clock against its machine's
	Offset  time.Duration `json:"offset_ns"` // error of the machine's clock against the run's
}

// Agree computes the Agreement of processes with these error bounds.
func Agree(doubts []Doubt) Agreement {
	a := Agreement{Doubts: doubts}
	for p := range doubts {
		for q := range p {
			a.Slack = max(a.Slack, doubts[p].between(&doubts[q]))
		}
	}
	return a
}

func (d *Doubt) between(e *Doubt) time.Duration {
	if d.Machine == e.Machine {
		return d.Own + e.Own
	}
	return d.Own + d.Offset + e.Own + e.Offset
}

// Between returns the largest difference between the clocks of processes p and q.
func (a *Agreement) Between(p, q int16) time.Duration {
	switch {
	case p == q:
		return 0
	case int(max(p, q)) >= len(a.Doubts):
		return a.Slack
	}
	return a.Doubts[p].between(&a.Doubts[q])
}
