package results

import (
	"slices"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// Released is what record/runs/LIBRARY@VERSION.json has: the verdicts on one release of a library.
type Released struct {
	Schema  int          `json:"schema"`
	Library string       `json:"library"`
	Version string       `json:"version"`
	Day     string       `json:"day"`
	Commit  string       `json:"commit"` // commit of the suite; a plus sign means that files differed from it
	Cores   int          `json:"cores"`
	Seed    uint64       `json:"seed"`
	On      []ReleasedOn `json:"on"`
}

// ReleasedOn has the verdicts on a release for one topology. Durations are in nanoseconds.
type ReleasedOn struct {
	Topology  string  `json:"topology"`
	Command   string  `json:"command"` // the command that repeats these runs
	Code      int     `json:"exit_code"`
	Reason    string  `json:"reason"`
	Took      int64   `json:"took_ns"`
	Claims    []Claim `json:"claims"`
	Scenarios []Tried `json:"scenarios"`
	// NotRun is the number of scenarios that were left out: they do not apply to the lock, or no time was left.
	NotRun int `json:"not_run"`
	// Number of scenarios that are missing because the command was interrupted.
	Missing int  `json:"missing,omitempty"`
	Cost    Cost `json:"cost"` // cost of a visit in the scenario "contention"
}

type Tried struct {
	Scenario string         `json:"scenario"`
	Status   checker.Status `json:"status"`
	Checker  string         `json:"checker,omitempty"` // the first checker that failed; empty = none
	Cause    string         `json:"cause,omitempty"`
	Summary  string         `json:"summary"`
	After    int64          `json:"after_ns"` // time from the start of the command to the end of this run
}

// JudgedOn summarizes a lock's runs on one topology; made are the lock's claims, and the command started at began.
func JudgedOn(made history.Claims, began time.Time, runs []Run) (j ReleasedOn) {
	j.Claims = slices.DeleteFunc(Conformance(made, runs), func(c Claim) bool { return c.Status == checker.NotJudged })
	for i := range runs {
		r := &runs[i]
		t := Tried{Scenario: r.Scenario, After: int64(r.Started.Sub(began)) + r.Took}
		t.Status, t.Summary = r.Safety()
		for k := range r.Verdicts {
			if v := &r.Verdicts[k]; v.Status == checker.Fail {
				t.Checker, t.Cause = v.Checker, v.Cause
				break
			}
		}
		if j.Scenarios = append(j.Scenarios, t); r.Scenario == "contention" {
			j.Cost = r.Cost
		}
	}
	return j
}
