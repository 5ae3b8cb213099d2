package scenarios

import (
	"time"

	"hammerlock/workload"
)

var ambiguous = Scenario{
	Name:     "ambiguous",
	Doc:      "answers are lost: what was done is not known to who asked for it",
	For:      expires,
	Faults:   []string{"drop-reply:20@500ms", "drop-reply:20@1500ms", "drop-reply:20@2500ms"},
	Duration: 6 * time.Second,
	Shape:    func(w *workload.Shape) { w.Keys = 4 },
}
