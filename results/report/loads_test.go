package report

import (
	"slices"
	"testing"

	"hammerlock/results"
)

// TestLoads: each load has its own table. A closed loop beside an open loop has no latencies and no chart.
func TestLoads(t *testing.T) {
	var runs []saved
	for _, rate := range []float64{100, 0} {
		for _, topology := range []string{"single", "replica"} {
			r := &results.Run{Topology: topology, Lock: "lease"}
			p99, trips := int64(5), 2.0
			r.Workers, r.Rate, r.Latency.Response.P99, r.Cost.RoundTrips = 8, rate, &p99, &trips
			runs = append(runs, saved{Run: r})
		}
	}
	names, _ := titles(runs)
	all := loads(runs, names)
	if len(all) != 2 || all[0].Load == "" || all[1].Table.Rows[0][0].Text != "single" ||
		all[1].Table.Rows[1][0].Link != "run3" {
		t.Fatalf("got %+v", all)
	}
	for i, want := range []bool{true, false} {
		if got := slices.Contains(all[i].Table.Head, "Acquire p50"); got != want || all[i].Cost != want {
			t.Errorf("load %d has latencies: %t, a chart: %t, want %t", i, got, all[i].Cost, want)
		}
	}
	if all = loads(runs[:2], names[:2]); len(all) != 1 || all[0].Load != "" {
		t.Errorf("one load alone: %+v", all)
	}
}
