package compare

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/results"
)

// machine invents the runs of a shared machine. Latencies vary log-normally from run to run, some runs are
// disturbed, and the machine gradually becomes faster or slower.
type machine struct {
	rand   *rand.Rand
	at     time.Time
	noise  float64 // noise of a single run
	drift  float64 // steady change from run to run
	wander float64 // share of the deviation that the next run keeps
	mood   float64
}

func newMachine(seed uint64) *machine {
	return &machine{rand: rand.New(rand.NewPCG(seed, 5)), at: time.Unix(1e9, 0), noise: 0.05}
}

// planted is a change that was made in a run.
type planted struct{ p50, p99, trips, jain float64 }

func (m *machine) run(e planted) results.Run {
	m.at = m.at.Add(time.Second)
	m.mood = m.wander*m.mood + m.rand.NormFloat64()*m.noise/2 + m.drift
	slow := m.mood + m.rand.NormFloat64()*m.noise
	if m.rand.Float64() < 0.05 {
		slow += m.rand.ExpFloat64() * 0.5 // another program was busy
	}
	tail := slow + m.rand.NormFloat64()*m.noise
	ns := func(base, planted, log float64) *int64 {
		v := int64(base * (1 + planted) * math.Exp(log))
		return &v
	}
	trips := 2 + e.trips + math.Round(m.rand.Float64()*4)/1000 // visits at the edge of the measurement
	commands := 4 + 2*e.trips + math.Round(m.rand.Float64()*8)/1000
	return results.Run{
		Topology: "single", Lock: "lease", Started: m.at,
		Config: results.Config{Workers: 8, Keys: 8, Measured: int64(time.Second)},
		Visits: results.Visits{Begun: 10_000, Done: 10_000}, Views: results.Views{Acknowledged: 1},
		Latency: results.Latencies{Response: results.Percentiles{Count: 10_000, P50: ns(3e5, e.p50, slow),
			P99: ns(2e6, e.p99, tail)}},
		Waiting: results.Waiting{RandomWaiter: results.Percentiles{Count: 10_000,
			P50: ns(5e6, e.p50, slow+m.rand.NormFloat64()*m.noise)}},
		Throughput: 10_000 * math.Exp(-slow),
		Fairness:   results.Fairness{Jain: min(0.9*(1+e.jain)*math.Exp(m.rand.NormFloat64()*0.02), 1)},
		Cost:       results.Cost{RoundTrips: &trips, Commands: &commands},
	}
}

func (m *machine) pairs(n int, seed uint64, a, b planted) []Pair {
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

// sides returns two sides whose runs took turns, as the arms of a trial do.
func sides(pairs []Pair) []Side {
	s := []Side{{Name: "A"}, {Name: "B"}}
	for i := range pairs {
		s[0].Runs, s[1].Runs = append(s[0].Runs, pairs[i][ArmA]), append(s[1].Runs, pairs[i][ArmB])
	}
	return s
}

func headlines(t testing.TB) (all []results.Metric) {
	for _, name := range results.Headline {
		m, err := results.FindMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// found returns the metrics in which the trial sees a difference.
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

// weathers are the machines on which both procedures must work.
var weathers = map[string]func(*machine){
	"steady":    func(*machine) {},
	"noisy":     func(m *machine) { m.noise = 0.2 },
	"drifting":  func(m *machine) { m.drift = 0.01 },
	"wandering": func(m *machine) { m.wander = 0.9 },
}

// many returns a number of cases, 25 % of it with -short.
func many(all int) int {
	if testing.Short() {
		return all / 4
	}
	return all
}

// TestFalseAlarms compares a setting with itself many times. At most 5 % of the comparisons may show any difference.
func TestFalseAlarms(t *testing.T) {
	comparisons, most := many(200), many(200)/20
	metrics := headlines(t)
	for name, change := range weathers {
		trials, tables := 0, 0
		for seed := range uint64(comparisons) {
			m := newMachine(seed)
			change(m)
			pairs := m.pairs(12, seed, planted{}, planted{})
			if len(NewTrial("A", "A", pairs, metrics).found()) > 0 {
				trials++
			}
			if len(New(sides(pairs), nil, metrics).found()) > 0 {
				tables++
			}
		}
		t.Logf("%s: of %d comparisons of a thing with itself, false alarms: ab %d, compare %d", name, comparisons,
			trials, tables)
		if trials > most || tables > most {
			t.Errorf("%s: %d and %d false alarms, at most %d", name, trials, tables, most)
		}
	}
}

// TestPlantedDifferencesAreFound plants differences. Of 10 experiments 9 must find them, in the right metric.
func TestPlantedDifferencesAreFound(t *testing.T) {
	experiments, least := many(100), many(100)*9/10
	metrics := headlines(t)
	for name, c := range map[string]struct {
		planted planted
		metric  string
		effect  effect
	}{
		"p99 +25 %":            {planted{p99: 0.25}, "response.p99", Worse},
		"p99 -20 %":            {planted{p99: -0.20}, "response.p99", Better},
		"one more round trip":  {planted{trips: 1}, "cost.round_trips", Worse},
		"a tenth of a trip":    {planted{trips: 0.1}, "cost.round_trips", Worse},
		"a third of fairness":  {planted{jain: -0.33}, "fairness.jain", Worse},
		"one round trip saved": {planted{trips: -1}, "cost.round_trips", Better},
	} {
		trials, tables := 0, 0
		for seed := range uint64(experiments) {
			m := newMachine(seed)
			m.drift = 0.002
			pairs := m.pairs(16, seed, planted{}, c.planted)
			for _, e := range NewTrial("A", "B", pairs, metrics).Effects {
				if e.Metric == c.metric && e.Effect == c.effect {
					trials++
				}
			}
			for _, r := range New(sides(pairs), nil, metrics).Groups[0].Rows {
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
	pairs := newMachine(1).pairs(3, 1, planted{}, planted{trips: 5, p99: 5})
	trial, table := NewTrial("A", "B", pairs, metrics), New(sides(pairs), nil, metrics)
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
	for gate, want := range map[string]GateStatus{"response.p99<+10%": GateUnderpowered,
		RegressionGate: GateUnderpowered, "handoff.p99<+1%": GateNoData} {
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

// TestAPairWithoutTheMetricIsNotCounted: more pairs are demanded than were made, and the text says why.
func TestAPairWithoutTheMetricIsNotCounted(t *testing.T) {
	metric, err := results.FindMetric("cost.round_trips")
	if err != nil {
		t.Fatal(err)
	}
	gates := []ChangeGate{{Gate{Text: RegressionGate}}, {Gate{Metric: metric, op: "<", limit: 0.05, Relative: true}}}
	pairs := newMachine(1).pairs(6, 1, planted{}, planted{trips: 5})
	pairs[2][ArmTwin].Cost = results.Cost{} // no visit ended in it
	trial := NewTrial("A", "B", pairs, []results.Metric{metric})
	trial.CheckGates(gates)
	for _, g := range trial.Gates {
		if g.Status != GateUnderpowered || !strings.Contains(g.Summary, "about 8 pairs (--pairs)") ||
			!strings.Contains(g.Summary, "only 5 of 6 have cost.round_trips") {
			t.Errorf("%+v", g)
		}
	}
	if notes := strings.Join(trial.Notes, "\n"); !strings.Contains(notes, "cost.round_trips: 5 of 6 pairs have it") {
		t.Error(notes)
	}
	pairs[2][ArmB].Cost = results.Cost{}
	table := New(sides(pairs[:4]), nil, []results.Metric{metric})
	table.CheckGates(gates)
	for _, g := range table.Gates {
		if g.Status != GateUnderpowered || !strings.Contains(g.Summary, "only 3 of 4 have cost.round_trips") {
			t.Errorf("%+v", g)
		}
	}
}

// TestEqualSidesAreToldApart, by letters, and a comparison says that both have the same runs.
func TestEqualSidesAreToldApart(t *testing.T) {
	pairs := newMachine(1).pairs(6, 1, planted{}, planted{})
	trial := NewTrial("lock=lease", "lock=lease", pairs, headlines(t)).View()
	both := sides(pairs)
	for i := range both {
		both[i].Name = "before"
	}
	for i := range both[0].Runs {
		both[0].Runs[i].Name = fmt.Sprint("run-", i)
	}
	both[1].Runs = both[0].Runs
	table := New(both, nil, headlines(t)).View()
	for _, v := range []*View{trial, table} {
		if !strings.HasPrefix(v.Sides[0], "A: ") || !strings.HasPrefix(v.Sides[1], "B: ") ||
			v.Tables[0].Rows[0].Cells[1].Side != v.Sides[1] {
			t.Errorf("sides %q", v.Sides)
		}
	}
	if !slices.Contains(table.Notes, "A: before and B: before are the same runs") {
		t.Errorf("notes %q", table.Notes)
	}
}

// TestEnoughRunsAreEnough uses the number of runs in the notes, and one run less.
func TestEnoughRunsAreEnough(t *testing.T) {
	metrics := headlines(t)
	apart := planted{p50: 9, p99: 9, trips: 9, jain: -0.9}
	for _, less := range []int{0, 1} {
		pairs := newMachine(3).pairs(PairsNeeded(len(metrics))-less, 3, planted{}, apart)
		if got := len(NewTrial("A", "B", pairs, metrics).found()) > 0; got != (less == 0) {
			t.Errorf("%d pairs: found %v", len(pairs), got)
		}
		pairs = newMachine(3).pairs(runsNeeded(len(metrics))-less, 3, planted{}, apart)
		if got := len(New(sides(pairs), nil, metrics).found()) > 0; got != (less == 0) {
			t.Errorf("%d runs a side: found %v", len(pairs), got)
		}
	}
}

// TestAChangeNeverContradictsTheMediansBesideIt: the pairs suggest less, and the medians suggest more.
func TestAChangeNeverContradictsTheMediansBesideIt(t *testing.T) {
	metric, err := results.FindMetric("throughput")
	if err != nil {
		t.Fatal(err)
	}
	var pairs []Pair
	for i := range 24 {
		run := func(x float64) results.Run {
			return results.Run{Throughput: x, Config: results.Config{Measured: 1, Retry: 1e6}, Took: 1e9}
		}
		a, b := 100.0, 99.0 // most pairs become smaller
		if i%3 == 0 {
			a, b = 50, 200
		} else if i%3 == 1 {
			a, b = 300, 299
		}
		pairs = append(pairs, Pair{run(a), run(b), run(a)})
	}
	trial := NewTrial("A", "B", pairs, []results.Metric{metric})
	c := trial.Effects[0]
	if !(*c.Change < 0 && c.B > c.A) {
		t.Fatalf("the pairs are no contradiction: %+v", c)
	}
	var text strings.Builder
	if err := trial.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if c.Effect != noise || !strings.Contains(text.String(), " ~ ") ||
		!strings.Contains(text.String(), "A  A  (backoff 1.00 ms)") {
		t.Errorf("it is told as %s:\n%s", c.Effect, text.String())
	}
}

// TestScheduleTakesTurns: for any seed, every arm is equally often early and late.
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

// TestNeitherDominates plants a change that is fairer and more expensive.
func TestNeitherDominates(t *testing.T) {
	pairs := newMachine(1).pairs(12, 1, planted{jain: -0.5}, planted{trips: 20})
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

// TestADisturbedRegressionIsNotPassed: the words name each metric that may hide a regression.
func TestADisturbedRegressionIsNotPassed(t *testing.T) {
	metrics := headlines(t)
	pairs := newMachine(7).pairs(16, 7, planted{}, planted{p99: 15})
	for i := range pairs {
		for arm := range pairs[i] {
			pairs[i][arm].Generator.State = results.Disturbed
		}
	}
	trial, table := NewTrial("A", "B", pairs, metrics), New(sides(pairs), nil, metrics)
	trial.CheckGates([]ChangeGate{{Gate{Text: RegressionGate}}})
	table.CheckGates([]ChangeGate{{Gate{Text: RegressionGate}}})
	for _, g := range append(trial.Gates, table.Gates...) {
		if g.Status != GateInconclusive || !strings.Contains(g.Summary, "disturbed") ||
			!strings.Contains(g.Summary, "response.p99 +") {
			t.Errorf("got %+v", g)
		}
	}
}

func TestChangeGates(t *testing.T) {
	metrics := headlines(t)
	for name, c := range map[string]struct {
		planted planted
		noise   float64
		gate    string
		want    GateStatus
	}{
		"slower than allowed":     {planted{p99: 0.5}, 0.02, "response.p99<+10%", GateFail},
		"slower as allowed":       {planted{p99: 0.2}, 0.02, "response.p99<+90%", GatePass},
		"as ever":                 {planted{}, 0.02, "response.p99<+25%", GatePass},
		"too noisy to tell":       {planted{}, 0.4, "response.p99<+5%", GateUnderpowered},
		"nothing became worse":    {planted{p99: -0.3}, 0.02, RegressionGate, GatePass},
		"something became worse":  {planted{p99: 0.5}, 0.02, RegressionGate, GateFail},
		"an improvement required": {planted{p99: -0.5}, 0.02, "response.p99<-30%", GatePass},
		"not improved enough":     {planted{p99: -0.2}, 0.02, "response.p99<-30%", GateFail},
	} {
		g, err := ParseChangeGate(c.gate)
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(7)
		m.noise = c.noise
		pairs := m.pairs(16, 7, planted{}, c.planted)
		trial, table := NewTrial("A", "B", pairs, metrics), New(sides(pairs), nil, metrics)
		trial.CheckGates([]ChangeGate{g})
		table.CheckGates([]ChangeGate{g})
		if said := trial.Gates[0].Summary + table.Gates[0].Summary; c.want == GateUnderpowered &&
			strings.Count(said, "it takes about ")+strings.Count(said, "a calmer machine") != 2 {
			t.Errorf("%s: no word of how many it takes: %s", name, said)
		}
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
				r := m.run(planted{})
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
		"single lease,single watch": New([]Side{side("A", "lease", "watch"), side("B", "lease", "watch")}, nil,
			metrics),
		"single":      New([]Side{side("A", "lease"), side("B", "watch")}, nil, metrics),
		"lease,watch": New([]Side{side("A", "lease"), side("B", "watch")}, []string{"lock"}, metrics),
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
	sound := results.Run{
		Config: results.Config{Workers: 4, Measured: 1}, Throughput: 1500, Visits: results.Visits{Begun: 10, Done: 10},
		Views:    results.Views{Acknowledged: 10},
		Fairness: results.Fairness{Jain: 0.85}, Cost: results.Cost{RoundTrips: &trips},
		Latency: results.Latencies{Response: results.Percentiles{Count: 600, P50: ms(1), P99: ms(40), Max: 45e6}},
		Waiting: results.Waiting{Unfinished: results.Percentiles{Count: 9, P50: ms(10), P99: new(int64), Max: 90e6}},
	}
	*sound.Waiting.Unfinished.P99 = int64(results.Beyond)
	saturated, slower, interactive := sound, sound, sound
	interactive.Interactive = true
	saturated.Generator = results.Generator{State: results.Saturated, Reasons: []string{"machine 100 % busy"}}
	slower.Latency.Response.P99 = ms(80)
	for _, c := range []struct {
		gate string
		runs []*results.Run
		want GateStatus
	}{
		{"response.p99<50ms", []*results.Run{&sound}, GatePass},
		{"response.p99 < 40ms", []*results.Run{&sound}, GateFail},
		{"response.p99<=40ms", []*results.Run{&sound}, GatePass},
		{"response.p99<50ms", []*results.Run{&sound, &slower, &sound}, GatePass}, // the median
		{"response.p99<50ms", []*results.Run{&slower, &slower, &sound}, GateFail},
		{"response.p999<1h", []*results.Run{&sound}, GateUnderpowered},
		{"response.p99<50ms", []*results.Run{&saturated}, GateInconclusive},
		{"response.p99<1ns", []*results.Run{&sound, &saturated}, GateInconclusive},
		{"throughput>1000/s", []*results.Run{&saturated}, GateInconclusive},
		{"cost.round_trips<=2.1", []*results.Run{&saturated}, GatePass},
		{"throughput>1000/s", []*results.Run{&sound}, GatePass},
		{"throughput>2000", []*results.Run{&sound}, GateFail},
		{"fairness.jain>0.8", []*results.Run{&sound}, GatePass},
		{"fairness.jain>90%", []*results.Run{&sound}, GateFail},
		{"fairness.starving==0", []*results.Run{&sound}, GatePass},
		{"handoff.p50<1h", []*results.Run{&sound}, GateNoData},
		{"cost.commands<1000", []*results.Run{&sound}, GateNoData},
		// more than the longest observed value
		{"acquire_with_unfinished.p99<80ms", []*results.Run{&sound}, GateFail},
		{"acquire_with_unfinished.p99<100ms", []*results.Run{&sound}, GateUnderpowered}, // nobody knows by how much
		{"response.p99<50ms", nil, GateNoData},
		{"cost.round_trips<=2.1", []*results.Run{&sound, &interactive}, GateInconclusive},
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

// TestAGateTellsItsValueFromItsLimit: "GATE PASS cost.round_trips<2: cost.round_trips is 2.00" looks false.
func TestAGateTellsItsValueFromItsLimit(t *testing.T) {
	trips, p99 := 1.99998, int64(40*time.Millisecond+300)
	run := results.Run{Config: results.Config{Measured: 1}, Fairness: results.Fairness{Jain: 0.50004},
		Cost: results.Cost{RoundTrips: &trips}, Throughput: 1499.6, Visits: results.Visits{Done: 600},
		Latency: results.Latencies{Response: results.Percentiles{Count: 600, P99: &p99}}}
	for gate, want := range map[string]string{
		"cost.round_trips<2": "cost.round_trips is 1.99998",
		"cost.round_trips<3": "cost.round_trips is 2.00",
		"fairness.jain>0.5":  "fairness.jain is 0.50004",
		"response.p99<=40ms": "response.p99 is 40.0003 ms",
		"throughput>=1500":   "throughput is 1 499.6/s",
		"throughput>=1499.6": "throughput is 1 500/s",
	} {
		g, err := ParseGate(gate)
		if got := g.Check([]*results.Run{&run}).Summary; err == nil && got != want {
			t.Errorf("%s: %q, want %q", gate, got, want)
		}
	}
	g, err := ParseChangeGate("throughput<=+10%")
	if got := g.judge(&difference{metric: g.Metric, change: 0.10004, effect: Better}); err != nil ||
		got.Status != GateFail || got.Summary != "throughput changed by +10.004 %" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMistakesInGates(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "METRIC OPERATOR VALUE",
		"response.p99":         "METRIC OPERATOR VALUE",
		"response.p99<":        "is a duration with a unit",
		"response.p99<50":      "is a duration with a unit",
		"response.p99=50ms":    "the operators are <= >= < > ==",
		"reponse.p99<50ms":     "did you mean response.p99?",
		"waits<50ms":           "there is acquire, acquire_with_unfinished, random_waiter, response,",
		"throughput>fast":      "is compared with a number",
		"fairness.jain>0.8x":   "is a share, from 0 to 1",
		"cost.round_trips<2ms": "is compared with a number",
		"response.p99<+x%":     "a change is written +10% or -5%",
		"response.p99==+1%":    "a change is never exactly equal",

		"steady:counter.lost<1":        "counter.lost is measured for the whole run only",
		"steady:cost.round_trips<3":    "cost.round_trips is measured for the whole run only",
		"steady:cost.commands<3 abort": "cost.commands is known when a run is over",
		"counter.lost<1 abort":         "counter.lost is known when a run is over",
	} {
		if _, err := ParseGate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := ParseGate("steady:cost.commands<3"); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"response.p99<50ms", "regressions", "response.p99<+x%"} {
		if _, err := ParseChangeGate(text); err == nil {
			t.Errorf("%q: no mistake", text)
		}
	}
}
