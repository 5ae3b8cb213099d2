package results

import (
	"slices"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// Released is the saved judgement of a release of a library: record/runs/LIBRARY@VERSION.json.
type Released struct {
	Schema  int          `json:"schema"`
	Library string       `json:"library"`
	Version string       `json:"version"`
	Day     string       `json:"day"`
	Commit  string       `json:"commit"` // commit of the suite; a + means that files were changed
	Cores   int          `json:"cores"`
	Seed    uint64       `json:"seed"`
	On      []ReleasedOn `json:"on"`
}

// ReleasedOn is the judgement of a release on one topology. Durations are in nanoseconds.
type ReleasedOn struct {
	Topology  string  `json:"topology"`
	Command   string  `json:"command"` // the command that repeats it
	Code      int     `json:"exit_code"`
	Reason    string  `json:"reason"`
	Took      int64   `json:"took_ns"`
	Claims    []Claim `json:"claims"`
	Scenarios []Tried `json:"scenarios"`
	// NotRun is the number of scenarios that do not apply to the lock or for which there was no time.
	NotRun int `json:"not_run"`
	// number of scenarios that were not reached, because the command was interrupted
	Missing int  `json:"missing,omitempty"`
	Cost    Cost `json:"cost"` // cost of a visit in the scenario contention
}

type Tried struct {
	Scenario string         `json:"scenario"`
	Status   checker.Status `json:"status"`
	Checker  string         `json:"checker,omitempty"` // the first checker that failed; empty = none
	Cause    string         `json:"cause,omitempty"`
	Summary  string         `json:"summary"`
	After    int64          `json:"after_ns"` // time from the start of the command to this verdict
}

// JudgedOn summarizes a lock's runs on a topology; began is the start of the command.
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
