package results

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"hammerlock/checker"
	"hammerlock/internal/human"
)

// WriteText writes all numbers of a single run, or tables that compare several runs.
func WriteText(w io.Writer, runs []Run) error {
	p := &human.Printer{W: w}
	switch len(runs) {
	case 0:
	case 1:
		runs[0].write(p)
	default:
		writeComparison(p, runs, true)
	}
	return p.Err
}

// WriteCrowd writes the results of closed loops. It leaves out latencies, because in a closed loop they depend on
// the machine.
func WriteCrowd(w io.Writer, runs []Run) error {
	p := &human.Printer{W: w}
	writeComparison(p, runs, false)
	return p.Err
}

func (r *Run) write(p *human.Printer) {
	p.Fact(r.Topology, "lock "+r.Lock+" · "+r.Workload())
	p.Maybe("NOTE", r.Label)
	if r.Interactive {
		p.Fact("INTERACTIVE", InteractiveText)
	}
	if r.Partial != "" {
		p.Fact("PARTIAL", "the run ended early: "+r.Partial)
	}
	status, text := r.Safety()
	p.Fact("SAFETY", strings.ToUpper(status.String())+"  "+text)
	p.Fact("GENERATOR", string(r.Generator.State)+"  "+strings.Join(r.Generator.Reasons, "; "))
	p.Fact("FAIRNESS", r.FairnessText())
	p.Line("")
	r.writeLatency(p)
	if text := r.CensoredText(); text != "" {
		p.Line("%s", text)
	}
	if few := tooFew([]Run{*r}); few != "" && r.Latency.Acquire.Count > 0 {
		p.Line("%s", few)
	}
	writePhases(p, []Run{*r})
	p.Line("")
	rate, ended := r.ThroughputText()
	p.Fact("throughput", rate+" visits/s: "+ended)
	p.Fact("visits", r.VisitsText())
	p.Maybe("unavailable", r.AvailabilityText())
	p.Maybe("recovery", r.RecoveryText())
	p.Maybe("woken", r.WokenText())
	if trips, commands, cpu := r.Cost.Texts(); !r.Unseen() {
		p.Fact("cost a visit", fmt.Sprintf("%s round trips, %s commands on the servers, %s of their CPU", trips,
			commands, cpu))
	}
	p.Maybe("stream", r.StreamText())
	p.Maybe("driver", r.Driver.Text())
	p.Maybe("agents", r.Fleet.Text())
	p.Maybe("fence", r.fencedText())
	p.Maybe("errors", r.errorsText())
	p.Fact("repeat", r.Command)
}

// writeLatency writes a row for each kind of latency. On a narrow terminal the last columns are missing.
func (r *Run) writeLatency(p *human.Printer) {
	const name, number = 26, 9
	for _, row := range append([][]string{{"latency", "count", "p50", "p90", "p99", "p99.9", "max", "mean"}},
		r.LatencyRows()...) {
		line := fmt.Sprintf("%-*s", name, row[0])
		for _, cell := range row[1:min(len(row), 1+(human.Columns(p.W)-name)/number)] {
			line += fmt.Sprintf("%*s", number, cell)
		}
		p.Line("%s", line)
	}
}

// writeWorkloads describes the load of the runs, once for all runs with the same load.
func writeWorkloads(p *human.Printer, runs []Run) {
	var known []string
	for i := range runs {
		r := &runs[i]
		text := r.Workload()
		if r.Unseen() {
			text = r.Combination() + ": " + text
		}
		if i == 0 || r.Unseen() && !slices.Contains(known, text) {
			p.Wrapped("", 0, text)
		}
		known = append(known, text)
	}
}

// writeComparison writes three tables with a row for each run: verdicts, latencies (if wanted) and costs.
func writeComparison(p *human.Printer, runs []Run, latency bool) {
	writeWorkloads(p, runs)
	writeColumns(p, runs, verdictColumns)
	if latency {
		writeColumns(p, runs, latencyColumns)
	}
	writeColumns(p, runs, costColumns)
	writePhases(p, runs)
	p.Line("")
	if few := tooFew(runs); latency && few != "" {
		p.Wrapped("", 2, few)
	}
	writeNotes(p, runs)
}

// tooFew names the runs with too few visits for a p99; empty = there are none.
func tooFew(runs []Run) string {
	var few []string
	for i := range runs {
		if r := &runs[i]; r.Latency.Acquire.P99 == nil && !r.Unseen() {
			few = append(few, r.Combination()+" has "+human.Count(r.Latency.Acquire.Count))
		}
	}
	if len(few) == 0 {
		return ""
	}
	return "p99 needs " + human.Quantity(Needs(0.99), "visit") + ": " + strings.Join(few, ", ")
}

// writeNotes writes remarks about the runs, such as warnings. Runs with the same remark share a line.
func writeNotes(p *human.Printer, runs []Run) {
	var order []string
	about := map[string][]string{}
	for i := range runs {
		r := &runs[i]
		for _, text := range r.notes() {
			if len(about[text]) == 0 {
				order = append(order, text)
			}
			if !slices.Contains(about[text], r.Combination()) {
				about[text] = append(about[text], r.Combination())
			}
		}
	}
	for _, text := range order {
		p.Wrapped("", 2, strings.Join(about[text], ", ")+": "+text)
	}
}

func (r *Run) notes() (all []string) {
	add := func(label, text string) {
		if text != "" {
			all = append(all, label+text)
		}
	}
	if status, text := r.Safety(); status != checker.Pass {
		add("SAFETY "+strings.ToUpper(status.String())+": ", text)
	}
	add("", r.Label)
	add("PARTIAL: ", r.Partial)
	add("GENERATOR "+string(r.Generator.State)+": ", strings.Join(r.Generator.Reasons, "; "))
	if len(r.Fairness.StarvingWorkers) > 0 {
		add("FAIRNESS: ", starving(r.Fairness.StarvingWorkers))
	}
	add("recovery: ", r.RecoveryText())
	add("unavailable: ", r.AvailabilityText())
	add("stream: ", r.StreamText())
	add("driver: ", r.Driver.Text())
	add("FENCE: ", r.fencedText())
	add("errors: ", r.errorsText())
	return all
}
