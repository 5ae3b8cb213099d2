package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"hammerlock/internal/cli"
	"hammerlock/internal/live"
)

// TestLivePage opens the web page of a job with two runs. The job prints the address of the page and sends events. At
// the end the page is the report.
func TestLivePage(t *testing.T) {
	t.Parallel()
	live.Again(t, func(int) string { return livePage(t) })
}

// livePage returns a reason if it could not decide: the job, or the time for which the page waits for readers, was
// over too early.
func livePage(t *testing.T) (undecided string) {
	url, code, stdout := watched(t, t.Context(), "--redis-server", "embedded", "--lock", "lease,spin", "--workers", "3",
		"--duration", "3s", "--warmup", "200ms")
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
	if !strings.Contains(report, "Hammerlock<span>report</span>") || !strings.Contains(report, `id="run0"`) ||
		!strings.Contains(report, `id="run1"`) {
		t.Error("at the end the page is not the report of both runs")
	}
	for _, want := range []string{"event: series", `"title":"[1/2] single lease"`, `"title":"[2/2] single spin"`,
		`"link":"run/0"`, `"planes":"`,
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
			Args: append(args, "--topology", "single", "--web", ":0", "--quiet", "--out",
				filepath.Join(t.TempDir(), "runs"))})
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

func read(url string) (string, error) {
	answer, err := http.Get(url)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	return string(body), errors.Join(err, answer.Body.Close())
}
