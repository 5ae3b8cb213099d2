package results

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// terminal is a writer with a width.
type terminal struct {
	strings.Builder
	columns int
}

func (t *terminal) Columns() int { return t.columns }

// TestTablesFitTheTerminal writes one run and then five. No line may be wider than the terminal; columns that do not
// fit come in a second table below.
func TestTablesFitTheTerminal(t *testing.T) {
	ms := int64(12_345_678)
	p := Percentiles{Count: 1_526, P50: &ms, P90: &ms, P99: &ms, P999: &ms, Max: ms, Mean: ms}
	var runs []Run
	for _, topology := range []string{"single", "replica", "sentinel", "cluster", "redlock"} {
		r := Run{Topology: topology, Lock: "redlock", Config: Config{Workers: 32}, Throughput: 1_234}
		r.Latency = Latencies{Acquire: p, Response: p, Handoff: p, Release: p}
		r.Waiting.RandomWaiter, r.Waiting.Unfinished = p, p
		r.Cost.RoundTrips = new(float64)
		r.Generator = Generator{State: Disturbed, Reasons: []string{strings.Repeat("other programs use the cores ", 9)}}
		runs = append(runs, r)
	}
	for columns, tables := range map[int]int{80: 5, 100: 3, 200: 3} {
		for _, some := range [][]Run{runs[:1], runs} {
			w := &terminal{columns: columns}
			if err := WriteText(w, some); err != nil {
				t.Fatal(err)
			}
			for row := range strings.Lines(w.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(row, "\n")); n > min(columns, 100) {
					t.Errorf("%d columns in a terminal of %d: %s", n, columns, row)
				}
			}
			if got := strings.Count(w.String(), "\nsentinel redlock"); len(some) > 1 && got != tables {
				t.Errorf("%d columns: %d tables, want %d\n%s", columns, got, tables, w)
			}
		}
	}
}

// TestACellThatFillsItsColumnStandsApart from the next one.
func TestACellThatFillsItsColumnStandsApart(t *testing.T) {
	w := &terminal{columns: 200}
	runs := []Run{{Topology: "single", Lock: "handoff-cohort"}, {Topology: "single", Lock: "lease"}}
	if err := WriteText(w, runs); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.String(), "single handoff-cohort INCONCLUSIVE") {
		t.Errorf("the name is not apart from the verdict:\n%s", w)
	}
}
