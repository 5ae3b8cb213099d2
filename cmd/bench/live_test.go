package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	cdpruntime "github.com/chromedp/cdproto/runtime"

	"hammerlock/internal/browser"
	"hammerlock/internal/cli"
	"hammerlock/internal/live"
)

// TestLivePage watches a job of two runs from outside: its address is printed, its events come, and at the end the page is the report.
func TestLivePage(t *testing.T) {
	t.Parallel()
	live.Again(t, func(int) string { return livePage(t) })
}

// livePage is undecided if the job, or the few seconds for which its page waits for readers, are over before they are used.
func livePage(t *testing.T) (undecided string) {
	url, code, stdout := watched(t, t.Context(), "--redis-server", "embedded", "--lock", "lease,spin", "--workers", "3", "--duration", "3s", "--warmup", "200ms")
	page, early := read(url)
	events, middle := read(url + "events") // until the end
	report, late := read(url)
	got, err := <-code, errors.Join(early, middle, late)
	if err != nil || got == cli.Inconclusive || strings.Contains(page, "Hammerlock<span>report</span>") {
		return fmt.Sprintf("the job was over before it was looked at, or inconclusive: exit code %d, %v", got, err)
	}
	if got != cli.Passed {
		t.Errorf("exit code %d\n%s", got, stdout.String())
	}
	if !strings.Contains(page, "Hammerlock<span>live</span>") {
		t.Error("no live page")
	}
	if !strings.Contains(report, "Hammerlock<span>report</span>") || !strings.Contains(report, `<a href="#run1">spin `) {
		t.Error("at the end the page is not the report of both runs")
	}
	for _, want := range []string{"event: series", `"title":"[1/2] single lease"`, `"title":"[2/2] single spin"`, `"link":"run/0"`, `"marks":"`,
		"event: end\ndata: {\"report\": true}"} {
		if !strings.Contains(events, want) {
			t.Errorf("no event has %q", want)
		}
	}
	return ""
}

// watched starts a job on topology single with a page. What it writes may be read once there is an exit code.
func watched(t *testing.T, ctx context.Context, args ...string) (url string, code <-chan int, stdout *bytes.Buffer) {
	t.Helper()
	messages, stderr := io.Pipe()
	stdout = &bytes.Buffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Bench(ctx, cli.Env{Stdout: stdout, Stderr: stderr,
			Args: append(args, "--topology", "single", "--web", ":0", "--quiet", "--out", filepath.Join(t.TempDir(), "runs"))})
		_ = stderr.Close()
	}()
	lines := bufio.NewReader(messages)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // so that nobody waits for its reader
	url, ok := strings.CutPrefix(strings.TrimSpace(first), "live at http://127.0.0.1:")
	if !ok {
		t.Fatalf("the first line is %q", first)
	}
	return "http://127.0.0.1:" + url, ended, stdout
}

// liveFor is how long TestLivePageForLong follows a run.
var liveFor = flag.Duration("live", 0, "how long a browser follows a run of 200 workers, as in 10m; 0 = not at all")

// TestLivePageForLong follows a real run of 200 workers in a browser: the page changes every second at least, has no complaint, and
// after its first minutes neither the page nor the suite keeps more.
func TestLivePageForLong(t *testing.T) {
	if *liveFor == 0 {
		t.Skip("it takes as long as -live says: go test ./cmd/bench -run LivePageForLong -timeout 0 -v -live 10m")
	}
	b := browser.Open(t, browser.Start(t), 1200, 1500)
	ctx, stop := context.WithCancel(t.Context()) // longer than it is watched: a page that has become the report is another
	defer stop()
	url, code, _ := watched(t, ctx, "--lock", "redsync", "--workers", "200", "--keys", "50", "--rate", "300/s", "--duration", (*liveFor * 2).String(), "--warmup", "1s", "--seed", "1")
	b.Draw(t, url)
	browser.JS[bool](t, b, `let last = performance.now(); window.gaps = [];
		new MutationObserver(() => { const now = performance.now(); gaps.push(now - last); last = now; })
			.observe(document.documentElement, {attributes: true, attributeFilter: ["data-at"]}); true`)
	var page, suite []float64 // MB, ten times
	gap := 0.0
	for i := range 10 {
		<-time.After(*liveFor / 10)
		browser.Call(t, b, heapprofiler.CollectGarbage, cdp.Empty{})
		page = append(page, browser.Call(t, b, cdpruntime.GetHeapUsage, cdp.Empty{}).UsedSize/1e6)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		suite = append(suite, float64(m.HeapAlloc)/1e6)
		updates := browser.JS[[]float64](t, b, `gaps.splice(0).sort((a, b) => a - b)`)
		if len(updates) == 0 {
			t.Fatalf("part %d: the page shows nothing new", i)
		}
		gap = max(gap, updates[len(updates)/2])
		t.Logf("part %2d: page %.1f MB, suite %.1f MB; %d updates, in the middle %.0f ms apart, at most %.0f ms",
			i, page[i], suite[i], len(updates), updates[len(updates)/2], updates[len(updates)-1])
	}
	if gap > 1000 {
		t.Errorf("updates come %.0f ms apart", gap)
	}
	if page[9] > 1.5*page[2]+2 || suite[9] > 1.5*suite[2]+10 {
		t.Errorf("memory grows: the page has %.1f MB, the suite %.1f MB", page, suite)
	}
	b.Quiet(t, func(asked string) bool { return strings.HasPrefix(asked, url) || strings.HasPrefix(asked, "data:") })
	stop()
	<-code
}

func read(url string) (string, error) {
	answer, err := http.Get(url)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	return string(body), errors.Join(err, answer.Body.Close())
}
