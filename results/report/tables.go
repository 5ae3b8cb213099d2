package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// Largest numbers of rows in the tables of workers and of overlaps.
const (
	workersMost  = 64
	overlapsMost = 20
)

func verdictTable(r *results.Run) tableView {
	t := tableView{Head: []string{"Property", "Verdict", "Exposed", "Violations", "What was found"}, Class: "words"}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		text := results.Finding(v)
		if v.Cause != "" {
			text = v.Cause + ": " + strings.TrimPrefix(text, v.Cause+": ")
		}
		s := stateOf(v.Status)
		t.add(v.Checker, "", human.Count(v.Exposed), human.Count(v.Violations), text)[1].State = &s
	}
	return t
}

// evidenceTable lists operations in a table. It also returns the period in which they took place.
func evidenceTable(ops []history.Op) (t tableView, from, to time.Duration) {
	t = tableView{Head: []string{"Call", "Return", "Worker", "Operation", "Page", "Outcome", "Value", "Took"},
		Class: "ops"}
	from = history.Forever
	for i := range ops {
		op := &ops[i]
		from, to = min(from, op.Call), max(to, op.Latest())
		took, value := "-", "-"
		if op.Return != history.Forever {
			took = human.Duration(op.Latency())
		}
		if op.Kind == history.Load || op.Kind == history.Store {
			value = human.Count(op.Value)
		}
		t.add(clockText(op.Call), clockText(op.Return), fmt.Sprintf("w%02d", op.Worker), op.Kind.String(),
			strconv.Itoa(int(op.Key)),
			strings.TrimSpace(op.Outcome.String()+" "+op.Reason.String()), value, took)
	}
	return t, from, to
}

func latencyTable(r *results.Run) tableView {
	t := tableView{Head: []string{"", "Count", "p50", "p90", "p99", "p99.9", "Max", "Mean"}}
	for _, cells := range r.LatencyRows() {
		cells[0] = strings.ToUpper(cells[0][:1]) + cells[0][1:]
		t.add(cells...)
	}
	t.Note = "A percentile with fewer than five observations beyond it is left out."
	if text := r.CensoredText(); text != "" {
		t.Note += " " + text + "."
	}
	if text := r.WokenText(); text != "" {
		t.Note += " How those who got the lock were woken: " + text + "."
	}
	return t
}

func workerTable(f *results.Fairness) tableView {
	t := tableView{Head: []string{"Worker", "Visits", "Of its fair share", "Mean wait", "Longest wait"}}
	all := slices.Clone(f.Workers)
	var sum, most int64
	for _, w := range all {
		sum += w.Visits
		most = max(most, w.Visits)
	}
	slices.SortStableFunc(all, func(a, b results.Worker) int { return int(a.Visits - b.Visits) })
	for _, w := range all[:min(len(all), workersMost)] {
		row := t.add(fmt.Sprintf("w%02d", w.Worker), human.Count(w.Visits), "-", human.Duration(time.Duration(w.Mean)),
			human.Duration(time.Duration(w.Longest)))
		if sum > 0 {
			fair := float64(w.Visits) * float64(len(all)) / float64(sum)
			row[2] = cellView{Text: human.Percent(fair), Bar: int(100 * w.Visits / most)}
			if fair < results.StarvingShare {
				row[0].State = &state{"fail", "✕", "starving"}
			}
		}
	}
	if len(all) > workersMost {
		t.Note = fmt.Sprintf("The %d workers with the fewest visits of %d.", workersMost, len(all))
	}
	return t
}

func (r *saved) faultTable() tableView {
	t := tableView{Head: []string{"Fault", "Began", "In force", "Healing", "Healthy", "What it did"}, Class: "words"}
	for i, name := range r.faults {
		before := len(t.Rows)
		for _, w := range r.Windows {
			if w.Fault != int64(i) {
				continue
			}
			what := r.notes[w.Fault]
			if w.Failed {
				what = "not injected: " + what
			}
			t.add(name, clockText(w.From), clockText(w.Injected), clockText(w.Healing), clockText(w.To), what)
		}
		if len(t.Rows) == before {
			t.add(name, "-", "-", "-", "-", "never happened")
		}
	}
	return t
}

func outageTable(r *results.Run) (t tableView) {
	if r.Availability == nil {
		return t
	}
	t = tableView{Head: []string{"Unavailable from", "To", "Pages", "Recovery", "Spent on", "Calls that failed"},
		Class: "words"}
	for i := range r.Availability.Outages {
		o := &r.Availability.Outages[i]
		t.add(clockText(time.Duration(o.From)), clockText(time.Duration(o.To)), human.Count(int64(o.Pages)),
			o.RecoveryText(r.Faults), o.PartsText(), o.FailedText())
	}
	return t
}

func phaseTable(r *results.Run) (t tableView) {
	for i := range r.Phases {
		p := &r.Phases[i]
		t.Head = slices.Concat(results.PhaseHead, []string{"Load", "Faults"})
		t.add(append(p.Row(), p.Load, human.List(p.Faults))...)
	}
	for i, head := range t.Head {
		t.Head[i] = strings.ToUpper(head[:1]) + head[1:]
	}
	return t
}

// othersMost limits the number of unplanned events in a page. The longest events are shown.
const othersMost = 20

func (r *saved) otherTable() tableView {
	t := tableView{Head: []string{"From", "To", "What happened without a planned fault"}, Class: "words"}
	list := slices.Clone(r.others)
	slices.SortStableFunc(list, func(a, b event) int { return cmp.Compare(b.to-b.from, a.to-a.from) })
	if len(list) > othersMost {
		t.Note = fmt.Sprintf("The %d longest of %s.", othersMost, human.Count(int64(len(list))))
		list = list[:othersMost]
	}
	slices.SortStableFunc(list, func(a, b event) int { return cmp.Compare(a.from, b.from) })
	for _, e := range list {
		t.add(clockText(e.from), clockText(e.to), e.what)
	}
	return t
}

func overlapTable(s *ownership) tableView {
	t := tableView{Head: []string{"From", "For", "Page", "Holders", "What"}}
	for _, o := range s.overlaps[:min(len(s.overlaps), overlapsMost)] {
		what := "both believed that they held it"
		if o.late {
			what = "one went on after its lease"
		}
		t.add(clockText(o.from), human.Duration(o.to-o.from), strconv.Itoa(int(o.key)),
			fmt.Sprintf("w%02d and w%02d", o.a, o.b), what)
	}
	if s.Overlaps > len(t.Rows) {
		t.Note = fmt.Sprintf("The first %d of %s.", len(t.Rows), human.Count(int64(s.Overlaps)))
	}
	return t
}

func healthTable(g *results.Generator) tableView {
	share := func(s float64) string {
		if s < 0 {
			return "unknown"
		}
		return human.Percent(s)
	}
	machine, others := share(g.MachineCPU), share(g.OthersCPU)
	loop := "closed: a worker's next visit waits for its last"
	if g.OpenLoop {
		loop = "open: visits are due by a schedule"
	}
	d := func(ns int64) string { return human.Duration(time.Duration(ns)) }
	t := facts("Loop", loop, "Generator's share of its cores", human.Percent(g.OwnCPU), "Machine busy", machine,
		"Other programs' share of the cores", others,
		"Longest GC pause", d(g.GCPauseMax), "Goroutines waited for a core (p99)", d(g.SchedulingP99),
		"Waits for a connection", human.Count(g.PoolWaits), "Waits to record", human.Count(g.Stalls),
		"Visits begun late (p99)", d(g.LateP99), "Visits begun late (max)", d(g.LateMax))
	t.Note = strings.Join(g.Reasons, "; ")
	return t
}

func costTable(r *results.Run) tableView {
	trips, commands, cpu := r.Cost.Texts()
	t := facts("Round trips a visit", trips, "Commands a visit, on the servers", commands, "Servers' CPU a visit", cpu,
		"Visits", r.VisitsText())
	for _, what := range slices.Sorted(maps.Keys(r.Errors)) {
		text := human.Count(r.Errors[what])
		if said := r.Said[what]; said != "" {
			text += ": " + said
		}
		t.add("Error: "+what, text)
	}
	return t
}

func configTable(r *results.Run) tableView {
	d := func(ns int64) string { return human.Duration(time.Duration(ns)) }
	t := facts("Topology", r.Topology, "Lock", r.Lock, "Counter", r.Counter, "Faults", human.List(r.Faults), "Workers",
		strconv.Itoa(r.Workers),
		"Processes", strconv.Itoa(r.Processes), "Pages", strconv.Itoa(r.Keys), "Popularity", r.Popularity, "Rate",
		r.Loop(),
		"Seed", strconv.FormatUint(r.Seed, 10), "Lease", d(r.TTL), "Hold", d(r.Hold), "Think", d(r.Think), "Patience",
		d(r.Wait),
		"Backoff", d(r.Retry), "Warm-up", d(r.Warmup), "Duration", d(r.Duration), "Measured", d(r.Measured))
	t.addAll("Server: ", r.Settings)
	t.addAll("Client: ", r.Client)
	return t
}

func environmentTable(r *results.Run) tableView {
	e := &r.Environment
	t := facts("Suite", e.Suite, "Go", e.Go, "System", e.OS, "Kernel", e.Kernel, "Processor", e.CPU, "Cores",
		strconv.Itoa(e.Cores),
		"GOMAXPROCS", strconv.Itoa(e.Procs), "Memory", human.Number(float64(e.Memory)/(1<<30))+" GiB", "Run", r.Name)
	for _, a := range r.Fleet.All() {
		t.add("Agent "+a.Name, a.Text())
	}
	return t
}

// alike reports whether the latencies of a run can be compared with those of other runs. Those of a scenario cannot,
// because it has its own load and faults. An exploration measures no latencies.
func alike(r *results.Run) bool { return r.Scenario == "" && !r.Explored }
