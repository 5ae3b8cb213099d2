package results

import (
	"strings"
	"testing"
)

// TestAnswers: a number within the noise of the best one has a ~, and a line names the columns that distinguish rows.
func TestAnswers(t *testing.T) {
	row := func(topology string, from, to, p50 int64, fewest, most float64) Answer {
		run := &Run{Topology: topology, Lock: "lease", Swing: Swing{Acquire: [2]int64{from, to}}}
		run.Latency.Acquire = Percentiles{Count: 700, P50: &p50, Max: 9}
		crowd := &Run{Throughput: (fewest + most) / 2, Swing: Swing{Visits: [2]float64{fewest, most}}}
		return Answer{Run: run, Crowd: crowd, Safe: "yes", Gone: "1.00 s"}
	}
	var out strings.Builder
	all := []Answer{row("single", 190, 220, 200, 900, 1100), row("replica", 210, 400, 300, 400, 500),
		row("redlock", 500, 600, 550, 100, 110)}
	if err := WriteAnswers(&out, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"single    yes", " 200 ns", "~300 ns", " 550 ns", " 450", " 105",
		"acquire p50, crowd visits/s, not acquire p99"} {
		if !strings.Contains(strings.ReplaceAll(out.String(), "\n  ", " "), want) {
			t.Errorf("no %q:\n%s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "~ ") && !strings.HasPrefix(line, "  ") && len([]rune(line)) > 81 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}

// TestAMissingP99SaysWhy: one line names the runs with too few visits, and the number that is needed.
func TestAMissingP99SaysWhy(t *testing.T) {
	runs := []Run{{Topology: "single", Lock: "lease"}, {Topology: "replica", Lock: "lease"}}
	p99 := int64(5)
	runs[0].Latency.Acquire = Percentiles{Count: 490}
	runs[1].Latency.Acquire = Percentiles{Count: 500, P99: &p99}
	var out strings.Builder
	if err := WriteText(&out, runs); err != nil {
		t.Fatal(err)
	}
	if want := "p99 needs 500 visits: single lease has 490"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q:\n%s", want, out.String())
	}
	if strings.Contains(out.String(), "hand-off") {
		t.Errorf("columns without a value:\n%s", out.String())
	}
	for i, want := range []int{1, 0} {
		out.Reset()
		if err := WriteText(&out, runs[i:i+1]); err != nil ||
			strings.Count(out.String(), "p99 needs 500 visits") != want {
			t.Errorf("alone: %v, want the line %d times:\n%s", err, want, out.String())
		}
	}
}
