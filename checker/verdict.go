// Package checker judges histories. It sees no Redis and no clock but the history's, so that any program can make a
// verdict again from a file. A verdict is Pass only if enough was tried; in doubt it is Inconclusive.
package checker

import (
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/internal/glossary"
)

// Status is what a checker found.
type Status uint8

// The statuses. The zero value claims nothing.
const (
	Inconclusive Status = iota
	Pass
	Fail
	NotJudged // the lock does not claim the property; this counts for nothing
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

// Verdict is what one checker says of one run.
type Verdict struct {
	Checker  string       `json:"checker"`
	Status   Status       `json:"status"`
	Cause    string       `json:"cause"` // the class of the worst finding; empty unless it failed
	Summary  string       `json:"summary"`
	Story    []string     `json:"story,omitempty"`  // the evidence in sentences, with times
	Remedy   string       `json:"remedy,omitempty"` // what to do about the cause, and where it is done
	Evidence []history.Op `json:"evidence"`         // the fewest operations that show it

	HandOffs   int64            `json:"hand_offs,omitempty"` // of activity: from one worker to another that waited
	Exposed    int64            `json:"exposed"`             // occasions on which it could have failed
	Violations int64            `json:"violations"`          // occasions on which it did
	Causes     map[string]int64 `json:"causes,omitempty"`    // violations by cause
	Misses     map[string]int64 `json:"misses,omitempty"`    // what is worth counting and no violation, by name

	// Doubled, of exclusion, are the holds that began while another one was believed in that excludes them, for
	// certain.
	Doubled int64 `json:"doubled,omitempty"`
	// Told, of lease-validity, says how soon holders heard that they had lost a lock that renews or signals; nil for
	// other locks.
	Told *Told `json:"told,omitempty"`
	// Extent, of activity, is how far the run went; nil in the files of older runs.
	Extent *Extent `json:"tried,omitempty"`

	excuse  *window // the first unplanned event that explains what would have been a violation
	spared  any     // that violation's witness
	scant   bool    // it is inconclusive for want of occasions, and nothing speaks against the lock
	advised bool    // the story has said what to do, or that the history does not tell
}

// Advise writes the remedies of the causes that verdicts failed with, where no story has another one.
func Advise(all []Verdict) {
	for i := range all {
		if v := &all[i]; !v.advised {
			v.Remedy = glossary.FindCause(v.Cause).Remedy
		}
	}
}

// advise says what to do about what the story tells; empty if the history does not show what is wrong.
func (v *Verdict) advise(remedy string) { v.Remedy, v.advised = remedy, true }

// Proved is when the last operation of the evidence was over: what the verdict says was certain from then on. It is 0
// if there is no evidence.
func (v *Verdict) Proved() (at time.Duration) {
	for i := range v.Evidence {
		at = max(at, v.Evidence[i].Latest())
	}
	return at
}
