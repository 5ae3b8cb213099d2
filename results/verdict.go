package results

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"hammerlock/checker"
)

// Judgement is a history that was judged, as far as a reader wants to know of it.
type Judgement struct {
	Topology string   `json:"topology"`
	Lock     string   `json:"lock"`
	Faults   []string `json:"faults"`
	Load     string   `json:"load,omitempty"`
	Command  string   `json:"command"`
	Partial  string   `json:"partial,omitempty"`
	// Interactive: see Run.
	Interactive bool              `json:"interactive,omitempty"`
	Saved       string            `json:"saved,omitempty"` // where the history is
	Verdicts    []checker.Verdict `json:"verdicts"`
}

// Judgement is what a judged run says.
func (r *Run) Judgement() Judgement {
	return Judgement{
		Topology: r.Topology, Lock: r.Lock, Faults: r.Faults, Load: r.load(), Command: r.Command, Partial: r.Partial,
		Interactive: r.Interactive,
		Verdicts:    r.Verdicts,
	}
}

// WriteVerdicts writes what was judged for people: a block for each, and a table if there are several.
func WriteVerdicts(w io.Writer, all []Judgement) error {
	p := &printer{w: w}
	for i := range all {
		if i > 0 {
			p.line("")
		}
		p.judgement(&all[i])
	}
	if len(all) > 1 {
		p.line("")
		p.line("%-24s %-14s %s", "", "VERDICT", "")
		for i := range all {
			status, text := worst(all[i].Verdicts)
			p.fact2(all[i].Topology+" "+all[i].Lock, strings.ToUpper(status.String()), text)
		}
	}
	return p.err
}

// fact2 is a row of the closing table.
func (p *printer) fact2(what, status, text string) {
	for i, row := range Wrap(text, width-40) {
		if i > 0 {
			what, status = "", ""
		}
		p.line("%-24s %-14s %s", what, status, row)
	}
}

// judgement writes one block: the verdict first, then each property, then the story of what failed.
func (p *printer) judgement(j *Judgement) {
	status, text := worst(j.Verdicts)
	p.fact(j.Topology, "lock "+j.Lock+" · faults: "+orNone(j.Faults))
	if j.Load != "" {
		p.fact("", j.Load)
	}
	if j.Interactive {
		p.fact("INTERACTIVE", "a person has meddled by key: see the faults by key in the history")
	}
	if j.Partial != "" {
		p.fact("PARTIAL", "the end of the history is missing: "+j.Partial)
	}
	p.fact("VERDICT", strings.ToUpper(status.String())+"  "+text)
	p.line("")
	for _, v := range j.Verdicts {
		p.property(&v)
	}
	for _, v := range j.Verdicts {
		if len(v.Story) == 0 {
			continue
		}
		p.line("")
		p.line("%s: %s", v.Checker, headline(&v))
		for _, sentence := range v.Story {
			p.fact("", sentence)
		}
	}
	p.line("")
	if j.Saved != "" {
		p.fact("history", j.Saved)
	}
	p.fact("repeat", j.Command)
}

func headline(v *checker.Verdict) string {
	if v.Cause == "" {
		return v.Status.String()
	}
	return v.Cause
}

func (p *printer) property(v *checker.Verdict) {
	text := v.Summary
	for _, name := range slices.Sorted(maps.Keys(v.Misses)) {
		text += fmt.Sprintf("; %s %s", Count(v.Misses[name]), name)
	}
	for i, row := range Wrap(text, width-34) {
		if i > 0 {
			p.line("%-33s %s", "", row)
			continue
		}
		p.line("  %-16s %-14s %s", v.Checker, strings.ToUpper(v.Status.String()), row)
	}
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// worst is the verdict that speaks for all: a failing one before an inconclusive one, the first of its kind.
func worst(verdicts []checker.Verdict) (checker.Status, string) {
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
	if best.Status == checker.Fail {
		if len(verdicts) > 1 && best.Cause != "" {
			text = best.Checker + ": " + best.Cause + ": " + text
		}
	}
	return best.Status, text
}

// Status is the worst status of a judgement and its words.
func (j *Judgement) Status() (checker.Status, string) { return worst(j.Verdicts) }
