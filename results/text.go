package results

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hammerlock/checker"
)

// width is how many columns the tables take at most.
const width = 100

// WriteText writes the result for people: every run by itself if there is one, a comparison if there are more.
func WriteText(w io.Writer, runs []Run) error {
	p := &printer{w: w}
	switch len(runs) {
	case 0:
	case 1:
		p.run(&runs[0])
	default:
		p.comparison(runs)
	}
	return p.err
}

// printer writes lines and remembers the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

// fact writes a labelled text, wrapped to the width.
func (p *printer) fact(label, text string) {
	for i, row := range Wrap(text, width-14) {
		if i > 0 {
			label = ""
		}
		p.line("%-13s %s", label, row)
	}
}

// Wrap breaks a text into rows of at most so many columns, between words.
func Wrap(text string, columns int) []string {
	rows := []string{""}
	for _, word := range strings.Split(text, " ") {
		last := &rows[len(rows)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) > columns:
			rows = append(rows, word)
		default:
			*last += " " + word
		}
	}
	return rows
}

func (p *printer) run(r *Run) {
	p.fact(r.Topology, "lock "+r.Lock+" · "+r.load())
	if r.Label != "" {
		p.fact("NOTE", r.Label)
	}
	if r.Interactive {
		p.fact("INTERACTIVE", "a person has meddled by key: see the faults by key in the history")
	}
	if r.Partial != "" {
		p.fact("PARTIAL", "the run ended early: "+r.Partial)
	}
	status, text := r.Safety()
	p.fact("SAFETY", strings.ToUpper(status.String())+"  "+text)
	p.fact("GENERATOR", string(r.Generator.State)+"  "+strings.Join(r.Generator.Reasons, "; "))
	p.fact("FAIRNESS", r.fairnessText())
	p.line("")
	p.latencies(r)
	p.line("")
	p.fact("throughput", fmt.Sprintf("%s visits/s counted in %s", significant(r.Throughput), Duration(time.Duration(r.Measured))))
	p.fact("visits", r.visitsText())
	if len(r.Waiting.Woken) > 0 {
		p.fact("woken", r.wokenText())
	}
	p.fact("cost a visit", r.costText())
	if r.Views.Fenced > 0 {
		p.fact("fence", fencedText(r.Views.Fenced))
	}
	if len(r.Errors) > 0 {
		p.fact("errors", r.errorsText())
	}
	p.fact("repeat", r.Command)
}

// Safety is the worst verdict and its words; the first failing one speaks.
func (r *Run) Safety() (checker.Status, string) { return worst(r.Verdicts) }

func (r *Run) fairnessText() string {
	f := r.Fairness
	text := fmt.Sprintf("Jain %.2f over %s; %s", f.Jain, quantity(int64(r.Workers), "worker"), starving(f.StarvingWorkers))
	text += fmt.Sprintf("; worst w%02d: %s, mean wait %s, longest %s", f.Worst.Worker, quantity(f.Worst.Visits, "visit"),
		Duration(time.Duration(f.Worst.Mean)), Duration(time.Duration(f.Worst.Longest)))
	if f.IdleShare != nil {
		text += fmt.Sprintf("; lock idle while somebody waited %s of the time", percent(*f.IdleShare))
	}
	return text
}

func starving(workers []int) string {
	if len(workers) == 0 {
		return "nobody starving"
	}
	const most = 8
	names := make([]string, 0, most)
	for _, w := range workers[:min(len(workers), most)] {
		names = append(names, fmt.Sprintf("w%02d", w))
	}
	text := fmt.Sprintf("%d STARVING (%s", len(workers), strings.Join(names, " "))
	if len(workers) > most {
		text += fmt.Sprintf(" and %d more", len(workers)-most)
	}
	return text + ")"
}

func (p *printer) latencies(r *Run) {
	const row = "%-26s%9s%9s%9s%9s%9s%9s%9s"
	p.line(row, "latency", "count", "p50", "p90", "p99", "p99.9", "max", "mean")
	for _, l := range r.latencies() {
		p.line(row, l...)
	}
	if r.Waiting.Censored > 0 {
		p.line("%s", r.censoredText())
	}
}

// latencies are the rows of a table: name, count, p50, p90, p99, p99.9, max, mean.
func (r *Run) latencies() [][]any {
	row := func(name string, l Percentiles) []any {
		if l.Count == 0 {
			return []any{name, "0", "-", "-", "-", "-", "-", "-"}
		}
		return []any{name, Count(l.Count), quantile(l.P50, l.Max), quantile(l.P90, l.Max), quantile(l.P99, l.Max),
			quantile(l.P999, l.Max), Duration(time.Duration(l.Max)), Duration(time.Duration(l.Mean))}
	}
	rows := [][]any{
		row("acquire (winners)", r.Latency.Acquire),
		row("acquire with unfinished", r.Waiting.Unfinished),
		row("a random waiter's wait", r.Waiting.RandomWaiter),
		row("response (from due)", r.Latency.Response),
		row("response with unfinished", r.Waiting.Response),
		row("hand-off", r.Latency.Handoff),
	}
	for _, w := range r.handoffs() {
		rows = append(rows, row("hand-off, woken by "+w.By, w.Handoff))
	}
	return append(rows, row("one try", r.Latency.Try), row("hold", r.Latency.Hold), row("release", r.Latency.Release))
}

func (r *Run) censoredText() string {
	return quantity(r.Waiting.Censored, "wait") + " ended without a grant or outlasted the measurement; they count with what was seen of them"
}

// quantile writes a percentile: "-" if the count does not support it, ">" if waits without end hide it.
func quantile(v *int64, longest int64) string {
	switch {
	case v == nil:
		return "-"
	case *v == int64(Beyond):
		return ">" + Duration(time.Duration(longest))
	default:
		return Duration(time.Duration(*v))
	}
}

func (r *Run) visitsText() string {
	v := r.Visits
	text := fmt.Sprintf("%s begun, %s counted, %s timed out, %s failed, %s unknown",
		Count(v.Begun), Count(v.Done), Count(v.Timeout), Count(v.Failed), Count(v.Unknown))
	if r.Rate > 0 {
		a := r.Arrivals
		text += fmt.Sprintf("; with the warm-up %s due = %s begun + %s skipped + %s unfinished",
			Count(a.Due), Count(a.Begun), Count(a.Skipped), Count(a.Unfinished))
	}
	return text
}

func (r *Run) costText() string {
	c := r.Cost
	return fmt.Sprintf("%s round trips, %s commands on the servers, %s of their CPU",
		optional(c.RoundTrips), optional(c.Commands), optionalDuration(c.ServerCPU))
}

// fencedText tells of the fence doing its work: no error.
func fencedText(n int64) string { return quantity(n, "stale store") + " refused by the counter" }

func optional(x *float64) string {
	if x == nil {
		return "-"
	}
	return significant(*x)
}

func optionalDuration(x *float64) string {
	if x == nil {
		return "-"
	}
	return Duration(time.Duration(*x))
}

func (r *Run) errorsText() string {
	var all []string
	for what, n := range r.Errors {
		all = append(all, Count(n)+" "+what)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
