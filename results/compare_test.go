package results

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"
)

// machine makes up runs as a shared machine would: latencies that vary log-normally from run to run, now and then a
// run that somebody disturbed, and a speed that wanders and drifts while the runs are made.
type machine struct {
	rand   *rand.Rand
	at     time.Time
	noise  float64 // of a run by itself
	drift  float64 // a run, steadily
	wander float64 // how much of it is remembered by the next run
	mood   float64
}

func newMachine(seed uint64) *machine {
	return &machine{rand: rand.New(rand.NewPCG(seed, 5)), at: time.Unix(1e9, 0), noise: 0.05}
}

// effect is what was planted in a run.
type effect struct{ p50, p99, trips, jain float64 }

func (m *machine) run(e effect) Run {
	m.at = m.at.Add(time.Second)
	m.mood = m.wander*m.mood + m.rand.NormFloat64()*m.noise/2 + m.drift
	slow := m.mood + m.rand.NormFloat64()*m.noise
	if m.rand.Float64() < 0.05 {
		slow += m.rand.ExpFloat64() * 0.5 // somebody compiled something
	}
	tail := slow + m.rand.NormFloat64()*m.noise
	ns := func(base, planted, log float64) *int64 {
		v := int64(base * (1 + planted) * math.Exp(log))
		return &v
	}
	trips := 2 + e.trips + math.Round(m.rand.Float64()*4)/1000 // a visit at the edge of the measurement
	commands := 4 + 2*e.trips + math.Round(m.rand.Float64()*8)/1000
	return Run{
		Topology: "single", Lock: "lease", Started: m.at,
		Config: Config{Workers: 8, Keys: 8, Measured: int64(time.Second)}, Visits: Visits{Begun: 10_000, Done: 10_000}, Views: Views{Acknowledged: 1},
		Latency:    Latencies{Response: Percentiles{Count: 10_000, P50: ns(3e5, e.p50, slow), P99: ns(2e6, e.p99, tail)}},
		Waiting:    Waiting{RandomWaiter: Percentiles{Count: 10_000, P50: ns(5e6, e.p50, slow+m.rand.NormFloat64()*m.noise)}},
		Throughput: 10_000 * math.Exp(-slow), Fairness: Fairness{Jain: min(0.9*(1+e.jain)*math.Exp(m.rand.NormFloat64()*0.02), 1)},
		Cost: Cost{RoundTrips: &trips, Commands: &commands},
	}
}

func (m *machine) pairs(n int, seed uint64, a, b effect) []Pair {
	pairs := make([]Pair, n)
	for i, arm := range Schedule(n, seed) {
		e := a
		if arm == ArmB {
			e = b
		}
		pairs[i/int(arms)][arm] = m.run(e)
	}
	return pairs
}

// sides are two sides whose runs were made in turns, as from the arms of a trial.
func sides(pairs []Pair) []Side {
	s := []Side{{Name: "A"}, {Name: "B"}}
	for i := range pairs {
		s[0].Runs, s[1].Runs = append(s[0].Runs, pairs[i][ArmA]), append(s[1].Runs, pairs[i][ArmB])
	}
	return s
}

func headlines(t testing.TB) (all []Metric) {
	for _, name := range Headline {
		m, err := FindMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// found are the metrics in which the trial sees a difference.
func (t *Trial) found() (names []string) {
	for _, c := range t.Effects {
		if c.Effect == Better || c.Effect == Worse {
			names = append(names, c.Metric)
		}
	}
	return names
}

func (c *Comparison) found() (names []string) {
	for _, g := range c.Groups {
		for _, r := range g.Rows {
			if e := r.Cells[1].Effect; e == Better || e == Worse {
				names = append(names, r.Metric)
			}
		}
	}
	return names
}

// weathers are the machines that both procedures must stand.
var weathers = map[string]func(*machine){
	"steady":    func(*machine) {},
	"noisy":     func(m *machine) { m.noise = 0.2 },
	"drifting":  func(m *machine) { m.drift = 0.01 },
	"wandering": func(m *machine) { m.wander = 0.9 },
}

// TestFalseAlarms compares a thing with itself 200 times: in at most 5 % of the comparisons may any of the numbers
// look like a difference.
func TestFalseAlarms(t *testing.T) {
	const comparisons, most = 200, 10
	metrics := headlines(t)
	for name, change := range weathers {
		trials, tables := 0, 0
		for seed := range uint64(comparisons) {
			m := newMachine(seed)
			change(m)
			pairs := m.pairs(12, seed, effect{}, effect{})
			if len(NewTrial("A", "A", pairs, metrics).found()) > 0 {
				trials++
			}
			if len(Compare(sides(pairs), nil, metrics).found()) > 0 {
				tables++
			}
		}
		t.Logf("%s: of %d comparisons of a thing with itself, false alarms: ab %d, compare %d", name, comparisons, trials, tables)
		if trials > most || tables > most {
			t.Errorf("%s: %d and %d false alarms, at most %d", name, trials, tables, most)
		}
	}
}

// TestPlantedDifferencesAreFound plants differences; 9 of 10 experiments must find them, and call them by their name.
func TestPlantedDifferencesAreFound(t *testing.T) {
	const experiments, least = 100, 90
	metrics := headlines(t)
	for name, c := range map[string]struct {
		planted effect
		metric  string
		effect  Effect
	}{
		"p99 +25 %":            {effect{p99: 0.25}, "response.p99", Worse},
		"p99 -20 %":            {effect{p99: -0.20}, "response.p99", Better},
		"one more round trip":  {effect{trips: 1}, "cost.round_trips", Worse},
		"a tenth of a trip":    {effect{trips: 0.1}, "cost.round_trips", Worse},
		"a third of fairness":  {effect{jain: -0.33}, "fairness.jain", Worse},
		"one round trip saved": {effect{trips: -1}, "cost.round_trips", Better},
	} {
		trials, tables := 0, 0
		for seed := range uint64(experiments) {
			m := newMachine(seed)
			m.drift = 0.002
			pairs := m.pairs(16, seed, effect{}, c.planted)
			for _, e := range NewTrial("A", "B", pairs, metrics).Effects {
				if e.Metric == c.metric && e.Effect == c.effect {
					trials++
				}
			}
			for _, r := range Compare(sides(pairs), nil, metrics).Groups[0].Rows {
				if r.Metric == c.metric && r.Cells[1].Effect == c.effect {
					tables++
				}
			}
		}
		t.Logf("%s: found by ab in %d of %d, by compare in %d", name, trials, experiments, tables)
		if trials < least || tables < least {
			t.Errorf("%s: found by ab in %d of %d, by compare in %d", name, trials, experiments, tables)
		}
	}
}

func TestTooFewRunsAreNoise(t *testing.T) {
	metrics := headlines(t)
	pairs := newMachine(1).pairs(3, 1, effect{}, effect{trips: 5, p99: 5})
	trial, table := NewTrial("A", "B", pairs, metrics), Compare(sides(pairs), nil, metrics)
	if len(trial.found())+len(table.found()) > 0 {
		t.Errorf("three runs prove %v, %v", trial.found(), table.found())
	}
	var text bytes.Buffer
	if trial.WriteText(&text) != nil || table.WriteText(&text) != nil {
		t.Fatal("not written")
	}
	for _, want := range []string{"3 pairs: 9 are needed", "3 runs a side: 6 are needed"} {
		if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
			t.Errorf("no word of %q:\n%s", want, text.String())
		}
	}
	for gate, want := range map[string]GateStatus{"response.p99<+10%": GateUnderpowered, RegressionGate: GateUnderpowered, "handoff.p99<+1%": GateNoData} {
		g, err := ParseChangeGate(gate)
		if err != nil {
			t.Fatal(err)
		}
		trial.Gates, table.Gates = nil, nil
		trial.CheckGates([]ChangeGate{g})
		table.CheckGates([]ChangeGate{g})
		if trial.Gates[0].Status != want || table.Gates[0].Status != want {
			t.Errorf("%s: got %+v and %+v, want %s", gate, trial.Gates[0], table.Gates[0], want)
		}
	}
}

// TestEnoughRunsAreEnough takes the numbers that the notes ask for, and one less.
func TestEnoughRunsAreEnough(t *testing.T) {
	metrics := headlines(t)
	apart := effect{p50: 9, p99: 9, trips: 9, jain: -0.9}
	for _, less := range []int{0, 1} {
		pairs := newMachine(3).pairs(pairsNeeded(len(metrics))-less, 3, effect{}, apart)
		if got := len(NewTrial("A", "B", pairs, metrics).found()) > 0; got != (less == 0) {
			t.Errorf("%d pairs: found %v", len(pairs), got)
		}
		pairs = newMachine(3).pairs(runsNeeded(len(metrics))-less, 3, effect{}, apart)
		if got := len(Compare(sides(pairs), nil, metrics).found()) > 0; got != (less == 0) {
			t.Errorf("%d runs a side: found %v", len(pairs), got)
		}
	}
}

// TestScheduleTakesTurns wants every arm equally often early and late, whatever the seed.
func TestScheduleTakesTurns(t *testing.T) {
	for seed := range uint64(50) {
		order := Schedule(12, seed)
		var sum, count [arms]int
		for i, arm := range order {
			sum[arm] += i
			count[arm]++
		}
		for arm := range arms {
			if count[arm] != 12 || sum[arm] != sum[0] {
				t.Fatalf("seed %d: %v", seed, order)
			}
		}
		for i := 0; i < len(order); i += 6 {
			back := slices.Clone(order[i+3 : i+6])
			slices.Reverse(back)
			if !slices.Equal(order[i:i+3], back) {
				t.Fatalf("seed %d: block %v does not run backwards", seed, order[i:i+6])
			}
		}
	}
	if slices.Equal(Schedule(12, 1), Schedule(12, 2)) {
		t.Error("the seed does nothing")
	}
}

// TestNeitherDominates plants a trade: fairer and dearer.
func TestNeitherDominates(t *testing.T) {
	pairs := newMachine(1).pairs(12, 1, effect{jain: -0.5}, effect{trips: 20})
	trial := NewTrial("retry=50ms", "retry=1ms", pairs, headlines(t))
	text := strings.Join(trial.Summary, "\n")
	for _, want := range []string{"retry=1ms is fairer", "retry=50ms is cheaper", "neither dominates"} {
		if !strings.Contains(text, want) {
			t.Errorf("no word of %q in:\n%s", want, text)
		}
	}
	var out bytes.Buffer
	if err := trial.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
}

func TestChangeGates(t *testing.T) {
	metrics := headlines(t)
	for name, c := range map[string]struct {
		planted effect
		noise   float64
		gate    string
		want    GateStatus
	}{
		"slower than allowed":     {effect{p99: 0.5}, 0.02, "response.p99<+10%", GateFail},
		"slower as allowed":       {effect{p99: 0.2}, 0.02, "response.p99<+90%", GatePass},
		"as ever":                 {effect{}, 0.02, "response.p99<+25%", GatePass},
		"too noisy to tell":       {effect{}, 0.4, "response.p99<+5%", GateUnderpowered},
		"nothing became worse":    {effect{p99: -0.3}, 0.02, RegressionGate, GatePass},
		"something became worse":  {effect{p99: 0.5}, 0.02, RegressionGate, GateFail},
		"an improvement required": {effect{p99: -0.5}, 0.02, "response.p99<-30%", GatePass},
		"not improved enough":     {effect{p99: -0.2}, 0.02, "response.p99<-30%", GateFail},
	} {
		g, err := ParseChangeGate(c.gate)
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(7)
		m.noise = c.noise
		pairs := m.pairs(16, 7, effect{}, c.planted)
		trial, table := NewTrial("A", "B", pairs, metrics), Compare(sides(pairs), nil, metrics)
		trial.CheckGates([]ChangeGate{g})
		table.CheckGates([]ChangeGate{g})
		if trial.Gates[0].Status != c.want || table.Gates[0].Status != c.want {
			t.Errorf("%s: ab says %+v, compare %+v, want %s", name, trial.Gates[0], table.Gates[0], c.want)
		}
	}
}

func TestComparisonsAreGrouped(t *testing.T) {
	m := newMachine(1)
	side := func(name string, locks ...string) Side {
		s := Side{Name: name}
		for range 3 {
			for _, lock := range locks {
				r := m.run(effect{})
				r.Lock = lock
				s.Runs = append(s.Runs, r)
			}
		}
		return s
	}
	names := func(c *Comparison) string {
		var all []string
		for _, g := range c.Groups {
			all = append(all, g.Name)
		}
		return strings.Join(all, ",")
	}
	metrics := headlines(t)
	for want, c := range map[string]*Comparison{
		"single lease,single watch": Compare([]Side{side("A", "lease", "watch"), side("B", "lease", "watch")}, nil, metrics),
		"single":                    Compare([]Side{side("A", "lease"), side("B", "watch")}, nil, metrics),
		"lease,watch":               Compare([]Side{side("A", "lease"), side("B", "watch")}, []string{"lock"}, metrics),
	} {
		if got := names(c); got != want {
			t.Errorf("grouped into %q, want %q", got, want)
		}
		notes := fmt.Sprint(c.Notes)
		if differs := strings.Contains(notes, "differs: lock: lease | watch"); differs != (want == "single") {
			t.Errorf("%s: notes %s", want, notes)
		}
		if !strings.Contains(notes, "not made in turns") {
			t.Errorf("%s: no word of turns in %s", want, notes)
		}
	}
}

func TestGates(t *testing.T) {
	ms := func(n int64) *int64 { n *= int64(time.Millisecond); return &n }
	trips := 2.0
	sound := Run{
		Config: Config{Workers: 4, Measured: 1}, Throughput: 1500, Visits: Visits{Begun: 10, Done: 10}, Views: Views{Acknowledged: 10},
		Fairness: Fairness{Jain: 0.85}, Cost: Cost{RoundTrips: &trips},
		Latency: Latencies{Response: Percentiles{Count: 600, P50: ms(1), P99: ms(40), Max: 45e6}},
		Waiting: Waiting{Unfinished: Percentiles{Count: 9, P50: ms(10), P99: new(int64), Max: 90e6}},
	}
	*sound.Waiting.Unfinished.P99 = int64(Beyond)
	saturated, slower, meddled := sound, sound, sound
	meddled.Interactive = true
	saturated.Generator = Generator{State: Saturated, Reasons: []string{"machine 100 % busy"}}
	slower.Latency.Response.P99 = ms(80)
	for _, c := range []struct {
		gate string
		runs []*Run
		want GateStatus
	}{
		{"response.p99<50ms", []*Run{&sound}, GatePass},
		{"response.p99 < 40ms", []*Run{&sound}, GateFail},
		{"response.p99<=40ms", []*Run{&sound}, GatePass},
		{"response.p99<50ms", []*Run{&sound, &slower, &sound}, GatePass}, // the median
		{"response.p99<50ms", []*Run{&slower, &slower, &sound}, GateFail},
		{"response.p999<1h", []*Run{&sound}, GateUnderpowered},
		{"response.p99<50ms", []*Run{&saturated}, GateInconclusive},
		{"response.p99<1ns", []*Run{&sound, &saturated}, GateInconclusive},
		{"throughput>1000/s", []*Run{&saturated}, GateInconclusive},
		{"cost.round_trips<=2.1", []*Run{&saturated}, GatePass},
		{"throughput>1000/s", []*Run{&sound}, GatePass},
		{"throughput>2000", []*Run{&sound}, GateFail},
		{"fairness.jain>0.8", []*Run{&sound}, GatePass},
		{"fairness.jain>90%", []*Run{&sound}, GateFail},
		{"fairness.starving==0", []*Run{&sound}, GatePass},
		{"handoff.p50<1h", []*Run{&sound}, GateNoData},
		{"cost.commands<1000", []*Run{&sound}, GateNoData},
		{"acquire_with_unfinished.p99<80ms", []*Run{&sound}, GateFail},          // it is more than the longest that was seen
		{"acquire_with_unfinished.p99<100ms", []*Run{&sound}, GateUnderpowered}, // nobody knows by how much
		{"response.p99<50ms", nil, GateNoData},
		{"cost.round_trips<=2.1", []*Run{&sound, &meddled}, GateInconclusive},
	} {
		g, err := ParseGate(c.gate)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Check(c.runs); got.Status != c.want || got.Gate != strings.ReplaceAll(c.gate, " ", "") {
			t.Errorf("%s: got %+v, want %s", c.gate, got, c.want)
		}
	}
	if (GateResult{}).Status == GatePass {
		t.Error("a gate that nobody checked passes")
	}
}

func TestMistakesInGates(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "METRIC OPERATOR VALUE",
		"response.p99":         "METRIC OPERATOR VALUE",
		"response.p99<":        "is a duration with a unit",
		"response.p99<50":      "is a duration with a unit",
		"response.p99=50ms":    "the operators are <= >= < > ==",
		"reponse.p99<50ms":     "there is acquire, acquire_with_unfinished, random_waiter, response,",
		"throughput>fast":      "is compared with a number",
		"fairness.jain>0.8x":   "is compared with a number",
		"cost.round_trips<2ms": "is compared with a number",
		"response.p99<+x%":     "a change is written +10% or -5%",
		"response.p99==+1%":    "no change is ever exactly so much",
	} {
		if _, err := ParseGate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"response.p99<50ms", "regressions", "response.p99<+x%"} {
		if _, err := ParseChangeGate(text); err == nil {
			t.Errorf("%q: no mistake", text)
		}
	}
}

// TestBenchmarkFormat reads what was written with the parser of benchstat.
func TestBenchmarkFormat(t *testing.T) {
	m := newMachine(1)
	runs := []Run{m.run(effect{}), m.run(effect{}), {Topology: "single", Lock: "empty"}}
	runs[1].Lock, runs[0].Settings, runs[0].Environment = "watch", map[string]string{"server": "Redis 7"}, Environment{Procs: 2, OS: "linux"}
	var text bytes.Buffer
	if err := WriteBenchmarks(&text, runs); err != nil {
		t.Fatal(err)
	}
	reader, seen := benchfmt.NewReader(&text, "bench.txt"), map[string]float64{}
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.Result:
			trips, _ := r.Value("trips/op")
			seen[string(r.Name)] = trips
			if got := r.GetConfig("server"); strings.Contains(string(r.Name), "lease") && got != "Redis 7" {
				t.Errorf("%s: server %q", r.Name, got)
			}
			if ns, ok := r.Value("response-p99-sec"); !ok || ns < 1e-3 || ns > 1e-2 {
				if ns, ok := r.Value("response-p99-ns"); !ok || ns < 1e6 || ns > 1e7 {
					t.Errorf("%s: response p99 %g, %v", r.Name, ns, ok)
				}
			}
		case *benchfmt.SyntaxError:
			t.Error(r)
		}
	}
	if seen["Visit/topology=single/lock=lease/workers=8/keys=8-2"] < 2 || seen["Visit/topology=single/lock=watch/workers=8/keys=8-1"] < 2 || len(seen) != 2 {
		t.Errorf("got %v", seen)
	}
}
