package kept

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
	"hammerlock/results"
)

const waitingFile = "results/baselines/waiting.json"

// Strategy is a way to wait for a lock: the lock's own, or the worker's with a backoff.
type Strategy struct {
	Lock    string        `json:"lock"`
	Backoff time.Duration `json:"backoff_ns,omitempty"` // for a lock that leaves the waiting to its user
	Waits   string        `json:"waits"`                // description for the readers of the table
}

// Name is the lock, and the worker's backoff if there is one.
func (s Strategy) Name() string {
	if s.Backoff == 0 {
		return s.Lock
	}
	return s.Lock + "," + s.Backoff.String()
}

// Bound is the name of the upper bound in the comparison. It is no lock: see tools/waiting/blpop.go.
const Bound = "blpop"

// Strategies are the compared strategies.
var Strategies = []Strategy{
	{"lease", time.Millisecond, "tries again after about 1 ms"},
	{"lease", 50 * time.Millisecond, "tries again after about 50 ms"},
	{"spin", 0, "tries again after up to 1 ms, doubling to 128 ms"},
	{"redisson", 0, "is sent a message, one in a process"},
	{"fair", 0, "stands in a queue, is sent a message when it is its turn"},
	{"redsync", 0, "tries again after 50 to 250 ms"},
	{"redislock", 50 * time.Millisecond, "tries again after about 50 ms"},
	{"rueidislock", 0, "is sent an invalidation of the lock's keys"},
	{"handoff", 0, "stands in a queue, is sent the lock itself"},
	{"handoff-cohort", 0, "is handed the lock inside its process, up to 32 times in a row"},
	{Bound, 0, "bound, no lock: the server blocks who waits, without lease and fence"},
}

// Crowd says how many workers wait, and how long each of them holds the lock.
type Crowd struct {
	Workers   int           `json:"workers"`
	Processes int           `json:"processes"`
	Hold      time.Duration `json:"hold_ns"`
}

// Crowds lists the crowds with which each strategy is measured.
var Crowds = func() (list []Crowd) {
	for _, processes := range []int{1, 2, 8} {
		for _, workers := range []int{32, 256} {
			for _, hold := range []time.Duration{0, time.Millisecond} {
				list = append(list, Crowd{workers, processes, hold})
			}
		}
	}
	return list
}()

// Waited is a strategy's result for a crowd: means of the rounds.
type Waited struct {
	Strategy
	Crowd
	Visits   float64            `json:"visits_per_s"`
	Spread   float64            `json:"visits_spread"`        // range of the rounds, as a share of the mean
	P99      time.Duration      `json:"random_waiter_p99_ns"` // 0 = too few waits
	AtLeast  bool               `json:"at_least,omitempty"`   // waits may be longer than the window
	Jain     float64            `json:"jain"`
	Starving float64            `json:"starving"` // number of workers
	Commands float64            `json:"commands"` // per visit
	Woken    map[string]float64 `json:"woken"`    // by cause: share of the grants
	Errors   map[string]int64   `json:"errors,omitempty"`
}

// Waiting is the whole measurement.
type Waiting struct {
	Made
	Server string        `json:"server"`
	Window time.Duration `json:"measured_ns"`
	Rounds int           `json:"rounds"`
	Rows   []Waited      `json:"rows"`
}

// ReadWaiting reads the saved measurement.
func ReadWaiting() (*Waiting, error) {
	w := new(Waiting)
	text, err := os.ReadFile(waitingFile)
	if err != nil {
		return nil, err
	}
	return w, json.Unmarshal(text, w)
}

// Keep saves the measurement.
func (w *Waiting) Keep() error {
	text, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(waitingFile, append(text, '\n'), 0o644)
}

// table returns the tables with the results of "make waiting".
func (w *Waiting) table() string {
	rows := "| workers | lock | a waiter | visits/s | random waiter p99 | Jain | starving | commands a " +
		"visit | grants after |\n" +
		"|---|---|---|---|---|---|---|---|---|\n"
	apart, errors := 0.0, ""
	for _, s := range Strategies {
		if !slices.ContainsFunc(w.Rows, func(r Waited) bool { return r.Strategy == s }) {
			rows += fmt.Sprintf("| | `%s` | %s | not measured yet: make waiting | | | | | |\n", s.Lock, s.Waits)
		}
	}
	for _, r := range w.Rows {
		if r.Processes == 1 && r.Hold > 0 {
			rows += r.line()
		}
		apart = max(apart, r.Spread)
		for _, what := range slices.Sorted(maps.Keys(r.Errors)) {
			errors += fmt.Sprintf("; `%s`, %d workers: %s times %s", r.Lock, r.Workers, human.Count(r.Errors[what]),
				what)
		}
	}
	if errors != "" {
		errors = " What did not go well, although no visit failed:" + errors[1:] + "."
	}
	conditions := fmt.Sprintf("The server, %s, is on the same machine: one page, %d rounds of %s each way in turns; "+
		"the visits of two rounds differed by up to %.0f %%. The first table is of one process and a hold of 1 ms.%s",
		w.Server, w.Rounds, human.Duration(w.Window), 100*apart, errors)
	return Line(w.Made) + "\n" + rows + "\n" + strings.Join(human.Wrap(conditions, 118), "\n") + "\n\n" +
		crowdTable(w.Rows)
}

// crowdTable has a row for each lock, and a column for each crowd.
func crowdTable(rows []Waited) string {
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
		cells[name] += fmt.Sprintf(" %s; %s; %.2f |", written("throughput", r.Visits), r.p99(), r.Jain)
	}
	text := "Visits/s; p99 of a random waiter; Jain, by processes, workers and hold:\n\n" + head + "\n" +
		strings.Repeat("|---", strings.Count(head, "|")-1) + "|\n"
	for _, name := range lines {
		text += "| " + name + " |" + cells[name] + "\n"
	}
	return text
}

func (r *Waited) line() string {
	var woken []string
	ways := slices.SortedFunc(maps.Keys(r.Woken), func(a, b string) int { return strings.Compare(b, a) })
	slices.SortStableFunc(ways, func(a, b string) int { return int(1e6 * (r.Woken[b] - r.Woken[a])) })
	for _, by := range ways {
		if share := r.Woken[by]; share >= 0.005 {
			woken = append(woken, fmt.Sprintf("%s %.0f %%", by, 100*share))
		}
	}
	return fmt.Sprintf("| %d | `%s` | %s | %s | %s | %.2f | %.0f | %s | %s |\n", r.Workers, r.Lock, r.Waits,
		written("throughput", r.Visits),
		r.p99(), r.Jain, r.Starving, written("cost.commands", r.Commands), strings.Join(woken, ", "))
}

func (r *Waited) p99() string {
	switch {
	case r.AtLeast:
		return "> " + human.Duration(r.P99)
	case r.P99 > 0:
		return human.Duration(r.P99)
	}
	return "-"
}

// written formats a number as the reports do.
func written(metric string, value float64) string {
	m, err := results.FindMetric(metric)
	if err != nil {
		panic(err) // all names above are metrics
	}
	return strings.TrimSuffix(m.Format(value), "/s")
}
