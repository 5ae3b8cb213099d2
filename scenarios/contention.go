package scenarios

import (
	"time"

	"hammerlock/history"
)

var contention = Scenario{
	Name:     "contention",
	Class:    Contention,
	Doc:      "many workers want one lock, and nothing breaks",
	Shows:    []string{history.Fairness},
	Duration: 1500 * time.Millisecond,
}
