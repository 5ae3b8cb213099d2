package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	wait "hammerlock/internal/live"
)

// TestNoPauseExcusesAServiceThatLosesViews: the service reads the count, and writes the next one, without a lock.
// Bench is stopped for longer than any pause that it records. The pause must not excuse lost page views, since there
// is no lease that could end during it.
func TestNoPauseExcusesAServiceThatLosesViews(t *testing.T) {
	t.Parallel()
	var views, visits atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := views.Load()
		if r.Method == http.MethodPost {
			visits.Add(1)
			<-time.After(2 * time.Millisecond)
			seen++
			views.Store(seen)
		}
		_, _ = io.WriteString(w, strconv.FormatInt(seen, 10))
	}))
	defer service.Close()
	wait.Again(t, func(int) (undecided string) {
		begun := visits.Load()
		var out bytes.Buffer
		c := exec.Command(linked(t, "bench"), "http", "--visit", "POST "+service.URL, "--count", "GET "+service.URL,
			"--workers", "4",
			"--warmup", "0s", "--duration", "2s", "--out", t.TempDir())
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		wait.Wait(t, "visits", func() bool { return len(ended) > 0 || visits.Load() > begun+100 })
		if len(ended) > 0 {
			return "it was over before a hundred visits"
		}
		send(t, syscall.SIGSTOP, c.Process.Pid)
		<-time.After(400 * time.Millisecond)
		send(t, syscall.SIGCONT, c.Process.Pid)
		<-ended
		if !strings.Contains(out.String(), "paused for") {
			return "the pause was not recorded, or after the end"
		}
		if code := c.ProcessState.ExitCode(); code != 1 ||
			!strings.Contains(out.String(), " acknowledged page views lost") {
			t.Errorf("got exit code %d, want 1 and lost page views:\n%s", code, out.String())
		}
		return ""
	})
}
