package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/results"
)

// Record is what the run of a cell showed.
type Record struct {
	Cell
	Seed     uint64         `json:"seed"`
	Tries    int            `json:"tries"`
	Status   checker.Status `json:"status"`
	Findings []finding      `json:"findings,omitempty"` // what failed, the most telling checker first
	Summary  string         `json:"summary"`

	Holds      int64         `json:"holds"` // that were judged: contended ones, or all if exclusion was not judged
	Violations int64         `json:"violations"`
	Detected   time.Duration `json:"detected_ns,omitempty"` // when the first violation was complete, since the run's start
	Took       time.Duration `json:"took_ns"`
	Saved      string        `json:"saved,omitempty"` // where the history is
	Command    string        `json:"command"`
	Error      string        `json:"error,omitempty"` // why it could not be run
}

type finding struct {
	Checker string `json:"checker"`
	Cause   string `json:"cause"`
	Others  string `json:"others,omitempty"` // further causes, by commas
}

// observe writes what a run showed into the record.
func (r *Record) observe(run *results.Run) {
	r.Status, r.Summary = run.Safety()
	r.Findings, r.Detected, r.Violations = nil, 0, 0
	for i := range run.Verdicts {
		v := &run.Verdicts[i]
		if v.Checker == checker.Activity.Name || v.Checker == checker.Exclusion.Name && v.Exposed > 0 {
			r.Holds = v.Exposed
		}
		if v.Status != checker.Fail {
			continue
		}
		r.Findings = append(r.Findings, finding{v.Checker, v.Cause, others(v)})
		r.Violations = cmp.Or(r.Violations, v.Violations)
		if at := v.Proved(); at > 0 && (r.Detected == 0 || at < r.Detected) {
			r.Detected = at
		}
	}
}

func others(v *checker.Verdict) string {
	var list []string
	for cause, n := range v.Causes {
		if cause != v.Cause && n > 0 {
			list = append(list, cause)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// cause is the first cause that the cell failed with; empty if it did not fail.
func (r *Record) cause() string {
	if len(r.Findings) == 0 {
		return ""
	}
	return cmp.Or(r.Findings[0].Cause, r.Findings[0].Checker)
}

// shows tells whether a cause was found. It may be named with its checker, as in fencing:stale-store, or be a
// checker's name alone.
func (r *Record) shows(cause string) bool {
	name, of, both := strings.Cut(cause, ":")
	return slices.ContainsFunc(r.Findings, func(f finding) bool {
		if both {
			return f.Checker == name && f.has(of)
		}
		return f.Checker == cause || f.has(cause)
	})
}

func (f *finding) has(cause string) bool {
	return f.Cause == cause || slices.Contains(strings.Split(f.Others, ","), cause)
}

// bound is the 95 % upper bound of the rate of violations if none was seen in so many holds: the rule of three.
func bound(holds int64) float64 { return min(3/float64(max(holds, 1)), 1) }

// Result is a cell with what was expected of it.
type Result struct {
	Record
	Expected expectation `json:"expected"`
	Found    string      `json:"found"` // see Word
	Red      bool        `json:"red"`
	Why      string      `json:"why,omitempty"` // it is red
	Upper    float64     `json:"upper_95,omitempty"`
}

func compare(r Record, e expectation) Result {
	x := Result{Record: r, Expected: e}
	if r.Status == checker.Pass {
		x.Upper = bound(r.Holds)
	}
	switch {
	case r.Error != "":
		x.Why = "it could not be run: " + r.Error
	case e.Want == mayFail:
	case e.Want == mustPass && r.Status == checker.Pass:
	case e.Want == mustPass:
		x.Why = "it must pass: " + r.Summary
	case e.Want == mustFail && r.Status == checker.Fail:
		if !slices.ContainsFunc(e.Causes, r.shows) {
			x.Why = fmt.Sprintf("it must fail with %s, not with %s", strings.Join(e.Causes, " or "), r.cause())
		}
	case e.Want == mustFail && r.Status == checker.Pass:
		x.Why = fmt.Sprintf("it must fail with %s and passed", strings.Join(e.Causes, " or "))
	case e.Want == mustFail:
		x.Why = fmt.Sprintf("it must fail with %s: %s", strings.Join(e.Causes, " or "), r.Summary)
	default:
		x.Why = "nothing was expected of it"
	}
	x.Red, x.Found = x.Why != "", x.Word()
	return x
}

// Word is the result in a word: the expected cause, if the cell failed with it.
func (r *Result) Word() string {
	switch {
	case r.Error != "":
		return "not run"
	case r.Status == checker.Pass:
		return "PASS"
	case r.Status == checker.Inconclusive:
		return "inconclusive"
	}
	for _, cause := range r.Expected.Causes {
		if r.shows(cause) {
			return cause
		}
	}
	return r.cause()
}

// again tells whether to run a cell once more, because the record does not settle what is expected.
func again(r *Record, e expectation) bool {
	other := r.Status == checker.Fail && e.Want == mustFail && !slices.ContainsFunc(e.Causes, r.shows) // what the fault does to any lock came first
	return r.Error != "" || other || r.Status == checker.Inconclusive && (e.Want == mustPass || e.Want == mustFail)
}
