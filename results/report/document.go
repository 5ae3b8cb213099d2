package report

import (
	"slices"
	"strconv"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// runDocument is the data about one run for the page's script.
type runDocument struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
	// number of the group of runs with which its latencies are compared; -1 = none
	Load    int              `json:"load"`
	Trips   *float64         `json:"trips"`
	P99     *int64           `json:"p99"`
	Warmup  int64            `json:"warmup"`
	Series  *series          `json:"series"`
	Strip   *packedStrip     `json:"strip"`
	Faults  []faultDocument  `json:"faults"`
	Phases  []faultDocument  `json:"phases"`
	Roles   []faultDocument  `json:"roles"` // role changes of the servers
	Outages []faultDocument  `json:"outages"`
	Workers []results.Worker `json:"workers"`
}

// faultDocument is a fault, or a phase, in a chart.
type faultDocument struct {
	From int64 `json:"from"`
	To   int64 `json:"to"` // -1 = never healed
	// In and Out are the times between which a fault was active. Before In it was being injected, after Out it was
	// being healed.
	In   int64  `json:"in,omitempty"`
	Out  int64  `json:"out,omitempty"`
	Name string `json:"name"`
	Note string `json:"note"`
}

func document(runs []saved, names []string, b *pack) []runDocument {
	all, loads := []runDocument{}, loadsOf(runs)
	for i := range runs {
		r := &runs[i]
		status, _ := r.Safety()
		d := runDocument{
			ID: runID(i), Name: names[i], Status: status.String(), Load: -1, Trips: r.Cost.RoundTrips,
			P99: r.Latency.Response.P99, Warmup: r.Warmup, Series: r.series, Workers: r.Fairness.Workers,
			Faults: []faultDocument{}, Phases: []faultDocument{}, Roles: []faultDocument{},
		}
		if alike(r.Run) {
			d.Load = slices.Index(loads, r.Workload())
		}
		for _, p := range r.Phases {
			d.Phases = append(d.Phases, faultDocument{From: p.From, To: p.To, Name: p.Name, Note: p.Load})
		}
		if r.strip != nil {
			d.Strip = b.strip(r.strip)
		}
		for _, w := range r.Windows {
			f := faultDocument{From: int64(w.From), To: endless(w.To), In: int64(w.Injected), Out: endless(w.Healing),
				Note: r.notes[w.Fault]}
			if w.Fault >= 0 && w.Fault < int64(len(r.faults)) {
				f.Name = r.faults[w.Fault]
			}
			d.Faults = append(d.Faults, f)
		}
		d.Outages = outages(r.Run)
		for _, e := range r.others {
			if e.role {
				d.Roles = append(d.Roles, faultDocument{From: int64(e.from), To: int64(e.to), Name: e.what})
			}
		}
		all = append(all, d)
	}
	return all
}

func runID(i int) string { return "run" + strconv.Itoa(i) }

// outages lists the times in which no worker was served.
func outages(r *results.Run) []faultDocument {
	all := []faultDocument{}
	if r.Availability == nil {
		return all
	}
	for i := range r.Availability.Outages {
		o := &r.Availability.Outages[i]
		all = append(all, faultDocument{From: o.From, To: o.To, Name: "unavailable " +
			human.Duration(time.Duration(o.To-o.From))})
	}
	return all
}

// endless returns -1 for a time that never comes.
func endless(t time.Duration) int64 {
	if t == history.Forever {
		return -1
	}
	return int64(t)
}
