package results

import (
	"io"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// Phase is a part of a run with its own load. It has the measurements of the visits that were due in this part.
type Phase struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Load   string   `json:"load"` // in words
	From   int64    `json:"from_ns"`
	To     int64    `json:"to_ns"`
	Faults []string `json:"faults,omitempty"`

	// Measured is the measured time. It is shorter than the phase if the run ended early; 0 = the run ended before
	// the phase.
	Measured   int64            `json:"measured_ns"`
	Visits     Visits           `json:"visits"`
	Unfinished int64            `json:"unfinished"` // visits for which no worker was free before the run ended
	Throughput float64          `json:"throughput_per_s"`
	Latency    Latencies        `json:"latency"`
	Waiting    Waiting          `json:"waiting"`
	Fairness   Fairness         `json:"fairness"`
	Cost       Cost             `json:"cost"` // mean cost of the visits that ended in the phase
	Errors     map[string]int64 `json:"errors"`
}

// Take copies the measurements of r, which are those of this phase alone.
func (p *Phase) Take(r *Run) {
	p.Measured, p.Visits, p.Unfinished, p.Throughput, p.Latency = r.Measured, r.Visits, r.Arrivals.Unfinished,
		r.Throughput, r.Latency
	p.Waiting, p.Fairness, p.Errors = r.Waiting, r.Fairness, r.Errors
}

// In returns the record of one phase as if it were a run; nil if there is no such phase. It lacks numbers that are
// not measured for each phase, such as lost page views.
func (r *Run) In(phase string) *Run {
	i := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.Name == phase })
	if i < 0 {
		return nil
	}
	p := &r.Phases[i]
	x := &Run{
		Name: r.Name, Topology: r.Topology, Lock: r.Lock, Scenario: r.Scenario, Interactive: r.Interactive,
		Aborted: r.Aborted, Generator: r.Generator,
		Visits: p.Visits, Throughput: p.Throughput, Latency: p.Latency, Waiting: p.Waiting, Fairness: p.Fairness,
		Errors: p.Errors, Cost: p.Cost,
	}
	x.Config = r.Config
	x.Measured = p.Measured
	return x
}

// Loop says when visits are due: at a rate (open loop), or whenever a worker is free (closed loop).
func (r *Run) Loop() string {
	text := "closed loop"
	switch n := len(r.Phases); {
	case r.Rate > 0 && n > 0:
		text = human.Number(r.Rate) + " visits/s on average, " + r.Spread + ", in " + human.Quantity(n, "phase")
	case r.Rate > 0:
		text = human.Number(r.Rate) + " visits/s " + r.Spread
	case n > 0:
		text += " in " + human.Quantity(n, "phase")
	}
	return text
}

var PhaseHead = []string{"phase", "from", "for", "due", "counted", "counted/s", "response p50", "p99", "max",
	"commands", "server CPU"}

// Row returns the cells of a table whose heading is PhaseHead.
func (p *Phase) Row() []string {
	q, rate, most := &p.Latency.Response, "-", "-"
	if p.Measured > 0 {
		rate = human.Number(p.Throughput)
	}
	if q.Count > 0 {
		most = q.Text(&q.Max)
	}
	_, commands, cpu := p.Cost.Texts()
	return []string{p.Name, clock(p.From), clock(p.To - p.From),
		human.Count(p.Visits.Begun + p.Visits.Skipped + p.Unfinished),
		human.Count(p.Visits.Done), rate, q.Text(q.P50), q.Text(q.P99), most, commands, cpu}
}

func clock(ns int64) string { return human.Number(time.Duration(ns).Seconds()) + " s" }

// WritePhases writes a table of phases for each run that has phases. It leaves out services; WriteService has their
// tables.
func WritePhases(w io.Writer, runs []Run) error {
	p := &human.Printer{W: w}
	writePhases(p, slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Unseen() }))
	return p.Err
}

func writePhases(p *human.Printer, runs []Run) {
	for i := range runs {
		r := &runs[i]
		if len(r.Phases) == 0 {
			continue
		}
		p.Line("")
		if len(runs) > 1 {
			p.Line("%s", r.Combination())
		}
		rows := [][]string{append(slices.Clone(PhaseHead), "load")}
		for k := range r.Phases {
			x := &r.Phases[k]
			load := x.Load
			if len(x.Faults) > 0 {
				load += " · " + strings.Join(x.Faults, ", ")
			}
			rows = append(rows, append(x.Row(), load))
		}
		human.FlushRight(rows, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		p.Table(rows, 1)
	}
}
