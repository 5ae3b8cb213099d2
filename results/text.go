package results

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/human"
)

// WriteText writes the result for people: every run by itself if there is one, a comparison if there are more.
func WriteText(w io.Writer, runs []Run) error {
	p := &human.Printer{W: w}
	switch len(runs) {
	case 0:
	case 1:
		runs[0].write(p)
	default:
		writeComparison(p, runs)
	}
	return p.Err
}

// interactiveText is what a reader of numbers must know first.
const interactiveText = "a person has meddled by key: see the faults by key in the history"

func (r *Run) write(p *human.Printer) {
	p.Fact(r.Topology, "lock "+r.Lock+" · "+r.load())
	if r.Label != "" {
		p.Fact("NOTE", r.Label)
	}
	if r.Interactive {
		p.Fact("INTERACTIVE", interactiveText)
	}
	if r.Partial != "" {
		p.Fact("PARTIAL", "the run ended early: "+r.Partial)
	}
	status, text := r.Safety()
	p.Fact("SAFETY", strings.ToUpper(status.String())+"  "+text)
	p.Fact("GENERATOR", string(r.Generator.State)+"  "+strings.Join(r.Generator.Reasons, "; "))
	p.Fact("FAIRNESS", r.fairnessText())
	p.Line("")
	r.writeLatencies(p)
	p.Line("")
	p.Fact("throughput", fmt.Sprintf("%s visits/s counted in %s", human.Number(r.Throughput), human.Duration(time.Duration(r.Measured))))
	p.Fact("visits", r.visitsText())
	if len(r.Waiting.Woken) > 0 {
		p.Fact("woken", r.wokenText())
	}
	p.Fact("cost a visit", r.costText())
	if r.Views.Fenced > 0 {
		p.Fact("fence", fencedText(r.Views.Fenced))
	}
	if len(r.Errors) > 0 {
		p.Fact("errors", r.errorsText())
	}
	p.Fact("repeat", r.Command)
}

// Safety is the worst verdict and its words; the first failing one speaks.
func (r *Run) Safety() (checker.Status, string) { return worst(r.Verdicts) }

func (r *Run) fairnessText() string {
	f := r.Fairness
	text := fmt.Sprintf("Jain %.2f over %s; %s", f.Jain, human.Quantity(r.Workers, "worker"), starving(f.StarvingWorkers))
	text += fmt.Sprintf("; worst w%02d: %s, mean wait %s, longest %s", f.Worst.Worker, human.Quantity(f.Worst.Visits, "visit"),
		human.Duration(time.Duration(f.Worst.Mean)), human.Duration(time.Duration(f.Worst.Longest)))
	if f.IdleShare != nil {
		text += fmt.Sprintf("; lock idle while somebody waited %s of the time", human.Percent(*f.IdleShare))
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

func (r *Run) writeLatencies(p *human.Printer) {
	const row = "%-26s%9s%9s%9s%9s%9s%9s%9s"
	p.Line(row, "latency", "count", "p50", "p90", "p99", "p99.9", "max", "mean")
	for _, l := range r.latencies() {
		p.Line(row, l...)
	}
	if r.Waiting.Censored > 0 {
		p.Line("%s", r.censoredText())
	}
}

// latencies are the rows of a table: name, count, p50, p90, p99, p99.9, max, mean.
func (r *Run) latencies() [][]any {
	row := func(name string, l Percentiles) []any {
		if l.Count == 0 {
			return []any{name, "0", "-", "-", "-", "-", "-", "-"}
		}
		return []any{name, human.Count(l.Count), quantile(l.P50, l.Max), quantile(l.P90, l.Max), quantile(l.P99, l.Max),
			quantile(l.P999, l.Max), human.Duration(time.Duration(l.Max)), human.Duration(time.Duration(l.Mean))}
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
	return human.Quantity(r.Waiting.Censored, "wait") + " ended without a grant or outlasted the measurement; they count with what was seen of them"
}

// quantile writes a percentile: "-" if the count does not support it, ">" if waits without end hide it.
func quantile(v *int64, longest int64) string {
	switch {
	case v == nil:
		return "-"
	case *v == int64(Beyond):
		return ">" + human.Duration(time.Duration(longest))
	default:
		return human.Duration(time.Duration(*v))
	}
}

func (r *Run) visitsText() string {
	v := r.Visits
	text := fmt.Sprintf("%s begun, %s counted, %s timed out, %s failed, %s unknown",
		human.Count(v.Begun), human.Count(v.Done), human.Count(v.Timeout), human.Count(v.Failed), human.Count(v.Unknown))
	if r.Rate > 0 {
		a := r.Arrivals
		text += fmt.Sprintf("; with the warm-up %s due = %s begun + %s skipped + %s unfinished",
			human.Count(a.Due), human.Count(a.Begun), human.Count(a.Skipped), human.Count(a.Unfinished))
	}
	return text
}

func (r *Run) costText() string {
	c := r.Cost
	return fmt.Sprintf("%s round trips, %s commands on the servers, %s of their CPU",
		optional(c.RoundTrips), optional(c.Commands), optionalDuration(c.ServerCPU))
}

// fencedText tells of the fence doing its work: no error.
func fencedText(n int64) string { return human.Quantity(n, "stale store") + " refused by the counter" }

func optional(x *float64) string {
	if x == nil {
		return "-"
	}
	return human.Number(*x)
}

func optionalDuration(x *float64) string {
	if x == nil {
		return "-"
	}
	return human.Duration(time.Duration(*x))
}

func (r *Run) errorsText() string {
	var all []string
	for what, n := range r.Errors {
		all = append(all, human.Count(n)+" "+what)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
