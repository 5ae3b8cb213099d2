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

// InteractiveText is the warning that a user changed the run with the keyboard.
const InteractiveText = "changed interactively: the history has each change as a fault by hand"

// Judgement has the verdicts on a run, and facts about it for people and CI systems.
type Judgement struct {
	Topology string   `json:"topology"`
	Lock     string   `json:"lock"`
	Scenario string   `json:"scenario,omitempty"`
	Strains  string   `json:"strains,omitempty"` // see Run
	Class    string   `json:"class,omitempty"`   // see Run
	Faults   []string `json:"faults"`
	Load     string   `json:"load,omitempty"`
	Agents   string   `json:"agents,omitempty"`   // machines of the workers, and how well their clocks agreed
	Errors   string   `json:"errors,omitempty"`   // the errors, if no visit of the run was successful
	Recovery string   `json:"recovery,omitempty"` // longest recovery and its parts
	Stream   string   `json:"stream,omitempty"`   // what the replication streams show about the locks
	Command  string   `json:"command"`
	Partial  string   `json:"partial,omitempty"`
	// Interactive: see Run.
	Interactive bool              `json:"interactive,omitempty"`
	Before      []string          `json:"attempts_before,omitempty"` // see Run
	Stretched   int               `json:"stretched,omitempty"`       // see Run
	Saved       string            `json:"saved,omitempty"`           // directory of the saved run
	Certified   string            `json:"certified,omitempty"`       // see Run
	Seen        []Fact            `json:"seen,omitempty"`            // see Run
	Verdicts    []checker.Verdict `json:"verdicts"`

	earlier []string      // see Run
	Started time.Time     `json:"-"` // start of the run; zero = unknown
	Took    time.Duration `json:"-"`
}

func (r *Run) Judgement() Judgement {
	j := Judgement{
		Topology: r.Topology, Lock: r.Lock, Scenario: r.Scenario, Strains: r.Strains, Class: r.Class,
		Stretched: r.Stretched,
		Faults:    r.Faults, Load: r.Workload(), Agents: r.Fleet.Text(), Command: r.Command, Partial: r.Partial,
		Interactive: r.Interactive, Recovery: r.RecoveryText(), Stream: r.StreamText(), Before: r.Before,
		earlier: r.Earlier, Started: r.Started,
		Took: time.Duration(r.Took), Verdicts: r.Verdicts, Certified: r.Certified, Seen: r.Seen,
	}
	if r.Visits.Done == 0 {
		j.Errors = r.errorsText()
	}
	return j
}

// Fact is an observation: a label and a sentence.
type Fact struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

// Name returns topology, lock and scenario.
func (j *Judgement) Name() string {
	return strings.TrimSpace(j.Topology + " " + j.Lock + " " + j.Scenario)
}

// NotRun is a scenario that was not run for a lock, with the reason.
type NotRun struct {
	Topology string `json:"topology"`
	Lock     string `json:"lock"`
	Scenario string `json:"scenario"`
	Why      string `json:"why"`
	Unasked  bool   `json:"unasked,omitempty"` // no time was left for it
	Ended    bool   `json:"ended,omitempty"`   // an earlier run has shown that it is of no use
}

// Name returns topology, lock and scenario.
func (n *NotRun) Name() string { return n.Topology + " " + n.Lock + " " + n.Scenario }

// WriteVerdicts writes the judgements as Findings.Write does.
func WriteVerdicts(w io.Writer, all []Judgement) error {
	f := Findings{Judged: all, Whole: Weigh(all, nil, "", nil)}
	return f.Write(w)
}

// write writes the verdict on a run, then a line for each property, then the evidence of each failure.
func (j *Judgement) write(p *human.Printer) {
	status, text := worst(j.Verdicts)
	scenario := ""
	if j.Scenario != "" {
		scenario = " · scenario " + strings.TrimPrefix(j.title(), j.Topology+" "+j.Lock+" ")
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
	p.Maybe("tried", ExtentOf([]Judgement{*j}).Text())
	p.Maybe("errors", j.Errors)
	p.Maybe("recovery", j.Recovery)
	p.Maybe("stream", j.Stream)
	p.Maybe("certified", j.Certified)
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
		tell(p, &v)
	}
	p.Line("")
	p.Maybe("history", j.Saved)
	p.Fact("repeat", j.Command)
}

// tell writes what the cause of a failure means, the evidence, and advice.
func tell(p *human.Printer, v *checker.Verdict) {
	p.Maybe("", glossary.FindCause(v.Cause).Means)
	for _, sentence := range v.Story {
		p.Fact("", sentence)
	}
	p.Maybe("what to do", v.Remedy)
}

// Title names the property that was judged and the cause of its failure, or else its status.
func Title(v *checker.Verdict) string {
	if v.Cause == "" {
		return v.Checker + ": " + v.Status.String()
	}
	return v.Checker + ": " + v.Cause
}

// evidence returns the story of a verdict; the last line is advice, if there is any.
func evidence(v *checker.Verdict) []string {
	if v.Remedy == "" {
		return v.Story
	}
	return append(slices.Clip(v.Story), "what to do: "+v.Remedy)
}

// sentence describes a failed verdict. It names the cause once, even if the summary begins or ends with the cause.
func sentence(v *checker.Verdict) string {
	text := strings.TrimSuffix(strings.TrimPrefix(v.Summary, v.Cause+": "), ": "+v.Cause)
	return Title(v) + ": " + text
}

// Finding returns the summary of a verdict, and the numbers of near misses.
func Finding(v *checker.Verdict) string {
	text := v.Summary
	for _, name := range slices.Sorted(maps.Keys(v.Misses)) {
		text += fmt.Sprintf("; %s %s", human.Count(v.Misses[name]), name)
	}
	return text
}

// worst returns the status and the text of the most important verdict: the first failure, or else the first
// inconclusive one. Among inconclusive verdicts, "most calls ended in errors" comes first, because it explains the
// others.
func worst(verdicts []checker.Verdict) (checker.Status, string) {
	verdicts = slices.DeleteFunc(slices.Clone(verdicts), func(v checker.Verdict) bool {
		return v.Status == checker.NotJudged
	})
	if len(verdicts) == 0 {
		return checker.Inconclusive, "nothing was judged"
	}
	best := verdicts[0]
	for _, v := range verdicts[1:] {
		if v.Status == checker.Fail && best.Status != checker.Fail || v.Status == checker.Inconclusive &&
			(best.Status == checker.Pass || best.Status == checker.Inconclusive && mostErred(v)) {
			best = v
		}
	}
	text := best.Summary
	if best.Status == checker.Fail && len(verdicts) > 1 && best.Cause != "" {
		text = sentence(&best)
	}
	return best.Status, text
}

// Safety returns the worst status in a run, and the text of that verdict.
func (r *Run) Safety() (checker.Status, string) { return worst(r.Verdicts) }

func (r *Run) Failed() bool {
	status, _ := r.Safety()
	return status == checker.Fail
}

// Status returns the worst status in a judgement, and the text of that verdict.
func (j *Judgement) Status() (checker.Status, string) { return worst(j.Verdicts) }
