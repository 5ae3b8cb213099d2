package results

import (
	"fmt"
	"io"
	"slices"
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

// WriteAnnotations writes workflow commands that mark what failed, one for each cause.
func WriteAnnotations(w io.Writer, all []Judgement) error {
	seen := map[string]bool{}
	for i := range all {
		for _, v := range all[i].Verdicts {
			cause := all[i].Topology + " " + all[i].Lock + ": " + v.Cause
			if v.Status != checker.Fail || len(seen) == annotationLimit || seen[cause] {
				continue
			}
			seen[cause] = true
			text := strings.Join(append([]string{v.Summary},
				append(slices.Clip(evidence(&v)), "repeat: "+all[i].Command)...), "\n")
			escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
			title := strings.NewReplacer("%", "%25", ":", "%3A", ",", "%2C").Replace(cause)
			if _, err := fmt.Fprintf(w, "::error title=%s::%s\n", title, escape.Replace(text)); err != nil {
				return err
			}
		}
	}
	return nil
}
