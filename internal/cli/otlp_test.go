package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// TestLiveOTLP: an OpenTelemetry collector gets all numbers of a run, no later than at the end of the run. They
// include visits, verdicts, and waits as an exponential histogram. A collector that answers with errors does not
// disturb the run.
func TestLiveOTLP(t *testing.T) {
	t.Parallel()
	wireServer(t)
	var got []*metrics.ExportMetricsServiceRequest
	var paths []string
	status := http.StatusOK
	collect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		m := &metrics.ExportMetricsServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(body, m)
		}
		if err != nil {
			t.Error(err)
		}
		got, paths = append(got, m), append(paths, r.URL.Path)
		w.WriteHeader(status)
	}))
	defer collect.Close()
	run := func() (int, string) {
		var stdout, stderr lockedBuffer
		code := Verify(t.Context(), Env{Args: []string{"--topology", "single", "--lock", "lease", "--fault", "none",
			"--duration", "500ms", "--out", t.TempDir(), "--tui", "off",
			"--otlp", collect.URL}, Stdout: &stdout, Stderr: &stderr})
		return code, stdout.String() + stderr.String()
	}
	code, said := run()
	if len(got) == 0 || paths[0] != "/v1/metrics" {
		t.Fatalf("exit %d, %q\n%s", code, paths, said)
	}
	names := map[string]string{}
	for _, of := range got[len(got)-1].ResourceMetrics {
		names["service"] = of.Resource.String()
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				names[m.Name] = fmt.Sprintf("%T %v", m.Data, m.Data)
			}
		}
	}
	for name, part := range map[string]string{"service": `"hammerlock"`, "hammerlock_visits_total": "Metric_Sum",
		"hammerlock_verdict":         "exclusion",
		"hammerlock_acquire_seconds": "ExponentialHistogram"} {
		if !strings.Contains(names[name], part) {
			t.Errorf("%s is %q, without %s", name, names[name], part)
		}
	}
	status = http.StatusBadRequest
	// a run this short may be too little for a verdict
	if code, said := run(); code != 0 && code != Inconclusive || !strings.Contains(said, "warning: --otlp: ") {
		t.Errorf("with a collector that refuses: exit %d\n%s", code, said)
	}
}

// TestCollectorAddress: an address without a path gets the collector's path for metrics.
func TestCollectorAddress(t *testing.T) {
	for text, want := range map[string]string{"http://h:4318": "http://h:4318/v1/metrics",
		"https://h/":      "https://h/v1/metrics",
		"http://h/otlp/m": "http://h/otlp/m",
		":4318":           "", "h:4318": "", "ftp://h": ""} {
		if got, err := collectorAddress(text); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
