package results

import (
	"fmt"
	"io"
	"strings"

	"hammerlock/checker"
	"hammerlock/internal/human"
)

// A step summary may have 1 MiB, and more than ten annotations of a step are not shown.
const (
	summaryLimit    = 512 << 10
	annotationLimit = 10
)

// WriteSummary writes the verdicts as Markdown, for the summary of a CI step.
func WriteSummary(w io.Writer, all []Judgement) error {
	var b strings.Builder
	b.WriteString("| topology | lock | scenario | faults | verdict | why |\n|---|---|---|---|---|---|\n")
	for i := range all {
		status, text := all[i].Status()
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", all[i].Topology, all[i].Lock, all[i].Scenario,
			cell(human.List(all[i].Faults)),
			strings.ToUpper(status.String()), cell(text))
	}
	for i := range all {
		for _, v := range all[i].Verdicts {
			if v.Status != checker.Fail || b.Len() > summaryLimit {
				continue
			}
			fmt.Fprintf(&b, "\n**%s %s: %s: %s**\n\n", all[i].Topology, all[i].Lock, v.Checker, v.Cause)
			for _, sentence := range evidence(&v) {
				fmt.Fprintf(&b, "* %s\n", cell(sentence))
			}
			fmt.Fprintf(&b, "\n    %s\n", all[i].Command)
		}
	}
	text := b.String()
	if len(text) > summaryLimit {
		const note = "\n\n(cut)\n"
		text = strings.ToValidUTF8(text[:summaryLimit-len(note)], "") + note
	}
	_, err := io.WriteString(w, text)
	return err
}

func cell(text string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(text) }

// WriteAnnotations writes workflow commands that mark what failed: one for each lock and cause, as Failures tells them.
func WriteAnnotations(w io.Writer, all []Judgement) error {
	var names []string
	of := map[string][]Judgement{}
	for i := range all {
		if lock := all[i].Lock; of[lock] == nil {
			names = append(names, lock)
		}
		of[all[i].Lock] = append(of[all[i].Lock], all[i])
	}
	n := 0
	for _, lock := range names {
		for _, x := range Failures(of[lock]) {
			if n++; n > annotationLimit {
				return nil
			}
			if err := x.annotate(w, of[lock]); err != nil {
				return err
			}
		}
	}
	return nil
}

// annotate writes one workflow command. Other properties that failed in the same run have a line each, as they mostly
// show the same mistake.
func (x *Failure) annotate(w io.Writer, judged []Judgement) error {
	first := &judged[x.In[0]]
	lines := append([]string{x.Summary}, evidence(x.Verdict)...)
	for i := range first.Verdicts {
		if v := &first.Verdicts[i]; v.Status == checker.Fail && Title(v) != Title(x.Verdict) {
			lines = append(lines, "also "+sentence(v))
		}
	}
	if len(x.In) > 1 {
		lines = append(lines, "the same in: "+strings.Join(human.Names(x.In[1:], func(i int) string {
			return judged[i].Name()
		}), ", "))
	}
	lines = append(lines, "repeat: "+first.Command)
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	title := strings.NewReplacer("%", "%25", ":", "%3A", ",", "%2C").Replace(first.Name() + ": " + x.Cause)
	_, err := fmt.Fprintf(w, "::error title=%s::%s\n", title, escape.Replace(strings.Join(lines, "\n")))
	return err
}
