package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/cli"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// text returns the page about a library; notes is the part that a person wrote.
func (p *page) text(notes string, reports []report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n`%s`, %s.\n\nWritten by `make record` from [record/runs](../../record/runs) and "+
		"[record/notes](../../record/notes).\n",
		p.Name, p.Package, p.Language)
	b.WriteString("\n## What it promises\n\n" + tableHead("claim", "the library says", "where"))
	for _, o := range p.Promises {
		b.WriteString(row(o.Claim, "\""+o.Quote+"\"", o.From))
	}
	b.WriteString("\n## What was found\n\n" +
		tableHead(append(append([]string{"release", "on"}, columns()...), "scenarios", "a visit costs", "took",
			"day, commit")...))
	for _, j := range p.releases {
		if j.said == nil {
			b.WriteString(row(j.Version, "not asked"))
			continue
		}
		for i := range j.said.On {
			b.WriteString(row(j.cells(&j.said.On[i])...))
		}
	}
	b.WriteString("\nA dash: the driver does not claim it. Scenarios are those that passed, failed, " +
		"and were undecided.\n")
	b.WriteString(p.failures())
	if notes != "" {
		b.WriteString("\n" + strings.TrimSpace(notes) + "\n")
	}
	if slices.ContainsFunc(reports, func(r report) bool { return r.Library == p.Name }) {
		b.WriteString("\nWhat its users reported: [the table](README.md#reported-bugs-of-these-releases).\n")
	}
	b.WriteString("\n## Repeat\n\n```sh\nmake record-deps LIBRARY=" + p.Name + "\nmake record LIBRARY=" + p.Name + "\n")
	for _, j := range p.releases {
		if j.said != nil {
			for i := range j.said.On {
				b.WriteString(rows(j.said.On[i].Command))
			}
			break
		}
	}
	return b.String() + "```\n"
}

// rows breaks a command into lines that are short enough for a page.
func rows(command string) string {
	return strings.NewReplacer(" --lock", " \\\n  --lock", " --seed", " \\\n  --seed").Replace(command) + "\n"
}

func (j *judged) cells(on *results.ReleasedOn) []string {
	cells := []string{j.Version, on.Topology}
	for _, claim := range columns() {
		cells = append(cells, cell([]results.ReleasedOn{*on}, claim))
	}
	count := map[checker.Status]int{}
	for _, t := range on.Scenarios {
		count[t.Status]++
	}
	cost := "-"
	if on.Cost.Commands != nil {
		cost = fmt.Sprintf("%.3g commands", *on.Cost.Commands)
	}
	return append(cells, fmt.Sprintf("%d, %d, %d", count[checker.Pass], count[checker.Fail],
		count[checker.Inconclusive]), cost,
		human.Duration(time.Duration(on.Took).Round(time.Second)), j.said.Day+", "+j.said.Commit)
}

// failures lists the failed scenarios of each release. Below it lists each violated claim, with the shortest story
// from the newest release that violates it.
func (p *page) failures() string {
	var b strings.Builder
	told := map[string]bool{}
	list := ""
	for _, j := range p.releases {
		if j.said == nil {
			continue
		}
		for i := range j.said.On {
			on := &j.said.On[i]
			list += failed(j.Version, on)
			for _, c := range on.Claims {
				if c.Status != checker.Fail || told[c.Claim] {
					continue
				}
				told[c.Claim] = true
				scenario := c.Run[strings.LastIndex(c.Run, " ")+1:]
				fmt.Fprintf(&b, "\n### %s: %s in %s\n\n%s\n\n", c.Claim, scenario, j.Version, fold(plain(c.Summary)))
				for _, sentence := range c.Story {
					b.WriteString(fold("* "+plain(sentence)) + "\n")
				}
				b.WriteString("\n```sh\n" + rows(on.Command+" --scenario "+scenario) + "```\n")
			}
		}
	}
	asked := func(j judged) bool { return j.said != nil }
	if list == "" && slices.ContainsFunc(p.releases, asked) {
		return "\nNo scenario failed.\n"
	} else if list == "" {
		return ""
	}
	return "\nScenarios that failed:\n\n" + list + b.String()
}

// failed lists the failed scenarios of a release. If its run ended early, the text also says why.
func failed(version string, on *results.ReleasedOn) (list string) {
	for _, t := range on.Scenarios {
		if t.Status == checker.Fail {
			list += fmt.Sprintf(", `%s` (%s %s, after %s)", t.Scenario, t.Checker, t.Cause,
				human.Duration(time.Duration(t.After)))
		}
	}
	if on.Missing > 0 {
		list += fmt.Sprintf(", and the run broke off before %s", human.Quantity(int64(on.Missing), "scenario"))
	}
	if on.Code == cli.Broken {
		list += ": " + on.Reason
	}
	if list == "" {
		return ""
	}
	return fold("* "+version+" on "+on.Topology+": "+plain(strings.TrimPrefix(list, ", "))) + "\n"
}

// plain escapes characters that HTML would take for a tag, as in <anonymous> in a stack trace.
func plain(text string) string { return strings.ReplaceAll(text, "<", "&lt;") }

func fold(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line+" "+word)) > 120 {
			lines, line = append(lines, line), " "
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}
