package hammerlock_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// waitingTable shows what make waiting has measured.
func waitingTable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("results/baselines/waiting.json")
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Cores  int
		Server string
		Window time.Duration `json:"measured_ns"`
		Rounds int
		Rows   []waitingRow
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	rows := "| workers | lock | a waiter | visits/s | random waiter p99 | Jain | starving | commands a visit | grants after |\n" +
		"|---|---|---|---|---|---|---|---|---|\n"
	apart, errors := 0.0, ""
	for _, r := range kept.Rows {
		if r.Processes == 1 && r.Hold > 0 {
			rows += r.line(t)
		}
		apart = max(apart, r.Spread)
		for _, what := range slices.Sorted(maps.Keys(r.Errors)) {
			errors += fmt.Sprintf("; `%s`, %d workers: %s times %s", r.Lock, r.Workers, human.Count(r.Errors[what]), what)
		}
	}
	if errors != "" {
		errors = " What did not go well, although no visit failed:" + errors[1:] + "."
	}
	conditions := fmt.Sprintf("Measured on %d cores with the server, %s, on the same machine: one page, %d rounds of %s each way in turns; "+
		"the visits of two rounds differed by up to %.0f %%. The first table is of one process and a hold of 1 ms.%s",
		kept.Cores, kept.Server, kept.Rounds, human.Duration(kept.Window), 100*apart, errors)
	return rows + "\n" + strings.Join(human.Wrap(conditions, 118), "\n") + "\n\n" + crowdTable(t, kept.Rows)
}

// crowdTable has a row for each lock and a column for each crowd.
func crowdTable(t *testing.T, rows []waitingRow) string {
	head, lines := "| lock |", []string{}
	cells := map[string]string{}
	for _, r := range rows {
		name := "`" + r.Lock + "`"
		if r.Backoff > 0 {
			name += ", " + human.Duration(r.Backoff)
		}
		if _, ok := cells[name]; !ok {
			lines = append(lines, name)
		}
		if name == lines[0] {
			head += fmt.Sprintf(" %d proc., %d w., %s |", r.Processes, r.Workers, human.Duration(r.Hold))
		}
		cells[name] += fmt.Sprintf(" %s; %s; %.2f |", written(t, "throughput", r.Visits), r.p99(), r.Jain)
	}
	text := "Visits/s; p99 of a random waiter; Jain, by processes, workers and hold:\n\n" + head + "\n" +
		strings.Repeat("|---", strings.Count(head, "|")-1) + "|\n"
	for _, name := range lines {
		text += "| " + name + " |" + cells[name] + "\n"
	}
	return text
}

type waitingRow struct {
	Workers   int
	Processes int
	Hold      time.Duration `json:"hold_ns"`
	Lock      string
	Backoff   time.Duration `json:"backoff_ns"`
	Waits     string
	Visits    float64       `json:"visits_per_s"`
	Spread    float64       `json:"visits_spread"`
	P99       time.Duration `json:"random_waiter_p99_ns"`
	AtLeast   bool          `json:"at_least"`
	Jain      float64
	Starving  float64
	Commands  float64
	Woken     map[string]float64
	Errors    map[string]int64
}

func (r *waitingRow) line(t *testing.T) string {
	t.Helper()
	var woken []string
	ways := slices.SortedFunc(maps.Keys(r.Woken), func(a, b string) int { return strings.Compare(b, a) })
	slices.SortStableFunc(ways, func(a, b string) int { return int(1e6 * (r.Woken[b] - r.Woken[a])) })
	for _, by := range ways {
		if share := r.Woken[by]; share >= 0.005 {
			woken = append(woken, fmt.Sprintf("%s %.0f %%", by, 100*share))
		}
	}
	return fmt.Sprintf("| %d | `%s` | %s | %s | %s | %.2f | %.0f | %s | %s |\n", r.Workers, r.Lock, r.Waits, written(t, "throughput", r.Visits),
		r.p99(), r.Jain, r.Starving, written(t, "cost.commands", r.Commands), strings.Join(woken, ", "))
}

func (r *waitingRow) p99() string {
	switch {
	case r.AtLeast:
		return "> " + human.Duration(r.P99)
	case r.P99 > 0:
		return human.Duration(r.P99)
	}
	return "-"
}

// written writes a number as the reports do.
func written(t *testing.T, metric string, value float64) string {
	t.Helper()
	m, err := results.FindMetric(metric)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(m.Format(value), "/s")
}
