package scenarios

import (
	"time"
)

var contention = Scenario{
	Name:     "contention",
	Doc:      "many workers want one lock, and nothing breaks",
	Duration: 1500 * time.Millisecond,
}
