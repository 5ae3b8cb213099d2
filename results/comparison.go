package results

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/human"
)

// writeComparison writes several runs below each other: verdicts, then latency, then cost.
func writeComparison(p *human.Printer, runs []Run) {
	p.Wrapped("", 0, runs[0].load())
	p.Line("")
	const verdicts = "%-20s %-14s%9s%11s  %-10s %-9s %5s %9s"
	p.Line(verdicts, "", "SAFETY", "lost", "visits/s", "FAIRNESS", "starving", "idle", "GENERATOR")
	for i := range runs {
		r := &runs[i]
		status, _ := r.Safety()
		p.Line(verdicts, r.short(), strings.ToUpper(status.String()), human.Count(r.Views.Lost), human.Number(r.Throughput),
			fmt.Sprintf("Jain %.2f", r.Fairness.Jain), fmt.Sprintf("%d of %d", r.Fairness.Starving, r.Workers),
			share(r.Fairness.IdleShare), string(r.Generator.State))
	}
	p.Line("")
	p.Line("%-20s %-26s%-20s%-18s%-16s", "", "acquire (winners)", "with unfinished", "random waiter", "response")
	const latency = "%-20s %-8s%-9s%-9s%-10s%-10s%-9s%-9s%-8s%-8s"
	p.Line(latency, "", "p50", "p99", "max", "p50", "p99", "p50", "p99", "p50", "p99")
	for i := range runs {
		r := &runs[i]
		a, u, w, q := r.Latency.Acquire, r.Waiting.Unfinished, r.Waiting.RandomWaiter, r.Latency.Response
		p.Line(latency, r.short(), quantile(a.P50, a.Max), quantile(a.P99, a.Max), human.Duration(time.Duration(a.Max)),
			quantile(u.P50, u.Max), quantile(u.P99, u.Max), quantile(w.P50, w.Max), quantile(w.P99, w.Max),
			quantile(q.P50, q.Max), quantile(q.P99, q.Max))
	}
	p.Line("")
	p.Line("%-20s %-18s%-18s%-16s%s", "", "hand-off", "release", "worst worker", "a visit costs")
	const cost = "%-20s %-9s%-9s%-9s%-9s%-7s%-9s%-8s%-9s%s"
	p.Line(cost, "", "p50", "p99", "p50", "p99", "visits", "longest", "trips", "commands", "server CPU")
	for i := range runs {
		r := &runs[i]
		h, l := r.Latency.Handoff, r.Latency.Release
		p.Line(cost, r.short(), quantile(h.P50, h.Max), quantile(h.P99, h.Max), quantile(l.P50, l.Max),
			quantile(l.P99, l.Max), human.Count(r.Fairness.Worst.Visits), human.Duration(time.Duration(r.Fairness.Worst.Longest)),
			optional(r.Cost.RoundTrips), optional(r.Cost.Commands), optionalDuration(r.Cost.ServerCPU))
	}
	p.Line("")
	writeNotes(p, runs)
}

// writeNotes says what each number leaves open, one line for all runs that share it.
func writeNotes(p *human.Printer, runs []Run) {
	var order []string
	about := map[string][]string{}
	note := func(r *Run, text string) {
		if len(about[text]) == 0 {
			order = append(order, text)
		}
		if !slices.Contains(about[text], r.short()) {
			about[text] = append(about[text], r.short())
		}
	}
	for i := range runs {
		r := &runs[i]
		if status, text := r.Safety(); status != checker.Pass {
			note(r, "SAFETY "+strings.ToUpper(status.String())+": "+text)
		}
		if r.Label != "" {
			note(r, r.Label)
		}
		if r.Partial != "" {
			note(r, "PARTIAL: "+r.Partial)
		}
		if len(r.Generator.Reasons) > 0 {
			note(r, "GENERATOR "+string(r.Generator.State)+": "+strings.Join(r.Generator.Reasons, "; "))
		}
		if len(r.Fairness.StarvingWorkers) > 0 {
			note(r, "FAIRNESS: "+starving(r.Fairness.StarvingWorkers))
		}
		if r.Views.Fenced > 0 {
			note(r, "FENCE: "+fencedText(r.Views.Fenced))
		}
		if len(r.Errors) > 0 {
			note(r, "errors: "+r.errorsText())
		}
	}
	for _, text := range order {
		p.Wrapped("", 2, strings.Join(about[text], ", ")+": "+text)
	}
}

func (r *Run) short() string { return r.Topology + " " + r.Lock }

// load describes what all runs of a comparison have in common.
func (r *Run) load() string {
	parts := []string{human.Quantity(r.Workers, "worker"), human.Quantity(r.Keys, "page")}
	if r.Rate > 0 {
		parts = append(parts, human.Number(r.Rate)+" visits/s "+r.Spread)
	} else {
		parts = append(parts, "closed loop")
	}
	parts = append(parts, "lease "+human.Duration(time.Duration(r.TTL)), "hold "+human.Duration(time.Duration(r.Hold)),
		"backoff "+human.Duration(time.Duration(r.Retry)), human.Duration(time.Duration(r.Duration))+" each", r.Settings["server"])
	return strings.Join(parts, " · ")
}

func share(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100**x)
}
