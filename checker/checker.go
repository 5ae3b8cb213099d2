package checker

import "hammerlock/history"

// All lists the checkers in the order in which their verdicts are shown.
var All = []Checker{}

// Checker judges one property.
type Checker struct {
	Name string
	Doc  string
	// Applies says whether the property was promised in the run; nil = always. A verdict on what nobody
	// promised could only be a pass for nothing.
	Applies func(*history.Header) bool
	Check   func(*Case) Verdict
}

// Judge lets every checker judge the case whose property applies to it.
func Judge(c *Case) []Verdict {
	verdicts := make([]Verdict, 0, len(All))
	for _, k := range All {
		if k.Applies != nil && !k.Applies(&c.Header) {
			continue
		}
		v := k.Check(c)
		v.Checker = k.Name
		verdicts = append(verdicts, v)
	}
	return verdicts
}
