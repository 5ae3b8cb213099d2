package scenarios

import (
	"time"

	"hammerlock/workload"
)

var ambiguous = Scenario{
	Name:     "ambiguous",
	Class:    LostAnswers,
	Doc:      "answers are lost: what was done is not known to who asked for it",
	For:      expires,
	Faults:   []string{"drop-reply:20@300ms", "drop-reply:20@700ms", "drop-reply:20@1100ms"},
	Duration: 2600 * time.Millisecond,
	Leases:   1,
	Shape:    func(w *workload.Shape) { w.Keys = 4 },
}
