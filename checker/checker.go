package checker

// All lists the checkers in the order in which their verdicts are shown.
var All = []Checker{}

// Checker judges one property.
type Checker struct {
	Name  string
	Doc   string
	Check func(*Case) Verdict
}

// Judge lets every checker judge the case.
func Judge(c *Case) []Verdict {
	verdicts := make([]Verdict, len(All))
	for i, k := range All {
		verdicts[i] = k.Check(c)
		verdicts[i].Checker = k.Name
	}
	return verdicts
}
