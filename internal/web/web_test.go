package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hammerlock/internal/live"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// start serves a job until the test ends; the returned function ends it earlier.
func start(t *testing.T) (s *Server, end func(page string)) {
	t.Helper()
	s, err := Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	end = func(page string) {
		if !ended.Swap(true) {
			s.Close(t.Context(), page)
		}
	}
	t.Cleanup(func() { end("") })
	return s, end
}

// snapshot is second n of a run with so many workers.
func snapshot(n, workers int) *measure.Snapshot {
	s := &measure.Snapshot{
		Stage: "running", LongestBy: -1, Head: measure.Head{Topology: "single", Lock: "lease", Number: 1, Of: 1,
			Workers: workers, Command: "bench"},
	}
	s.At, s.To, s.Done = time.Duration(n)*time.Second, time.Hour, int64(n)*100
	for i := max(n-60, 0); i <= n; i++ {
		s.Seconds = append(s.Seconds, measure.Second{At: time.Duration(i) * time.Second, Done: int64(i)})
	}
	now := measure.Quantiles{Count: 1000, P50: time.Millisecond, P99: time.Duration(n+1) * time.Millisecond}
	s.Latency = []measure.LatencyRow{
		{Name: "acquire", Now: now, Ten: now, Run: now}, {Name: "response", Now: now, Ten: now, Run: now},
	}
	s.LanesEnd = s.At
	for w := range min(workers, 64) {
		cells := make([]measure.Cell, measure.StripCells)
		for i := range cells {
			if (i+n)%workers == w {
				cells[i] = measure.Held | measure.Whole
			} else if (i+w)%3 > 0 {
				cells[i] = measure.Waited
			}
		}
		s.Lanes = append(s.Lanes, measure.Strip{Worker: w, Cells: cells})
	}
	for w := range workers {
		s.Fairness.Workers = append(s.Fairness.Workers,
			results.Worker{Worker: w, Visits: int64(n*10 + w), Longest: int64(time.Millisecond)})
	}
	s.Hidden = max(workers-64, 0)
	s.Events = []measure.Event{
		{Kind: measure.FaultEvent, At: time.Second, Count: 1, Text: "kill-primary: n1 was killed"},
	}
	return s
}

func get(t *testing.T, method, url string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(body)
}

// TestOnlyWhoKnowsTheTokenReads: without the token nothing is found; with it nothing can be changed.
func TestOnlyWhoKnowsTheTokenReads(t *testing.T) {
	s, _ := start(t)
	root := fmt.Sprintf("http://%s/", s.listen.Addr())
	if other, _ := start(t); other.token == s.token || len(s.token) < 20 {
		t.Errorf("the token %q is no secret", s.token)
	}
	for _, path := range []string{
		"", "events", "x/", s.token[:len(s.token)-1] + "/", s.token + "x/", s.token + "/nowhere", s.token + "/run/0",
		s.token + "/../" + s.token,
	} {
		if code, _, _ := get(t, http.MethodGet, root+path); code != http.StatusNotFound {
			t.Errorf("%q: %d", path, code)
		}
	}
	code, header, body := get(t, http.MethodGet, s.URL())
	if code != http.StatusOK || !strings.Contains(body, "; connect-src &#39;self&#39;;") ||
		header.Get("Cache-Control") != "no-store" || header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%d %v", code, header)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		if code, _, _ := get(t, method, s.URL()); code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, code)
		}
	}
}

// TestNoOtherSiteReads: a site whose name was made to resolve to this machine sends its own name as the Host.
func TestNoOtherSiteReads(t *testing.T) {
	t.Parallel()
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for host, want := range map[string]int{
		"127.0.0.1:9464": http.StatusNoContent, "[::1]:9464": http.StatusNoContent, "10.0.0.7": http.StatusNoContent,
		"localhost:9464": http.StatusNoContent, "LOCALHOST.": http.StatusNoContent,
		"bench.internal:9464": http.StatusNoContent,
		"evil.example:9464":   http.StatusMisdirectedRequest, "localhost.evil.example": http.StatusMisdirectedRequest,
		"127.0.0.1.evil.example:9464": http.StatusMisdirectedRequest, "": http.StatusMisdirectedRequest,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if OwnHost("bench.internal:9464", served).ServeHTTP(w, r); w.Code != want {
			t.Errorf("Host %q: got %d, want %d: %s", host, w.Code, want, w.Body)
		}
	}
}

// TestThePageIsForItsOwnHost: the token alone does not let another site read the page.
func TestThePageIsForItsOwnHost(t *testing.T) {
	s, _ := start(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("got %s", answer.Status)
	}
}

func events(t *testing.T, url string, f func(name, data string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), live.Deadline)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("%s, %s", kind, answer.Status)
	}
	lines, name := bufio.NewScanner(answer.Body), ""
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if is, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = is
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && !f(name, data) {
			return
		}
	}
}

// TestEventsFollowTheRun expects each snapshot, the series when it has grown, and the report at the end.
func TestEventsFollowTheRun(t *testing.T) {
	s, end := start(t)
	s.Publish(snapshot(3, 4))
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte("the report"), 0o600); err != nil {
		t.Fatal(err)
	}
	var order []string
	ended := make(chan struct{})
	events(t, s.URL(), func(name, data string) bool {
		order = append(order, name)
		switch name {
		case "frame":
			var f frame
			if err := json.Unmarshal([]byte(data), &f); err != nil {
				t.Error(err)
			}
			if f.At == int64(3*time.Second) {
				s.Saved("single lease", file)
				s.Publish(snapshot(4, 4))
				break
			}
			if len(f.Done) != 1 || f.Lanes.From != 0 && f.Lanes.Cells != shownCells ||
				len(f.Lanes.Planes) != 3*4*f.Lanes.Cells || f.Faults[0].Name != "kill-primary" || f.Faults[0].To != -1 {
				t.Errorf("%+v", f)
			}
			if code, _, body := get(t, http.MethodGet, s.URL()+f.Done[0].Link); code != http.StatusOK ||
				body != "the report" {
				t.Errorf("%d %q", code, body)
			}
			go func() { end(file); close(ended) }()
		case "end":
			if data != `{"report": true}` {
				t.Errorf("the end says %s", data)
			}
			return false
		}
		return true
	})
	if code, _, body := get(t, http.MethodGet, s.URL()); code != http.StatusOK || body != "the report" {
		t.Errorf("at the end the page is %d %q", code, body)
	}
	<-ended
	if text := strings.Join(order, " "); !strings.HasSuffix(text, "series frame series frame end") {
		t.Errorf("got %s", text)
	}
}

// TestWhatIsKeptIsBounded: memory stays bounded in a run of hours, with readers that do not read.
func TestWhatIsKeptIsBounded(t *testing.T) {
	s, _ := start(t)
	var before, after runtime.MemStats
	for i := range mostReaders {
		if err := s.enter(1); err != nil {
			t.Fatalf("reader %d: %v", i, err)
		}
	}
	if err := s.enter(1); err == nil {
		t.Error("one reader more is let in")
	}
	hours := func(from, to int) {
		for n := from; n < to; n += 30 {
			s.send(snapshot(n, 200))
		}
		runtime.GC()
	}
	hours(0, keptSeconds+60)
	runtime.ReadMemStats(&before)
	hours(keptSeconds+60, 4*keptSeconds+1)
	runtime.ReadMemStats(&after)
	if n := len(s.log.At); n != keptSeconds || len(s.log.Lines["response"].P99) != n ||
		s.log.At[n-1] != 4*keptSeconds-1 {
		t.Errorf("%d seconds are kept, up to %g", n, s.log.At[n-1])
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("the memory grew by %d bytes", grown)
	}
	if n := len(s.frame); n > 128<<10 {
		t.Errorf("a frame has %d bytes", n)
	}
}

// TestSeriesBeginsAnewWithARun: also if the run has the same number, as in the next round.
func TestSeriesBeginsAnewWithARun(t *testing.T) {
	var s series
	if !s.observe(snapshot(10, 2)) || len(s.At) != 10 {
		t.Fatalf("%d seconds", len(s.At))
	}
	if s.observe(snapshot(10, 2)) {
		t.Error("the same second again")
	}
	if p := s.Lines["acquire"].P99; *p[9] != int64(11*time.Millisecond) || p[8] != nil {
		t.Errorf("got %v: only the last second has percentiles", p)
	}
	if !s.observe(snapshot(2, 2)) || len(s.At) != 2 {
		t.Errorf("the next round has %d seconds", len(s.At))
	}
}
