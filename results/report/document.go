package report

import (
	"slices"
	"strconv"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// runDocument is what the page's script gets to know about a run.
type runDocument struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
	// Load is the number of the group of runs with the same load; -1 = the run belongs to no group.
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

// faultDocument is a period that charts mark: a fault, a phase, an outage or a role change.
type faultDocument struct {
	From int64 `json:"from"`
	To   int64 `json:"to"` // -1 = it did not end
	// In and Out are for faults: the injection lasted from From to In, and the healing from Out to To.
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

// outages lists the periods in which workers waited for a lock and none got it.
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

// endless returns the time in nanoseconds; -1 stands for a time that never comes.
func endless(t time.Duration) int64 {
	if t == history.Forever {
		return -1
	}
	return int64(t)
}
