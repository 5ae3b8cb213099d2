package results

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/glossary"
	"hammerlock/internal/human"
)

// InteractiveText is what a reader of numbers or verdicts must know first.
const InteractiveText = "changed interactively: the history has each change as a fault by hand"

// Judgement is the outcome of a judged history, for people and for CI systems.
type Judgement struct {
	Topology string   `json:"topology"`
	Lock     string   `json:"lock"`
	Scenario string   `json:"scenario,omitempty"`
	Strains  string   `json:"strains,omitempty"` // what the scenario strains, in words
	Faults   []string `json:"faults"`
	Load     string   `json:"load,omitempty"`
	Agents   string   `json:"agents,omitempty"` // where the workers lived, and how well clocks agreed
	Errors   string   `json:"errors,omitempty"` // of a run in which no visit came to its end
	Command  string   `json:"command"`
	Partial  string   `json:"partial,omitempty"`
	// Interactive: see Run.
	Interactive bool              `json:"interactive,omitempty"`
	Before      []string          `json:"attempts_before,omitempty"` // see Run
	Saved       string            `json:"saved,omitempty"`           // where the history is
	Verdicts    []checker.Verdict `json:"verdicts"`

	Started time.Time     `json:"-"` // of the run, if that is known
	Took    time.Duration `json:"-"`
}

// Judgement is that of a judged run.
func (r *Run) Judgement() Judgement {
	j := Judgement{
		Topology: r.Topology, Lock: r.Lock, Scenario: r.Scenario, Strains: r.Strains, Faults: r.Faults, Load: r.Workload(), Command: r.Command,
		Partial: r.Partial, Interactive: r.Interactive, Before: r.Before, Started: r.Started, Took: time.Duration(r.Warmup + r.Measured), Verdicts: r.Verdicts,
	}
	if r.Fleet != nil {
		j.Agents = r.Fleet.Text()
	}
	if r.Visits.Done == 0 {
		j.Errors = r.errorsText()
	}
	return j
}

// Name says what was judged: a topology and a lock, and a scenario if it was one.
func (j *Judgement) Name() string {
	return strings.TrimSpace(j.Topology + " " + j.Lock + " " + j.Scenario)
}

// NotRun is a scenario that a lock was not put through, and why. It is no verdict: nothing is known.
type NotRun struct {
	Topology string `json:"topology"`
	Lock     string `json:"lock"`
	Scenario string `json:"scenario"`
	Why      string `json:"why"`
	Unasked  bool   `json:"unasked,omitempty"` // it would have been run if there had been time
}

// Name says what was not run, as that of a judgement.
func (n *NotRun) Name() string { return n.Topology + " " + n.Lock + " " + n.Scenario }

// WriteVerdicts writes what was judged for people: a block for each, and a table if there are several, with what was not run
// at its end. A scenario that was passed has its line in the table alone.
func WriteVerdicts(w io.Writer, all []Judgement, not []NotRun) error {
	p := &human.Printer{W: w}
	blocks := 0
	for i := range all {
		if status, _ := all[i].Status(); len(all) > 1 && all[i].Scenario != "" && status == checker.Pass {
			continue
		}
		if blocks++; blocks > 1 {
			p.Line("")
		}
		all[i].write(p)
	}
	if len(all)+len(not) < 2 {
		return p.Err
	}
	if blocks > 0 {
		p.Line("")
	}
	width := 24
	for i := range all {
		width = max(width, len(all[i].Name()))
	}
	for i := range not {
		width = max(width, len(not[i].Name()))
	}
	row := func(name, verdict, proved, text string) {
		p.Wrapped(fmt.Sprintf("%-*s %-13s %7s  ", width, name, verdict, proved), width+24, text)
	}
	p.Line("%-*s %-13s %7s", width, "", "VERDICT", "PROVED")
	for i := range all {
		status, text := all[i].Status()
		if status == checker.Pass && all[i].Strains != "" {
			text = all[i].Strains
		}
		row(all[i].Name(), strings.ToUpper(status.String()), all[i].proved(), text)
	}
	for i := range not {
		row(not[i].Name(), "NOT RUN", "", not[i].Why)
	}
	return p.Err
}

// proved is when the first violation was certain; empty if there is none.
func (j *Judgement) proved() string {
	first := time.Duration(0)
	for i := range j.Verdicts {
		if v := &j.Verdicts[i]; v.Status == checker.Fail && v.Proved() > 0 && (first == 0 || v.Proved() < first) {
			first = v.Proved()
		}
	}
	if first == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f s", first.Seconds())
}

// write writes one block: the verdict first, then each property, then the evidence of what failed.
func (j *Judgement) write(p *human.Printer) {
	status, text := worst(j.Verdicts)
	scenario := ""
	if j.Scenario != "" {
		scenario = " · scenario " + j.Scenario
	}
	p.Fact(j.Topology, "lock "+j.Lock+scenario+" · faults: "+human.List(j.Faults))
	p.Maybe("", j.Load)
	p.Maybe("agents", j.Agents)
	if j.Interactive {
		p.Fact("INTERACTIVE", InteractiveText)
	}
	if j.Partial != "" {
		p.Fact("PARTIAL", "the end of the history is missing: "+j.Partial)
	}
	for i, why := range j.Before {
		p.Fact("", fmt.Sprintf("attempt %d was inconclusive: %s", i+1, why))
	}
	p.Fact("VERDICT", strings.ToUpper(status.String())+"  "+text)
	p.Maybe("errors", j.Errors)
	p.Line("")
	for _, v := range j.Verdicts {
		p.Wrapped(fmt.Sprintf("  %-16s %-14s ", v.Checker, strings.ToUpper(v.Status.String())), 34, Finding(&v))
	}
	for _, v := range j.Verdicts {
		if len(v.Story) == 0 {
			continue
		}
		p.Line("")
		p.Line("%s", Title(&v))
		p.Maybe("", glossary.FindCause(v.Cause).Means)
		for _, sentence := range v.Story {
			p.Fact("", sentence)
		}
		p.Maybe("what to do", v.Remedy)
	}
	p.Line("")
	p.Maybe("history", j.Saved)
	p.Fact("repeat", j.Command)
}

// Title names a verdict by its property and what became of it.
func Title(v *checker.Verdict) string {
	if v.Cause == "" {
		return v.Checker + ": " + v.Status.String()
	}
	return v.Checker + ": " + v.Cause
}

// Evidence is the story of a verdict, with what to do about its cause at the end.
func Evidence(v *checker.Verdict) []string {
	if v.Remedy == "" {
		return v.Story
	}
	return append(slices.Clip(v.Story), "what to do: "+v.Remedy)
}

// sentence is what a verdict that failed found, under its name. A cause that the summary names first or last is said once.
func sentence(v *checker.Verdict) string {
	text := strings.TrimSuffix(strings.TrimPrefix(v.Summary, v.Cause+": "), ": "+v.Cause)
	return Title(v) + ": " + text
}

// Finding is what a verdict found, near misses included.
func Finding(v *checker.Verdict) string {
	text := v.Summary
	for _, name := range slices.Sorted(maps.Keys(v.Misses)) {
		text += fmt.Sprintf("; %s %s", human.Count(v.Misses[name]), name)
	}
	return text
}

// worst is the verdict that speaks for all: a failing one before an inconclusive one, the first of its kind.
func worst(verdicts []checker.Verdict) (checker.Status, string) {
	verdicts = slices.DeleteFunc(slices.Clone(verdicts), func(v checker.Verdict) bool { return v.Status == checker.NotJudged })
	if len(verdicts) == 0 {
		return checker.Inconclusive, "nothing was judged"
	}
	best := verdicts[0]
	for _, v := range verdicts[1:] {
		if v.Status == checker.Fail && best.Status != checker.Fail || v.Status == checker.Inconclusive && best.Status == checker.Pass {
			best = v
		}
	}
	text := best.Summary
	if best.Status == checker.Fail && len(verdicts) > 1 && best.Cause != "" {
		text = sentence(&best)
	}
	return best.Status, text
}

// Safety is the worst verdict of a run and its words.
func (r *Run) Safety() (checker.Status, string) { return worst(r.Verdicts) }

// Failed tells whether a check of the run failed.
func (r *Run) Failed() bool {
	status, _ := r.Safety()
	return status == checker.Fail
}

// Status is the worst verdict of a judgement and its words.
func (j *Judgement) Status() (checker.Status, string) { return worst(j.Verdicts) }
