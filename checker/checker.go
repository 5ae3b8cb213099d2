package checker

import (
	"fmt"
	"runtime"

	"hammerlock/history"
)

// All lists the checkers in the order in which their verdicts are shown.
var All = []Checker{
	Activity,
	Exclusion,
	lostUpdates,
	fencing,
	leaseValidity,
	release,
	liveness,
	reentrancy,
	fairness,
	linearizable,
}

// Checker judges one property.
type Checker struct {
	Name string
	Doc  string
	// Causes are what its verdicts fail with, the worst first.
	Causes []string
	// Applies says whether the property was promised in the run; nil = always. A verdict on what nobody
	// promised could only be a pass for nothing.
	Applies func(*history.Header) bool
	Check   func(*Case) Verdict
}

// manyOps make a history whose judgement takes gigabytes.
const manyOps = 1 << 20

// Judge lets every checker judge the case whose property applies to it. An error says that the checkers contradict
// each other: no verdict can be trusted then.
func Judge(c *Case) ([]Verdict, error) {
	verdicts := make([]Verdict, 0, len(All))
	var wrong error
	for _, k := range All {
		if k.Applies != nil && !k.Applies(&c.Header) {
			continue
		}
		if len(c.Ops) >= manyOps {
			runtime.GC() // what the last checker left behind is a large part of the machine
		}
		v := k.Check(c)
		v.Checker = k.Name
		if v.Cause == harnessError {
			wrong = fmt.Errorf("an error of the checkers themselves: %s", v.Summary)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, wrong
}
