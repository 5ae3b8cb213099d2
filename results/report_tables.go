package results

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

func (r *Run) latencyTable() tableView {
	t := tableView{Head: []string{"", "Count", "p50", "p90", "p99", "p99.9", "Max", "Mean"}}
	for _, l := range r.latencies() {
		var cells []string
		for _, c := range l {
			cells = append(cells, fmt.Sprint(c))
		}
		cells[0] = strings.ToUpper(cells[0][:1]) + cells[0][1:]
		t.Rows = append(t.Rows, texts(cells...))
	}
	t.Note = "A percentile with fewer than five observations beyond it is left out."
	if r.Waiting.Censored > 0 {
		t.Note += " " + r.censoredText() + "."
	}
	if len(r.Waiting.Woken) > 0 {
		t.Note += " How those who got the lock were woken: " + r.wokenText() + "."
	}
	return t
}

// workersMost bounds the rows of the table of workers.
const workersMost = 64

func (r *Run) workerTable() tableView {
	t := tableView{Head: []string{"Worker", "Visits", "Of its fair share", "Mean wait", "Longest wait"}}
	all := slices.Clone(r.Fairness.Workers)
	var sum, most int64
	for _, w := range all {
		sum += w.Visits
		most = max(most, w.Visits)
	}
	slices.SortStableFunc(all, func(a, b Worker) int { return int(a.Visits - b.Visits) })
	for _, w := range all[:min(len(all), workersMost)] {
		row := texts(fmt.Sprintf("w%02d", w.Worker), human.Count(w.Visits), "-", human.Duration(time.Duration(w.Mean)), human.Duration(time.Duration(w.Longest)))
		if sum > 0 {
			fair := float64(w.Visits) * float64(len(all)) / float64(sum)
			row[2] = cellView{Text: human.Percent(fair), Bar: int(100 * w.Visits / most)}
			if fair < starvingShare {
				row[0].State = &state{"fail", "✕", "starving"}
			}
		}
		t.Rows = append(t.Rows, row)
	}
	if len(all) > workersMost {
		t.Note = fmt.Sprintf("The %d workers with the fewest visits of %d.", workersMost, len(all))
	}
	return t
}

func (r *reported) faultTable() tableView {
	t := tableView{Head: []string{"Fault", "Began", "In force", "Healing", "Healthy", "What it did"}, Words: true}
	for i, name := range r.Run.Faults {
		happened := false
		for _, w := range r.Windows {
			if w.Fault != int64(i) {
				continue
			}
			happened = true
			what := r.notes[w.Fault]
			if w.Failed {
				what = "not injected: " + what
			}
			t.Rows = append(t.Rows, texts(name, clockText(w.From), clockText(w.Injected), clockText(w.Healing), clockText(w.To), what))
		}
		if !happened {
			t.Rows = append(t.Rows, texts(name, "-", "-", "-", "-", "never happened"))
		}
	}
	return t
}

// overlapsMost bounds the rows of the table of overlaps.
const overlapsMost = 20

func (s *ownership) table() tableView {
	t := tableView{Head: []string{"From", "For", "Page", "Holders", "What"}}
	for _, o := range s.overlaps[:min(len(s.overlaps), overlapsMost)] {
		what := "both believed that they held it"
		if o.late {
			what = "one went on after its lease"
		}
		t.Rows = append(t.Rows, texts(clockText(o.from), human.Duration(o.to-o.from), strconv.Itoa(int(o.key)),
			fmt.Sprintf("w%02d and w%02d", o.a, o.b), what))
	}
	if s.Overlaps > len(t.Rows) {
		t.Note = fmt.Sprintf("The first %d of %s.", len(t.Rows), human.Count(int64(s.Overlaps)))
	}
	return t
}

func facts(pairs ...string) tableView {
	t := tableView{Facts: true}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.Rows = append(t.Rows, texts(pairs[i], pairs[i+1]))
		}
	}
	return t
}

func (r *Run) healthTable() tableView {
	g := &r.Generator
	machine := "unknown"
	if g.MachineCPU >= 0 {
		machine = human.Percent(g.MachineCPU)
	}
	loop := "closed: a worker's next visit waits for its last"
	if g.OpenLoop {
		loop = "open: visits are due by a schedule"
	}
	t := facts("Loop", loop, "Generator's share of its cores", human.Percent(g.OwnCPU), "Machine busy", machine,
		"Longest GC pause", human.Duration(time.Duration(g.GCPauseMax)), "Goroutines waited for a core (p99)", human.Duration(time.Duration(g.SchedulingP99)),
		"Waits for a connection", human.Count(g.PoolWaits), "Waits to record", human.Count(g.Stalls),
		"Visits begun late (p99)", human.Duration(time.Duration(g.LateP99)), "Visits begun late (max)", human.Duration(time.Duration(g.LateMax)))
	t.Note = strings.Join(g.Reasons, "; ")
	return t
}

func (r *Run) costTable() tableView {
	t := facts("Round trips a visit", optional(r.Cost.RoundTrips), "Commands a visit, on the servers", optional(r.Cost.Commands),
		"Servers' CPU a visit", optionalDuration(r.Cost.ServerCPU), "Visits", r.visitsText())
	for _, what := range slices.Sorted(maps.Keys(r.Errors)) {
		t.Rows = append(t.Rows, texts("Error: "+what, human.Count(r.Errors[what])))
	}
	return t
}

func (r *Run) configTable() tableView {
	d := func(ns int64) string { return human.Duration(time.Duration(ns)) }
	rate := "closed loop"
	if r.Rate > 0 {
		rate = human.Number(r.Rate) + " visits/s, " + r.Spread
	}
	t := facts("Topology", r.Topology, "Lock", r.Lock, "Counter", r.Counter, "Faults", human.List(r.Faults), "Workers", strconv.Itoa(r.Workers),
		"Processes", strconv.Itoa(r.Processes), "Pages", strconv.Itoa(r.Keys), "Popularity", r.Popularity, "Rate", rate,
		"Seed", strconv.FormatUint(r.Seed, 10), "Lease", d(r.TTL), "Hold", d(r.Hold), "Think", d(r.Think), "Patience", d(r.Wait),
		"Backoff", d(r.Retry), "Warm-up", d(r.Warmup), "Duration", d(r.Duration), "Measured", d(r.Measured))
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		t.Rows = append(t.Rows, texts("Server: "+name, r.Settings[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Client)) {
		t.Rows = append(t.Rows, texts("Client: "+name, r.Client[name]))
	}
	return t
}

func (r *Run) environmentTable() tableView {
	e := &r.Environment
	return facts("Suite", e.Suite, "Go", e.Go, "System", e.OS, "Kernel", e.Kernel, "Processor", e.CPU, "Cores", strconv.Itoa(e.Cores),
		"GOMAXPROCS", strconv.Itoa(e.Procs), "Memory", human.Number(float64(e.Memory)/(1<<30))+" GiB", "Run", r.Name)
}

// compareTables set several runs side by side.
func compareTables(runs []reported) []tableView {
	t := tableView{Head: []string{"Run", "Safety", "Lost", "Visits/s", "Acquire p50", "p99", "Response p50", "p99", "Hand-off p50",
		"Jain", "Starving", "Trips", "Commands", "Generator"}}
	for i := range runs {
		r := &runs[i]
		status, _ := r.Safety()
		s, g := stateOf(status), generatorState(&r.Generator)
		a, q, h := r.Latency.Acquire, r.Latency.Response, r.Latency.Handoff
		row := texts(r.short(), "", human.Count(r.Views.Lost), human.Number(r.Throughput), quantile(a.P50, a.Max), quantile(a.P99, a.Max),
			quantile(q.P50, q.Max), quantile(q.P99, q.Max), quantile(h.P50, h.Max), fmt.Sprintf("%.2f", r.Fairness.Jain),
			fmt.Sprintf("%d of %d", r.Fairness.Starving, r.Workers), optional(r.Cost.RoundTrips), optional(r.Cost.Commands), "")
		row[1].State, row[13].State = &s, &g
		t.Rows = append(t.Rows, row)
	}
	return []tableView{t}
}

// runDocument is what the page's script reads of one run.
type runDocument struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Status  string          `json:"status"`
	Trips   *float64        `json:"trips"`
	P99     *int64          `json:"p99"`
	Warmup  int64           `json:"warmup"`
	Series  *series         `json:"series"`
	Strip   *packedStrip    `json:"strip"`
	Faults  []faultDocument `json:"faults"`
	Workers []Worker        `json:"workers"`
}

type faultDocument struct {
	From int64  `json:"from"`
	To   int64  `json:"to"` // -1: never healed
	Name string `json:"name"`
	Note string `json:"note"`
}

func document(runs []reported, b *pack) []runDocument {
	all := []runDocument{}
	for i := range runs {
		r := &runs[i]
		status, _ := r.Safety()
		d := runDocument{
			ID: "run" + strconv.Itoa(i), Name: r.short(), Status: status.String(), Trips: r.Cost.RoundTrips,
			P99: r.Latency.Response.P99, Warmup: r.Warmup, Series: r.series, Workers: r.Fairness.Workers, Faults: []faultDocument{},
		}
		if r.strip != nil {
			d.Strip = b.strip(r.strip)
		}
		for _, w := range r.Windows {
			f := faultDocument{From: int64(w.From), To: int64(w.To), Note: r.notes[w.Fault]}
			if w.To == history.Forever {
				f.To = -1
			}
			if w.Fault >= 0 && w.Fault < int64(len(r.Run.Faults)) {
				f.Name = r.Run.Faults[w.Fault]
			}
			d.Faults = append(d.Faults, f)
		}
		all = append(all, d)
	}
	return all
}
