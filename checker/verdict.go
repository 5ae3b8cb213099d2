// Package checker judges histories. It uses nothing but the history, so any program can repeat a verdict from a file. A
// verdict is Pass only if enough was tested; in doubt it is Inconclusive.
package checker

import (
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/internal/glossary"
	"hammerlock/model"
)

// Status is the result of a checker.
type Status uint8

// The statuses. The zero value claims nothing.
const (
	Inconclusive Status = iota
	Pass
	Fail
	NotJudged // the lock does not claim the property, so this counts for nothing
)

var statuses = [...]string{"inconclusive", "pass", "fail", "not judged"}

// String is the status's name in files and reports.
func (s Status) String() string { return statuses[s] }

// MarshalText writes the status's name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the status's name.
func (s *Status) UnmarshalText(text []byte) error {
	for i, name := range statuses {
		if name == string(text) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("unknown status %q", text)
}

// Verdict is what a checker says about a run.
type Verdict struct {
	Checker  string       `json:"checker"`
	Status   Status       `json:"status"`
	Cause    string       `json:"cause"` // cause of the worst violation; empty unless it failed
	Summary  string       `json:"summary"`
	Story    []string     `json:"story,omitempty"`  // the evidence in sentences, with times
	Remedy   string       `json:"remedy,omitempty"` // advice, and the setting or code that it concerns
	Evidence []history.Op `json:"evidence"`         // the fewest operations that show the violation

	// for activity: hand-offs from one worker to another that waited
	HandOffs   int64            `json:"hand_offs,omitempty"`
	Exposed    int64            `json:"exposed"`          // number of occasions on which the property could have failed
	Violations int64            `json:"violations"`       // number of occasions on which it did
	Causes     map[string]int64 `json:"causes,omitempty"` // violations by cause
	Misses     map[string]int64 `json:"misses,omitempty"` // counts of noteworthy events that are no violations, by name

	// Doubled, for exclusion, is the number of holds that certainly began while another worker relied on a hold that
	// excludes them.
	Doubled int64 `json:"doubled,omitempty"`
	// Told, for lease-validity, says how soon holders learned that they had lost a lock that renews or signals; nil for
	// other locks.
	Told *Told `json:"told,omitempty"`
	// Extent, for activity, says how much the run tested; nil in old files.
	Extent *Extent `json:"tried,omitempty"`

	excuse  *window // the first unplanned event that excuses a violation
	spared  any     // witness of the excused violation
	scant   bool    // it is inconclusive only because there were too few occasions
	advised bool    // the story has given advice, or says that the history does not show the reason
}

// Advise sets the remedies of failed verdicts to those of their causes, unless a story has advice of its own.
func Advise(all []Verdict) {
	for i := range all {
		if v := &all[i]; !v.advised {
			v.Remedy = glossary.FindCause(v.Cause).Remedy
		}
	}
}

// advise sets the remedy to the advice that the story suggests; empty if the history does not show what is wrong.
func (v *Verdict) advise(remedy string) { v.Remedy, v.advised = remedy, true }

// Proved returns when the verdict became certain: the latest time in its evidence. Without evidence, it returns 0.
func (v *Verdict) Proved() (at time.Duration) {
	for i := range v.Evidence {
		at = max(at, v.Evidence[i].Latest())
	}
	return at
}

// KeepsOut reports whether this cause only keeps workers out of the lock. A failure with such a cause does not show
// two holders at the same time.
func KeepsOut(cause string) bool {
	for i := range model.Deviations {
		if d := &model.Deviations[i]; d.Name == cause {
			return d.Keeps
		}
	}
	return cause == history.PartKept // a refused try for several pages left one of them locked
}
