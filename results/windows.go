package results

import (
	"time"

	"hammerlock/history"
)

// FaultWindow is when a fault of the plan was in force. Times count from the start of the run; one that never came
// is history.Forever.
type FaultWindow struct {
	Fault    int64         `json:"fault"`       // its number in Run.Faults
	From     time.Duration `json:"from_ns"`     // the injection began
	Injected time.Duration `json:"injected_ns"` // it was done
	Healing  time.Duration `json:"healing_ns"`  // the mend began
	To       time.Duration `json:"to_ns"`       // everything was healthy again
	Failed   bool          `json:"failed,omitempty"`
}

// broken takes a fault or its mend into account.
func (m *Meter) broken(op *history.Op) {
	switch op.Kind {
	case history.Fault:
		m.faults = append(m.faults, FaultWindow{
			Fault: op.Value, From: op.Call, Injected: op.Return, Healing: history.Forever, To: history.Forever,
			Failed: op.Outcome != history.OK,
		})
	case history.Heal:
		for i := len(m.faults) - 1; i >= 0; i-- {
			if f := &m.faults[i]; f.Fault == op.Value && f.Healing == history.Forever {
				f.Healing, f.To = op.Call, op.Return
				return
			}
		}
	}
}
