package results

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hammerlock/internal/human"
)

// Column is a column of the tables that compare several runs.
type Column struct {
	group, head string // headings in the text; a column without a group is below the heading of the group before it
	layout      string
	Page        string // heading in the report; empty = the report does not show the column
	Text        func(*Run) string
}

// Each of these tables has a row for each run.
var (
	verdictColumns = []Column{
		{"", "SAFETY", "%-13s", "", func(r *Run) string {
			status, _ := r.Safety()
			return strings.ToUpper(status.String())
		}},
		{"", "lost", "%5s", "Lost", func(r *Run) string { return human.Count(r.Views.Lost) }},
		{"", "visits/s", "%9s", "Visits/s", func(r *Run) string { return human.Number(r.Throughput) }},
		{"", "FAIRNESS", "  %-9s", "Fairness",
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
		{"", "p99", "%-7s", "p99", textOf("response.p99")},
	}
	costColumns = []Column{
		{"hand-off", "p50", "%-9s", "Hand-off p50", textOf("handoff.p50")},
		{"", "p99", "%-9s", "", textOf("handoff.p99")},
		{"release", "p50", "%-9s", "", textOf("release.p50")},
		{"", "p99", "%-9s", "", textOf("release.p99")},
		{"worst worker", "visits", "%-7s", "", func(r *Run) string { return human.Count(r.Fairness.Worst.Visits) }},
		{"", "longest", "%-9s", "", func(r *Run) string {
			if r.Unseen() { // a service does not show how long its callers wait for locks
				return "-"
			}
			return human.Duration(time.Duration(r.Fairness.Worst.Longest))
		}},
		{"a visit costs", "trips", "%-8s", "Trips", textOf("cost.round_trips")},
		{"", "commands", "%-9s", "Commands", textOf("cost.commands")},
		{"", "server CPU", "%-10s", "", textOf("cost.server_cpu")},
	}
)

func textOf(name string) func(*Run) string { return metric(name).Text }

// PageColumns lists the columns of the report, with or without latencies.
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

// nameColumns is the usual width of the first column, which has the names of the runs.
const nameColumns = 21

// writeColumns writes a table with a row for each run. If the columns do not fit the terminal, the rest follows in
// further tables.
func writeColumns(p *human.Printer, runs []Run, table []Column) {
	// Columns without any value are not shown.
	table = slices.DeleteFunc(slices.Clone(table), func(c Column) bool {
		return !slices.ContainsFunc(runs, func(r Run) bool { return c.Text(&r) != "-" })
	})
	name := nameColumns
	if room := human.Columns(p.W); width(table) > room-name {
		name = 0
		for i := range runs {
			name = max(name, utf8.RuneCountInString(runs[i].Combination())+1)
		}
		for from := len(table) - 1; from > 0; from-- {
			if table[from].group != "" && width(table) > room-name && width(table[:from]) <= room-name {
				writeBlock(p, runs, table[:from], name)
				writeColumns(p, runs, table[from:])
				return
			}
		}
	}
	writeBlock(p, runs, table, name)
}

// width returns the width of a table without the column of names.
func width(table []Column) (columns int) {
	for i := range table {
		columns += utf8.RuneCountInString(fmt.Sprintf(table[i].layout, "")) + padding(table, i)
	}
	return columns
}

// padding returns the number of spaces after the last column of a group whose heading is wider than its columns. It
// returns 0 for other columns.
func padding(table []Column, i int) int {
	if i+1 < len(table) && table[i+1].group == "" {
		return 0
	}
	columns := 0
	for ; ; i-- {
		columns += utf8.RuneCountInString(fmt.Sprintf(table[i].layout, ""))
		if table[i].group != "" || i == 0 {
			return max(0, utf8.RuneCountInString(table[i].group)+1-columns)
		}
	}
}

// beside appends a cell to a row. It adds a space if neither of them has one where they meet.
func beside(row, cell string) string {
	if !strings.HasSuffix(row, " ") && !strings.HasPrefix(cell, " ") {
		row += " "
	}
	return row + cell
}

func writeBlock(p *human.Printer, runs []Run, table []Column, name int) {
	row := func(first string, cell func(*Column) string) {
		text := fmt.Sprintf("%-*s", name, first)
		for i := range table {
			text = beside(text, fmt.Sprintf(table[i].layout, cell(&table[i]))) + strings.Repeat(" ", padding(table, i))
		}
		p.Line("%s", text)
	}
	groups := ""
	for i := range table {
		if c := &table[i]; c.group != "" {
			groups = fmt.Sprintf("%-*s%s", name+width(table[:i]), groups, c.group)
		}
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
