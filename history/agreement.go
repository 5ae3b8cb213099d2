package history

import "time"

// Agreement is how well the clocks of a run's processes agree.
type Agreement struct {
	// Slack is how much the clocks of any two worker processes may differ; 0 within a process.
	Slack time.Duration `json:"slack_ns"`
	// Doubts say more of each process, by its number; empty = nothing but Slack is known.
	Doubts []Doubt `json:"doubts,omitempty"`
}

// MaxDoubt is the doubt of a clock of which nothing is known: it is longer than any run.
const MaxDoubt = 1000 * time.Hour

// Doubt is how far the clock of a process may be off.
type Doubt struct {
	Machine int           `json:"machine"`   // processes with the same number share its clock
	Own     time.Duration `json:"own_ns"`    // the process's clock, from that of its machine
	Offset  time.Duration `json:"offset_ns"` // that of its machine, from the run's
}

// Agree is the agreement of processes of which so much is known.
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

// Between is how much the clocks of two processes may differ.
func (a *Agreement) Between(p, q int16) time.Duration {
	switch {
	case p == q:
		return 0
	case int(max(p, q)) >= len(a.Doubts):
		return a.Slack
	}
	return a.Doubts[p].between(&a.Doubts[q])
}
