package results

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"hammerlock/checker"
	"hammerlock/internal/human"
)

// Failover summarizes what a fault does to a lock, over many runs. Each run injects the fault once, into newly
// started servers.
type Failover struct {
	Topology string `json:"topology"`
	Lock     string `json:"lock"`
	Fault    string `json:"fault"`
	Settings string `json:"settings,omitempty"` // settings that differ from the defaults
	Profile  string `json:"profile"`
	Injected int    `json:"injected"`
	Failed   int    `json:"failed"` // number of runs that failed or in which the fault was not injected
	// Recovery has the recovery time of each run, in ascending order; 0 = no page was unavailable.
	Recovery   []int64 `json:"recovery_ns"`
	Unfinished int     `json:"unfinished"` // number of runs that ended before their recovery
	Spent      []Part  `json:"spent"`      // parts of the median recovery
	InFlight   float64 `json:"in_flight"`  // mean number of locks held when the fault was injected
	// Lost says in how many runs a held lock was granted to another worker. Grants is the number of such grants.
	Lost   Rate  `json:"lost"`
	Grants int64 `json:"lost_grants"`
	// in how many runs two workers relied on one lock at the same time
	Doubled     Rate           `json:"doubled"`
	Resurrected Rate           `json:"resurrected"` // in how many runs a released lock was held again
	Told        *checker.Told  `json:"told,omitempty"`
	Generator   GeneratorState `json:"generator"`
	Runs        []string       `json:"runs"`

	// Back has recovery times without the parts LeaseLeft, in which servers replied but no living worker held the
	// lock.
	Back []int64 `json:"back_ns"`

	// Pages has the longest time that one page was unavailable, for each run.
	Pages []int64 `json:"longest_page_ns"`

	parts map[int64][]Part // key: a time in Recovery
	held  int
	away  int // number of Unfinished runs in which no server was back at the end
}

// Rate says how often an event happened: Times is the number of cases in which it did. The field Of is the number of
// all cases for which this is known.
type Rate struct {
	Times int     `json:"times"`
	Of    int     `json:"of"`
	Low   float64 `json:"low"` // lower end of the 95 % confidence interval of the true share
	High  float64 `json:"high"`
}

func (r *Rate) count(happened bool) {
	if r.Of++; happened {
		r.Times++
	}
	r.Low, r.High = Proportion(r.Times, r.Of)
}

// Text formats the rate with its confidence interval. If the event never happened, it gives an upper bound of the
// true rate.
func (r Rate) Text() string {
	switch {
	case r.Of == 0:
		return "unknown"
	case r.Times == 0:
		// This is a one-sided bound: with a greater true rate, fewer than 5 % of such series would show no event.
		return fmt.Sprintf("0 of %d: at most 1 in %.0f", r.Of, math.Floor(1/(1-math.Pow(0.05, 1/float64(r.Of)))))
	default:
		return fmt.Sprintf("%d of %d: %.0f to %.0f %%", r.Times, r.Of, 100*r.Low, 100*r.High)
	}
}

// Proportion returns the 95 % confidence interval of the true rate of an event that happened in k of n cases
// (Clopper and Pearson, Biometrika 26, 1934).
func Proportion(k, n int) (low, high float64) {
	if high = 1; k < n {
		high = solve(func(p float64) bool { return atMost(k, n, p) > 0.025 })
	}
	if k > 0 {
		low = solve(func(p float64) bool { return 1-atMost(k-1, n, p) < 0.025 })
	}
	return low, high
}

// solve finds by bisection the share between 0 and 1 at which the result of its argument changes from true to false.
func solve(holds func(float64) bool) float64 {
	low, high := 0.0, 1.0
	for range 50 {
		if middle := (low + high) / 2; holds(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// atMost returns the probability of at most k events in n cases. In each case, an event has the probability p.
func atMost(k, n int, p float64) (sum float64) {
	all, _ := math.Lgamma(float64(n + 1))
	for i := range k + 1 {
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(all - a - b + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}

// Take adds a run to the summary. It returns false if the fault was not injected in this run.
func (f *Failover) Take(r *Run) bool {
	if len(r.Windows) == 0 || r.Windows[0].Failed || r.Availability == nil {
		f.Failed++
		return false
	}
	f.Injected, f.Runs, f.held = f.Injected+1, append(f.Runs, r.Name), f.held+r.Windows[0].Held
	f.InFlight = float64(f.held) / float64(f.Injected)
	recovery, back, page, resurrected, open, away := int64(0), int64(0), int64(0), 0, false, false
	for i := range r.Availability.Outages {
		if o := &r.Availability.Outages[i]; o.Fault != nil {
			if resurrected, open = resurrected+o.Resurrected, open || o.Open; o.Recovery > recovery {
				recovery = o.Recovery
				if f.parts == nil {
					f.parts = map[int64][]Part{}
				}
				f.parts[recovery] = o.Parts
			}
			held := o.Recovery
			for _, p := range o.Parts {
				if p.Name == LeaseLeft {
					held -= p.Took
				}
			}
			away = away || o.Open && held == o.Recovery
			back, page = max(back, held), max(page, o.Longest)
		}
	}
	if f.Recovery, f.Back = append(f.Recovery, recovery), append(f.Back, back); open {
		f.Unfinished++
	}
	if away {
		f.away++
	}
	f.Pages = append(f.Pages, page)
	slices.Sort(f.Recovery)
	slices.Sort(f.Back)
	slices.Sort(f.Pages)
	f.Spent = f.parts[quantile(f.Recovery, 0.5)]
	f.Resurrected.count(resurrected > 0)
	for _, v := range r.Verdicts {
		switch {
		case v.Checker == "exclusion" && (v.Status == checker.Fail || v.Status == checker.Pass):
			f.Lost.count(v.Causes["service-loss"] > 0)
			f.Doubled.count(v.Doubled > 0)
			f.Grants += v.Causes["service-loss"]
		case v.Told != nil:
			if f.Told == nil {
				f.Told = &checker.Told{}
			}
			f.Told.Add(v.Told)
		}
	}
	f.trust(&r.Generator, r.Availability.Least)
	return true
}

// trust notes whether the load generator of a run could be trusted. Disturbed means that it could not. Saturated
// matters only if some visit began so late that the delay looks like an outage.
func (f *Failover) trust(g *Generator, outage int64) {
	switch {
	case g.State == Disturbed, g.State == Saturated && g.LateMax >= outage && f.Generator != Disturbed:
		f.Generator = g.State
	case f.Generator == "":
		f.Generator = GeneratorOK
	}
}

// quantile returns the quantile q of sorted times (nearest rank), or 0 without times.
func quantile(sorted []int64, q float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[rank(sorted, q)]
}

func rank(sorted []int64, q float64) int {
	return min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)
}

// failoverTable is a table that answers one question. The first columns of each row name the topology, lock and
// fault.
type failoverTable struct {
	title string
	head  []string
	// row returns the other cells of a row; nil = the table does not have this row.
	row func(*Failover) []string
}

var failoverTables = []failoverTable{
	{"How long the lock was gone", []string{"n", "servers back p50", "recovery p50", "p90", "max", "a page p50",
		"generator"}, (*Failover).gone},
	{"What became of grants", []string{"n", "in flight", "lost a grant", "two holders", "came back"},
		(*Failover).grants},
	{"How soon holders heard that they had lost the lock, of locks that renew their leases or signal a loss",
		[]string{"lost holds", "told p50", "p99", "max", "never told", "went on"}, (*Failover).told},
}

// of returns the heading and the rows of the table, or nil if there are no rows.
func (t *failoverTable) of(all []Failover) (rows [][]string) {
	names := []string{"topology", "lock", "fault"}
	settings := slices.ContainsFunc(all, func(f Failover) bool { return f.Settings != "" })
	if settings {
		names = append(names, "settings")
	}
	for i := range all {
		f := &all[i]
		row := []string{f.Topology, f.Lock, f.Fault}
		if settings {
			row = append(row, f.Settings)
		}
		if own := t.row(f); own != nil {
			rows = append(rows, append(row, own...))
		}
	}
	if len(rows) > 0 {
		rows = slices.Insert(rows, 0, append(names, t.head...))
	}
	return rows
}

// Back50 returns the median time until a server could grant the lock again.
func (f *Failover) Back50() string { return f.gone()[1] }

func (f *Failover) gone() []string {
	// All runs have the same length. So an unfinished recovery is longer than every finished one.
	d := func(sorted []int64, q float64, unseen int) string {
		ns := quantile(sorted, q)
		switch {
		case f.Injected == 0:
			return "-"
		case ns == 0:
			return "none"
		case rank(sorted, q) >= len(sorted)-unseen:
			return ">" + clipped(ns)
		}
		return clipped(ns)
	}
	back := d(f.Back, 0.5, f.away)
	// The killed server was not replaced by another one.
	if strings.HasPrefix(f.Fault, "kill-") && len(f.Spent) > 0 && f.Spent[0].Name == Down {
		back = fmt.Sprintf("as long as it is down (here %s)", back)
	}
	return []string{human.Count(int64(f.Injected)), back, d(f.Recovery, 0.5, f.Unfinished),
		d(f.Recovery, 0.9, f.Unfinished), d(f.Recovery, 1, f.Unfinished), d(f.Pages, 0.5, f.Unfinished),
		string(f.Generator)}
}

func (f *Failover) grants() []string {
	return []string{human.Count(int64(f.Injected)), human.Number(f.InFlight), f.Lost.Text(), f.Doubled.Text(),
		f.Resurrected.Text()}
}

func (f *Failover) told() []string {
	if f.Told == nil {
		return nil
	}
	row := []string{human.Count(f.Told.Count)}
	for _, q := range []*int64{f.Told.P50, f.Told.P99, f.Told.Max} {
		text := "-"
		if q != nil {
			text = clipped(*q)
		}
		row = append(row, text)
	}
	return append(row, human.Count(f.Told.Never), clipped(f.Told.Inside))
}

// Name names the topology, lock, fault and settings of the summary.
func (f *Failover) Name() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", f.Topology, f.Lock, f.Fault, f.Settings))
}

func WriteFailovers(w io.Writer, all []Failover) error {
	p := &human.Printer{W: w}
	for i := range failoverTables {
		rows := failoverTables[i].of(all)
		if len(rows) == 0 {
			continue
		}
		p.Wrapped("", 0, failoverTables[i].title+":")
		p.Table(rows, len(rows[0])-len(failoverTables[i].head))
		p.Line("")
	}
	for i := range all {
		f := &all[i]
		if len(f.Spent) > 0 {
			o := Outage{Parts: f.Spent}
			p.Wrapped("", 2, f.Name()+": the median recovery: "+o.PartsText())
		}
		if f.Failed > 0 {
			p.Wrapped("", 2, f.Name()+": "+human.Quantity(int64(f.Failed),
				"run")+" could not be carried out, or had no fault")
		}
	}
	return p.Err
}

// WriteFailoverMarkdown writes the tables as a document; command is the command that made them.
func WriteFailoverMarkdown(w io.Writer, all []Failover, command string) error {
	p := &human.Printer{W: w}
	p.Line("# What a failover does to a lock\n\n    %s\n", command)
	for _, line := range human.Wrap("How long is the lock gone when a server dies, and can two workers have it "+
		"afterwards? "+
		"Each row is one fault, injected n times, each time into servers that were just started and whole. "+
		"`make failover` writes this page with the command above.", 100) {
		p.Line("%s", line)
	}
	p.Line("")
	for i := range failoverTables {
		rows := failoverTables[i].of(all)
		if len(rows) == 0 {
			continue
		}
		p.Line("## %s\n\n<!-- generated: failover -->", failoverTables[i].title)
		p.Line("| %s |\n|%s", strings.Join(rows[0], " | "), strings.Repeat("---|", len(rows[0])))
		for _, row := range rows[1:] {
			p.Line("| %s |", strings.Join(row, " | "))
		}
		p.Line("<!-- end -->\n")
	}
	p.Line("## How to read it\n\n%s", failoverNotes)
	p.Line("## What the median recovery was spent on\n\n<!-- generated: parts -->")
	for i := range all {
		if f := &all[i]; len(f.Spent) > 0 {
			o := Outage{Parts: f.Spent}
			p.Line("* %s: %s", f.Name(), o.PartsText())
		}
	}
	p.Line("<!-- end -->")
	return p.Err
}

// failoverNotes explain the columns of the document.
//
//go:embed failover.txt
var failoverNotes string
