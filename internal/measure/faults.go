package measure

import (
	"hammerlock/history"
	"hammerlock/results"
)

// faultWindows has, for each fault in the order of injection, the time in which it was in force.
type faultWindows []results.FaultWindow

func (f *faultWindows) observe(op *history.Op) {
	switch op.Kind {
	case history.Fault:
		*f = append(*f, results.FaultWindow{
			Fault: op.Value, From: op.Call, Injected: op.Return, Healing: history.Forever, To: history.Forever,
			Failed: op.Outcome != history.OK,
		})
	case history.Heal:
		for i := len(*f) - 1; i >= 0; i-- {
			if w := &(*f)[i]; w.Fault == op.Value && w.Healing == history.Forever {
				w.Healing, w.To = op.Call, op.Return
				return
			}
		}
	}
}
