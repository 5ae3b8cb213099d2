package results

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
)

// TestProportion compares with published intervals of Clopper and Pearson, and with their definition.
func TestProportion(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{{0, 20, 0, 0.1684}, {1, 20, 0.0013, 0.2487}, {10, 20, 0.2720, 0.7280}, {20, 20, 0.8316, 1}, {0, 1, 0, 0.975},
		{3, 1000, 0.0006, 0.0087}} {
		low, high := Proportion(c.k, c.n)
		if math.Abs(low-c.low) > 6e-5 || math.Abs(high-c.high) > 6e-5 {
			t.Errorf("%d of %d: got %.4f to %.4f, want %.4f to %.4f", c.k, c.n, low, high, c.low, c.high)
		}
	}
	// with a true share at an end of the interval, 1 in 40 series shows such an extreme number
	for n := 1; n <= 40; n += 3 {
		for k := range n {
			_, high := Proportion(k, n)
			var few float64
			for i := 0; i <= k; i++ {
				few += choose(n, i) * math.Pow(high, float64(i)) * math.Pow(1-high, float64(n-i))
			}
			if math.Abs(few-0.025) > 1e-6 {
				t.Errorf("%d of %d: with %v there are so few in %v of all series", k, n, high, few)
			}
		}
	}
	if r := (Rate{Of: 20}); r.Text() != "0 of 20: at most 1 in 7" {
		t.Errorf("got %q", r.Text())
	}
}

func choose(n, k int) float64 {
	x := 1.0
	for i := range k {
		x *= float64(n-i) / float64(i+1)
	}
	return x
}

// TestAFailoverCountsWhatItsRunsShow: the summary counts recoveries and lost grants. It leaves out runs without the
// fault, and verdicts that are inconclusive.
func TestAFailoverCountsWhatItsRunsShow(t *testing.T) {
	fault, second := int64(0), int64(time.Second)
	run := func(recovery int64, status checker.Status, lost, doubled int64) *Run {
		r := &Run{Windows: []FaultWindow{{Held: 4}}, Availability: &Availability{}, Verdicts: []checker.Verdict{
			{Checker: "exclusion", Status: status, Causes: map[string]int64{"service-loss": lost}, Doubled: doubled}}}
		if recovery > 0 {
			r.Availability.Outages = []Outage{{Recovery: 9 * second},
				{Fault: &fault, Recovery: recovery, Resurrected: 1,
					Parts: []Part{{Electing, recovery - second/2}, {LeaseLeft, second / 2}}}}
		}
		return r
	}
	f := Failover{Topology: "sentinel", Lock: "lease", Fault: "kill-primary", Settings: "aof=always"}
	for _, r := range []*Run{run(2*second, checker.Fail, 3, 1), run(0, checker.Pass, 0, 0),
		run(4*second, checker.Inconclusive, 0, 0), run(3*second, checker.Pass, 0, 0)} {
		if !f.Take(r) {
			t.Error("a run did not count")
		}
	}
	if f.Take(&Run{Windows: []FaultWindow{{Failed: true}}, Availability: &Availability{}}) || f.Take(&Run{}) {
		t.Error("a run without the fault counts")
	}
	if f.Injected != 4 || f.Failed != 2 || f.Lost.Times != 1 || f.Lost.Of != 3 || f.Doubled.Times != 1 ||
		f.Grants != 3 || f.Resurrected.Times != 3 || f.InFlight != 4 {
		t.Errorf("got %+v", f)
	}
	var text, page bytes.Buffer
	if err := WriteFailovers(&text, []Failover{f}); err != nil {
		t.Fatal(err)
	}
	if err := WriteFailoverMarkdown(&page, []Failover{f}, "bench failover"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1.50 s", "2.00 s", "4.00 s", "1 of 3: 1 to 91 %",
		"election 1.50 s, a lease not given\n  back 500 ms", "2 runs could not be carried out"} {
		got := strings.ReplaceAll(text.String(), "\u00a0", " ")
		if !strings.Contains(got, want) {
			t.Errorf("the table does not say %q:\n%s", want, got)
		}
	}
	if !strings.Contains(strings.ReplaceAll(page.String(), "\u00a0", " "),
		"| sentinel | lease | kill-primary | aof=always | 4 | 1.50 s |") {
		t.Errorf("got %s", page.String())
	}
	unseen := run(2*second, checker.Pass, 0, 0)
	unseen.Availability.Outages[1].Open = true
	f = Failover{}
	f.Take(run(second, checker.Pass, 0, 0))
	f.Take(unseen)
	if got := strings.Join(f.gone()[1:6], ", "); strings.ReplaceAll(got, "\u00a0",
		" ") != "500 ms, 1.00 s, >2.00 s, >2.00 s, none" {
		t.Errorf("of a run that ended first: got %s", got)
	}
}

// TestAFailoverSaysHowSoonHoldersHear, over all runs of a row, if the lock renews or signals.
func TestAFailoverSaysHowSoonHoldersHear(t *testing.T) {
	f := Failover{Topology: "sentinel", Lock: "lease", Fault: "kill-primary", Settings: "aof=always"}
	var text, page bytes.Buffer
	write := func() {
		t.Helper()
		text.Reset()
		page.Reset()
		if err := errors.Join(WriteFailovers(&text, []Failover{f}),
			WriteFailoverMarkdown(&page, []Failover{f}, "bench failover")); err != nil {
			t.Fatal(err)
		}
	}
	if write(); strings.Contains(text.String(), "never told") || strings.Contains(page.String(), "| never told |") {
		t.Error("a lock that tells of no loss has a row of those who were told")
	}
	later := int64(1500 * time.Millisecond)
	for _, never := range []int64{2, 0} {
		r := &Run{Windows: []FaultWindow{{}}, Availability: &Availability{}, Verdicts: []checker.Verdict{
			{Checker: "lease-validity", Told: &checker.Told{Count: 3, Never: never, Max: &later,
				Inside: int64(time.Second)}}}}
		f.Take(r)
	}
	if f.Told.Count != 6 || f.Told.Never != 2 {
		t.Errorf("told: got %+v", f.Told)
	}
	write()
	if got := strings.ReplaceAll(page.String(), "\u00a0", " "); !strings.Contains(got,
		"| sentinel | lease | kill-primary | aof=always | 6 | - | - | 1.50 s | 2 | 1.00 s |") ||
		!strings.Contains(text.String(), "never told") {
		t.Errorf("of those who lost the lock: got\n%s\n%s", text.String(), got)
	}
}

// TestWhatARowOfSecondsCannotBeTrustedFor: the worst run of a row counts, and milliseconds do not.
func TestWhatARowOfSecondsCannotBeTrustedFor(t *testing.T) {
	const ms = int64(time.Millisecond)
	var f Failover
	for _, step := range []struct {
		state GeneratorState
		late  int64
		want  GeneratorState
	}{{Suspect, ms, GeneratorOK}, {Saturated, 4 * ms, GeneratorOK}, {Saturated, 200 * ms, Saturated},
		{GeneratorOK, 0, Saturated},
		{Disturbed, 0, Disturbed}, {Saturated, 200 * ms, Disturbed}} {
		if f.trust(&Generator{State: step.state, LateMax: step.late}, 100*ms); f.Generator != step.want {
			t.Errorf("after %s, %d ns late: got %q, want %s", step.state, step.late, f.Generator, step.want)
		}
	}
}
