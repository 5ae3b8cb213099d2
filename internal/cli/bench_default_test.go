package cli

import (
	"bytes"
	"strings"
	"testing"

	"hammerlock/results"
)

// TestFirstLoads: bench has two loads if no flag sets one, and otherwise only the load that the flags set.
func TestFirstLoads(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        int
	}{
		{"topology", "single", 2}, {"lock", "redsync", 2}, {"seed", "7", 2}, {"profile", "stock", 2},
		{"workers", "32", 1}, {"duration", "10s", 1}, {"rate", "100/s", 1}, {"fault", "kill-primary@1s", 1},
		{"hold", "1ms", 1},
	} {
		o := planned(Env{}.benchPlan())
		o.count = 1
		if err := o.Flags.Set(c.name, c.value); err != nil {
			t.Fatal(err)
		}
		loads := o.loads()
		if len(loads) != c.want {
			t.Errorf("--%s %s: %d loads, want %d", c.name, c.value, len(loads), c.want)
		}
		for i, load := range loads {
			if load(&o.plan); c.want > 1 && (o.plan.Workload.Rate > 0) != (i == 0) {
				t.Errorf("load %d: %v visits/s", i, o.plan.Workload.Rate)
			}
		}
	}
	o := planned(Env{}.verifyPlan())
	if o.count = 1; len(o.loads()) != 1 {
		t.Error("verify has two loads")
	}
}

// TestFirstTables: only the table of the open loop, whose visits have a fixed rate, has latencies. If bench is
// stopped before the second load, its tables are still written.
func TestFirstTables(t *testing.T) {
	runs := []results.Run{{Topology: "single", Lock: "lease"}, {Topology: "single", Lock: "lease"}}
	runs[0].Workers, runs[0].Rate, runs[1].Workers = 8, 100, 32
	var out bytes.Buffer
	if err := writeFirst(&out, runs, nil, "runs/report.html"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.SplitN(out.String(), "lock lease", 2)[0], "no: restarts empty  until restarted") {
		t.Errorf("the answer does not come first:\n%s", out.String())
	}
	first, second, _ := strings.Cut(out.String(), "THE CROWD")
	if !strings.Contains(first, "acquire (winners)") || strings.Contains(second, "acquire (winners)") ||
		!strings.Contains(second, "0 of 32") {
		t.Errorf("latencies are not where they belong:\n%s", out.String())
	}
	for _, want := range []string{"bench failover", "docs/WHICH.md", "file:///"} {
		if !strings.Contains(second, want) {
			t.Errorf("the last lines do not name %s:\n%s", want, second)
		}
	}
	if out.Reset(); writeFirst(&out, runs[:1], nil, "") != nil ||
		!strings.Contains(out.String(), "lock lease · 8 workers") {
		t.Errorf("of the first load alone:\n%s", out.String())
	}
}
