package results

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hammerlock/internal/human"
)

// Column is a number, or a word, of the tables of several runs.
type Column struct {
	group, head string // of the text; the group is of this column and those after it
	layout      string
	Page        string // its head in the report, which has some of them; empty = it is not there
	Text        func(*Run) string
}

// verdictColumns, latencyColumns and costColumns are the tables of several runs.
var (
	verdictColumns = []Column{
		{"", "SAFETY", "%-14s", "", func(r *Run) string {
			status, _ := r.Safety()
			return strings.ToUpper(status.String())
		}},
		{"", "lost", "%9s", "Lost", func(r *Run) string { return human.Count(r.Views.Lost) }},
		{"", "visits/s", "%11s", "Visits/s", func(r *Run) string { return human.Number(r.Throughput) }},
		{"", "FAIRNESS", "  %-10s", "Fairness",
			func(r *Run) string { return r.Fairness.JainText() }},
		{"", "starving", " %-9s", "Starving", func(r *Run) string {
			return fmt.Sprintf("%d of %d", r.Fairness.Starving, r.Workers)
		}},
		{"", "idle", " %5s", "", func(r *Run) string {
			if share := r.Fairness.IdleShare; share != nil {
				return fmt.Sprintf("%.0f %%", 100**share)
			}
			return "-"
		}},
		{"", "GENERATOR", " %9s", "", func(r *Run) string { return string(r.Generator.State) }},
	}
	latencyColumns = []Column{
		{"acquire (winners)", "p50", "%-8s", "Acquire p50", textOf("acquire.p50")},
		{"", "p99", "%-9s", "p99", textOf("acquire.p99")},
		{"", "max", "%-9s", "", textOf("acquire.max")},
		{"with unfinished", "p50", "%-10s", "", textOf("acquire_with_unfinished.p50")},
		{"", "p99", "%-10s", "", textOf("acquire_with_unfinished.p99")},
		{"random waiter", "p50", "%-9s", "", textOf("random_waiter.p50")},
		{"", "p99", "%-9s", "", textOf("random_waiter.p99")},
		{"response", "p50", "%-8s", "Response p50", textOf("response.p50")},
		{"", "p99", "%-8s", "p99", textOf("response.p99")},
	}
	costColumns = []Column{
		{"hand-off", "p50", "%-9s", "Hand-off p50", textOf("handoff.p50")},
		{"", "p99", "%-9s", "", textOf("handoff.p99")},
		{"release", "p50", "%-9s", "", textOf("release.p50")},
		{"", "p99", "%-9s", "", textOf("release.p99")},
		{"worst worker", "visits", "%-7s", "", func(r *Run) string { return human.Count(r.Fairness.Worst.Visits) }},
		{"", "longest", "%-9s", "", func(r *Run) string {
			if r.Unseen() { // its waits cannot be seen
				return "-"
			}
			return human.Duration(time.Duration(r.Fairness.Worst.Longest))
		}},
		{"a visit costs", "trips", "%-8s", "Trips", textOf("cost.round_trips")},
		{"", "commands", "%-9s", "Commands", textOf("cost.commands")},
		{"", "server CPU", "%s", "", textOf("cost.server_cpu")},
	}
)

// textOf writes a metric.
func textOf(name string) func(*Run) string { return metric(name).Text }

// PageColumns are those of the report, with latencies or without.
func PageColumns(latencies bool) (all []Column) {
	tables := [][]Column{verdictColumns, latencyColumns, costColumns}
	if !latencies {
		tables = slices.Delete(tables, 1, 2)
	}
	for _, table := range tables {
		for _, c := range table {
			if c.Page != "" {
				all = append(all, c)
			}
		}
	}
	return all
}

// writeColumns writes a table, a row a run.
func writeColumns(p *human.Printer, runs []Run, table []Column) {
	row := func(name string, cell func(*Column) string) {
		text := fmt.Sprintf("%-20s ", name)
		for i := range table {
			text += fmt.Sprintf(table[i].layout, cell(&table[i]))
		}
		p.Line("%s", text)
	}
	table = slices.DeleteFunc(slices.Clone(table), func(c Column) bool { // no run has a value
		return !slices.ContainsFunc(runs, func(r Run) bool { return c.Text(&r) != "-" })
	})
	groups, at := "", 21
	for _, c := range table {
		if c.group != "" {
			groups = fmt.Sprintf("%-*s%s", at, groups, c.group)
		}
		at += utf8.RuneCountInString(fmt.Sprintf(c.layout, ""))
	}
	p.Line("")
	if groups != "" {
		p.Line("%s", groups)
	}
	row("", func(c *Column) string { return c.head })
	for i := range runs {
		row(runs[i].Combination(), func(c *Column) string { return c.Text(&runs[i]) })
	}
}
