package report

import (
	"slices"

	"hammerlock/results"
)

// loadView compares runs with the same load.
type loadView struct {
	Title, Load    string // title and settings of the load; empty = all runs have the same load
	Number         int
	Table          tableView
	Cost, Response bool // there is data for the charts of cost and of response times
}

// loads makes a group of the runs with the same load, if there are several. Closed loops show no latencies if the
// page also has open loops, because latencies of closed loops depend on the machine.
func loads(runs []saved, names []string) (all []loadView) {
	open := slices.ContainsFunc(runs, func(r saved) bool { return alike(r.Run) && r.Rate > 0 })
	for number, load := range loadsOf(runs) {
		v := loadView{Load: load, Number: number}
		var some []saved
		var at []int
		for i := range runs {
			if alike(runs[i].Run) && runs[i].Workload() == load {
				some, at = append(some, runs[i]), append(at, i)
			}
		}
		if len(some) < 2 {
			continue
		}
		short, _ := titles(some)
		latencies := some[0].Rate > 0 || !open
		if v.Title = some[0].Loop(); len(loadsOf(runs)) == 1 {
			v.Title, v.Load, short = "", "", make([]string, len(at))
			for i, n := range at {
				short[i] = names[n]
			}
		}
		v.Table = comparisonTable(some, short, at, latencies)
		for i := range some {
			r := &some[i]
			v.Cost = v.Cost || latencies && r.Cost.RoundTrips != nil && r.Latency.Response.P99 != nil
			v.Response = v.Response || latencies && r.series != nil && r.Latency.Response.Count > 0
		}
		all = append(all, v)
	}
	return all
}

// loadsOf lists the different loads of the runs, in the order of their first runs.
func loadsOf(runs []saved) (all []string) {
	for i := range runs {
		if load := runs[i].Workload(); alike(runs[i].Run) && !slices.Contains(all, load) {
			all = append(all, load)
		}
	}
	return all
}

// comparisonTable makes a table with a row for each run. The element at[i] is the position of runs[i] in the page.
func comparisonTable(runs []saved, names []string, at []int, latencies bool) tableView {
	t, columns := tableView{Class: "runs", Head: []string{"Run", "Safety"}}, results.PageColumns(latencies)
	for _, c := range columns {
		t.Head = append(t.Head, c.Page)
	}
	if t.Head = append(t.Head, "Generator"); !latencies {
		t.Class += " bare"
	}
	for i := range runs {
		r := &runs[i]
		status, _ := r.Safety()
		s, g := stateOf(status), generatorState(&r.Generator)
		cells := []string{names[i], ""}
		for _, c := range columns {
			cells = append(cells, c.Text(r.Run))
		}
		row := t.add(append(cells, "")...)
		row[0].Link, row[1].State, row[len(row)-1].State = runID(at[i]), &s, &g
	}
	return t
}
