package results

import (
	"fmt"
	"io"
	"strings"

	"hammerlock/checker"
	"hammerlock/internal/human"
)

// GitHub accepts a step summary of at most 1 MiB, and shows only ten annotations of a step.
const (
	summaryLimit    = 512 << 10
	annotationLimit = 10
)

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

// WriteAnnotations writes GitHub commands that mark failures. All failures of a lock share one mark, because they
// may be due to one mistake.
func WriteAnnotations(w io.Writer, all []Judgement) error {
	var names []string
	of := map[string][]Judgement{}
	for i := range all {
		if all[i].failure() == nil {
			continue
		}
		if lock := all[i].Lock; of[lock] == nil {
			names = append(names, lock)
		}
		of[all[i].Lock] = append(of[all[i].Lock], all[i])
	}
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", ":", "%3A", ",", "%2C")
	for _, lock := range names[:min(len(names), annotationLimit)] {
		title, text := annotation(of[lock])
		_, err := fmt.Fprintf(w, "::error title=%s::%s\n", property.Replace(title), escape.Replace(text))
		if err != nil {
			return err
		}
	}
	return nil
}

// annotation describes a lock's most frequent failure with its evidence. Each other failure gets one line.
func annotation(failed []Judgement) (title, text string) {
	all := Failures(failed)
	worst := &failed[all[0].In[0]]
	lines := append([]string{all[0].Summary}, evidence(all[0].Verdict)...)
	lines = append(lines, "repeat: "+worst.Command)
	told := map[string]bool{Title(all[0].Verdict): true}
	for i := range failed {
		for _, v := range failed[i].Verdicts {
			if v.Status == checker.Fail && !told[Title(&v)] {
				told[Title(&v)] = true
				lines = append(lines, "also "+failed[i].Name()+": "+sentence(&v))
			}
		}
	}
	return worst.Topology + " " + worst.Lock + ": " + all[0].Cause, strings.Join(lines, "\n")
}
