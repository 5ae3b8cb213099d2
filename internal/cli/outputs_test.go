package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/internal/measure"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/topologies"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func verdictRun(s checker.Status) results.Judgement {
	return results.Judgement{Verdicts: []checker.Verdict{{Status: s, Summary: s.String()}}}
}

// TestTheWorstCodeWins: the order is a violation, a broken run, an inconclusive run, a regression.
func TestTheWorstCodeWins(t *testing.T) {
	pass, fail, unsure := verdictRun(checker.Pass), verdictRun(checker.Fail), verdictRun(checker.Inconclusive)
	gate := func(s compare.GateStatus) compare.GateResult { return compare.GateResult{Gate: "g", Status: s} }
	broken := errors.New("no server")
	for name, c := range map[string]struct {
		runs  []results.Judgement
		gates []compare.GateResult
		err   error
		want  int
	}{
		"all is well": {
			[]results.Judgement{pass}, []compare.GateResult{gate(compare.GatePass)}, nil, Passed,
		},
		"a gate failed": {[]results.Judgement{pass}, []compare.GateResult{gate(compare.GateFail)},
			nil, Regression},
		"no data beats a gate": {
			[]results.Judgement{pass}, []compare.GateResult{gate(compare.GateFail), gate(compare.GateNoData)},
			nil, Inconclusive,
		},
		"underpowered": {[]results.Judgement{pass}, []compare.GateResult{gate(compare.GateUnderpowered)},
			nil, Inconclusive},
		"not to be believed": {[]results.Judgement{pass}, []compare.GateResult{gate(compare.GateInconclusive)},
			nil, Inconclusive},
		"a verdict beats a gate": {[]results.Judgement{unsure}, []compare.GateResult{gate(compare.GateFail)},
			nil, Inconclusive},
		"broken beats unsure": {[]results.Judgement{unsure}, []compare.GateResult{gate(compare.GateFail)},
			broken, Broken},
		"a violation beats all": {[]results.Judgement{unsure, fail}, []compare.GateResult{gate(compare.GateFail)},
			broken, Violation},
		"an unset gate is unsure": {[]results.Judgement{pass}, []compare.GateResult{{}}, nil, Inconclusive},
	} {
		if got := exit(t.Context(), results.Weigh(c.runs, nil, "", nil), c.gates, c.err); got.Code != c.want {
			t.Errorf("%s: got %+v, want %d", name, got, c.want)
		}
	}
}

// lastEvent has the metrics that show the event in TestLiveMetricsShowTheLastEvent.
var lastEvent = []string{
	`hammerlock_visits_total{lock="lease",outcome="done",run="one",topology="single"} 1234`,
	`hammerlock_visits_total{lock="lease",outcome="timeout",run="one",topology="single"} 6`,
	`hammerlock_errors_total{kind="acquire",lock="lease",outcome="unknown",reason="timeout",run="one",` +
		`topology="single"} 5`,
	`hammerlock_waiting_workers{lock="lease",topology="single"} 3`,
	`hammerlock_elapsed_seconds{lock="lease",topology="single"} 2`,
	`hammerlock_acquire_seconds_bucket{lock="lease",topology="single",le="0.0005"} 0`,
	`hammerlock_acquire_seconds_bucket{lock="lease",topology="single",le="0.001"} 5`,
	`hammerlock_acquire_seconds_bucket{lock="lease",topology="single",le="+Inf"} 6`,
	`hammerlock_acquire_seconds_sum{lock="lease",topology="single"} 20`,
	"# TYPE hammerlock_response_seconds histogram",
	`hammerlock_fairness_jain{lock="lease",topology="single"} 0.9`,
	`hammerlock_starving_workers{lock="lease",topology="single"} 2`,
	`hammerlock_unserved_seconds{lock="lease",topology="single"} 1.5`,
	`hammerlock_violations_total{lock="lease",topology="single"} 7`,
	`hammerlock_active_faults{lock="lease",topology="single"} 1`,
	`hammerlock_faults_total{lock="lease",topology="single"} 4`,
	`hammerlock_phase{lock="lease",phase="judging",topology="single"} 1`,
	`hammerlock_run{lock="lease",of="2",topology="single"} 1`,
	"# TYPE hammerlock_visits_total counter",
}

// TestLiveMetricsShowTheLastEvent scrapes before, during and after runs, and checks that the port becomes free.
func TestLiveMetricsShowTheLastEvent(t *testing.T) {
	m, err := serveMetrics("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := serveMetrics(m.address()); err == nil {
		t.Error("an address was given away twice")
	}
	address := m.address()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	scrape := func() string {
		t.Helper()
		r, err := client.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(r.Status, err)
		}
		return string(text)
	}
	if text := scrape(); strings.Contains(text, "hammerlock_visits_total{") {
		t.Errorf("there are visits before the first run:\n%s", text)
	}
	combo := harness.Combination{Topology: topologies.Spec{Name: "single"}, Lock: locks.Spec{Name: "lease"}}
	live := measure.Live{At: 2 * time.Second, Waiting: 3,
		Visits: results.Visits{Done: 1234, Timeout: 6}, Kinds: map[string]int64{"acquire unknown timeout": 5},
		Unserved: 1500 * time.Millisecond,
		Acquire:  measure.Quantiles{Count: 5000, P50: time.Millisecond, P99: 20 * time.Millisecond}}
	seen := &measure.Snapshot{
		Live: live, Fairness: results.Fairness{Jain: 0.9, Starving: 2}, Safety: measure.Safety{Violations: 7},
		Active: []string{"n1 was killed"}, Injected: 4,
	}
	seen.Acquired.In[3], seen.Acquired.In[len(measure.Bounds)], seen.Acquired.Sum = 5, 1, 20*time.Second
	seen.Acquired.Native[80], seen.Acquired.Native[195] = 5, 1 // 2^-10 s and 2^(35/8) s
	m.tell(harness.Event{Combination: combo, Name: "one", Number: 1, Of: 2, Stage: harness.Running, Live: live,
		Snapshot: seen})
	m.tell(harness.Event{Combination: combo, Name: "one", Number: 1, Of: 2, Stage: harness.Judging})
	text := scrape()
	for _, want := range lastEvent {
		if !strings.Contains(text, want) {
			t.Errorf("no word of %s in:\n%s", want, text)
		}
	}
	lingers(t, m, combo, scrape)
	if again, err := serveMetrics(address); err != nil {
		t.Errorf("the port was not given back: %v", err)
	} else {
		_ = again.close(t.Context(), "")
	}
}

// lingers ends one run and begins another. Metrics can be read until the end of the last run was read.
func lingers(t *testing.T, m *metricsServer, combo harness.Combination, scrape func() string) {
	t.Helper()
	native(t, m)
	over := &results.Run{Name: "one", Topology: "single", Lock: "lease", Visits: results.Visits{Done: 1300},
		Verdicts: []checker.Verdict{{Checker: "exclusion", Status: checker.Fail, Violations: 9}}}
	m.tell(harness.Event{Combination: combo, Name: "one", Number: 1, Of: 2, Stage: harness.Saved, Run: over})
	if text := scrape(); !strings.Contains(text, `hammerlock_violations_total{lock="lease",topology="single"} 9`) {
		t.Errorf("the violations of the verdict are missing in:\n%s", text)
	}
	m.tell(harness.Event{Combination: combo, Name: "two", Number: 2, Of: 2, Stage: harness.Starting})
	m.tell(harness.Event{Combination: combo, Name: "two", Number: 2, Of: 2, Stage: harness.Running, Said: "a line"})
	text := scrape()
	for _, want := range []string{
		`hammerlock_visits_total{lock="lease",outcome="done",run="one",topology="single"} 1300`,
		`hammerlock_visits_total{lock="lease",outcome="done",run="two",topology="single"} 0`,
		`hammerlock_verdict{check="exclusion",lock="lease",run="one",scenario="",topology="single",verdict="FAIL"} 1`,
		`phase="starting"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no word of %s of the next run in:\n%s", want, text)
		}
	}
	closed := make(chan struct{})
	m.linger = time.Hour
	go func() {
		defer close(closed)
		_ = m.close(t.Context(), "")
	}()
	for !m.over.Load() {
		runtime.Gosched()
	}
	select {
	case <-closed:
		t.Error("it did not stay up until it was read")
	default:
	}
	if text := scrape(); !strings.Contains(text, "hammerlock_verdict{") {
		t.Errorf("the end has no verdict:\n%s", text)
	}
	<-closed
}

// native compares the native buckets of the waits with the recorded waits.
func native(t *testing.T, m *metricsServer) {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "hammerlock_acquire_seconds" {
			h := f.Metric[0].Histogram
			got := fmt.Sprint(h.GetSchema(), h.PositiveDelta, h.GetSampleCount(), len(h.Bucket))
			for _, s := range h.PositiveSpan {
				got += fmt.Sprint(" ", s.GetOffset(), "+", s.GetLength())
			}
			if want := "3 [5 -4] 6 16 -80+1 114+1"; got != want {
				t.Errorf("native buckets %s, want %s", got, want)
			}
			return
		}
	}
	t.Error("no waits")
}

func TestMetricsAreOnLoopbackUnlessAskedFor(t *testing.T) {
	for text, want := range map[string]string{
		// those that were asked for
		":9464": "127.0.0.1:9464", "localhost:0": "localhost:0", "[::1]:80": "[::1]:80", "0.0.0.0:1": "0.0.0.0:1",
		"9464": "", "": "", "host:port": "", "a:b:c": "", ":99999": "",
	} {
		got, err := listenAddress(text)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestLiveMetricsAreForTheirOwnHost: a web site whose name resolves to this machine cannot read the metrics.
func TestLiveMetricsAreForTheirOwnHost(t *testing.T) {
	m, err := serveMetrics("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.close(t.Context(), "") }()
	var one http.Transport
	defer one.CloseIdleConnections()
	for host, want := range map[string]int{"": http.StatusOK, "localhost": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+m.address()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		answer, err := one.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("Host %q: got %s", host, answer.Status)
		}
	}
}

// TestACrashIsNoInvalidCommandLine: the exit code of a crash says that the run could not be carried out.
func TestACrashIsNoInvalidCommandLine(t *testing.T) {
	var said bytes.Buffer
	e := Env{Args: []string{"--topology", "single"}, Stdout: io.Discard, Stderr: &said}
	if code := e.execute(t.Context(), func(Env) *cobra.Command { panic("no commands") }); code != Broken ||
		!strings.Contains(said.String(), "crashed, please report it: no commands") {
		t.Errorf("got the exit code %d, and %s", code, said.String())
	}
}

// TestAnInterruptIsNoVerdict: a violation takes precedence over the exit code of a signal.
func TestAnInterruptIsNoVerdict(t *testing.T) {
	stop, cancel := context.WithCancelCause(t.Context())
	cancel(interrupt{signal: 2})
	if got := exit(stop, results.Weigh([]results.Judgement{verdictRun(checker.Pass)}, nil, "", nil), nil,
		nil); got.Code != 130 {
		t.Errorf("got %+v", got)
	}
	if got := exit(stop, results.Weigh([]results.Judgement{verdictRun(checker.Fail)}, nil, "", nil), nil,
		nil); got.Code != Violation {
		t.Errorf("got %+v", got)
	}
}
