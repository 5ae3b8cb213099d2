package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hammerlock/internal/cli"
	"hammerlock/internal/live"
	"hammerlock/internal/scripts"
	"hammerlock/results"
)

// bench runs the program, with something going on beside it, and returns its only run and what it printed.
func bench(t *testing.T, program string, during func(tmp string), args ...string) (r *results.Run, printed string) {
	t.Helper()
	live.Again(t, func(int) (undecided string) {
		r, printed, undecided = benchOnce(t, program, during, args)
		return undecided
	})
	return r, printed
}

func benchOnce(t *testing.T, program string, during func(tmp string), args []string) (r *results.Run, printed,
	undecided string) {
	t.Helper()
	tmp := t.TempDir()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, append(args, "--out", filepath.Join(tmp, "runs"))...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	during(tmp)
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() == cli.Inconclusive {
		return nil, "", stdout.String()
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	if r, err = results.ReadRun(filepath.Join(tmp, "runs", "latest")); err != nil {
		t.Fatal(err)
	}
	return r, stdout.String(), ""
}

// server waits for the only server that runs below a directory and returns its process.
func server(t *testing.T, tmp string) *os.Process {
	t.Helper()
	var pids []int
	live.Wait(t, "a server", func() bool {
		pids = scripts.ServersUnder(tmp)
		return len(pids) > 0
	})
	p, err := os.FindProcess(pids[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAloneAStallShowsInTheResponse tests against coordinated omission. The server of the lock stops for a tenth of a
// run with an open loop. So a tenth of all visits is due during the stop. The p99 of the response must be about nine
// tenths of the stop.
func TestAloneAStallShowsInTheResponse(t *testing.T) {
	var stall time.Duration // as it was: on a busy machine the server goes on late
	program, during := build(t), func(tmp string) {
		p := server(t, tmp)
		<-time.After(2 * time.Second)
		begun := time.Now()
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
		<-time.After(700 * time.Millisecond)
		if err := p.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
		stall = time.Since(begun)
	}
	var r *results.Run
	var text string
	live.Again(t, func(int) string {
		r, text = bench(t, program, during, "--topology", "single", "--counter", "memory", "--workers", "32", "--pages",
			"1000", "--hold", "0s",
			"--rate", "1000/s", "--arrivals", "uniform", "--warmup", "300ms", "--duration", "7s")
		response, acquire := time.Duration(*r.Latency.Response.P99), time.Duration(*r.Latency.Acquire.P99)
		wrong := response < stall*8/10 || response > stall*102/100
		hidden := acquire <= stall/10 // only the visits that the workers had in hand saw the stall: 32 of 7000
		late := time.Duration(r.Generator.LateMax)
		switch {
		case (wrong || !hidden) && r.Generator.State == results.Disturbed && late > stall/4:
			return fmt.Sprintf("a visit began %v late, for the machine stopped, too: response p99 %v, acquire p99 %v",
				late, response, acquire)
		case wrong:
			t.Errorf("response p99 %v of a stall of %v", response, stall)
		case !hidden:
			t.Errorf("acquire p99 %v: the test does not show what percentiles of tries hide", acquire)
		}
		return ""
	})
	if a := r.Arrivals; a.Due != a.Begun+a.Skipped+a.Unfinished || a.Due != 7300 {
		t.Errorf("arrivals %+v, want 7300 due", a)
	}
	for _, row := range []string{"acquire (winners)", "acquire with unfinished", "response (from due)"} {
		if !strings.Contains(text, row) {
			t.Errorf("the table lacks %q:\n%s", row, text)
		}
	}
	t.Logf("\n%s", text)
}

// TestAloneStarvation: 32 workers compete for one page. With a long backoff, the worker that has released the lock
// also gets it next, and others starve. With a short backoff, no worker starves. A longer run would show fewer
// starving workers, because each gets its turn at some time.
func TestAloneStarvation(t *testing.T) {
	program := build(t)
	for retry, duration := range map[string]string{"50ms": "2s", "1ms": "5s"} {
		live.Again(t, func(int) string {
			r, text := bench(t, program, func(string) {}, "--topology", "single", "--workers", "32", "--backoff", retry,
				"--hold", "2ms", "--warmup", "300ms", "--duration", duration)
			f, starve := r.Fairness, retry == "50ms"
			if wrong := (f.Jain < 0.8) != starve || (f.Starving > 0) != starve; wrong &&
				r.Generator.State == results.Disturbed {
				return fmt.Sprintf("others use the machine, and the turns of workers are theirs: "+
					"Jain %.2f, starving %v", f.Jain, f.StarvingWorkers)
			} else if wrong || f.Starving != len(f.StarvingWorkers) {
				t.Errorf("retry %s: Jain %.2f, starving %v", retry, f.Jain, f.StarvingWorkers)
			}
			if strings.Contains(text, "STARVING (w") != starve {
				t.Errorf("retry %s: the table says\n%s", retry, text)
			}
			return ""
		})
	}
}

// TestTheDocumentIsWhatWasSaved compares what --json prints with the files.
func TestTheDocumentIsWhatWasSaved(t *testing.T) {
	t.Parallel()
	r, text := bench(t, build(t), func(string) {}, "--topology", "single", "--duration", "300ms",
		"--warmup", "0s", "--json")
	var d cli.Document
	if err := json.Unmarshal([]byte(text), &d); err != nil || len(d.Runs) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	a, _ := json.Marshal(d.Runs[0])
	b, _ := json.Marshal(r)
	if !bytes.Equal(a, b) {
		t.Errorf("printed and saved runs differ:\n%s\n%s", a, b)
	}
}
