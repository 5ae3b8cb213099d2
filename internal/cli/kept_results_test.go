package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/results"
)

// TestASoakWithoutARoundHasFailed: a soak that is too short for inARow rounds must not pass if none could be run.
func TestASoakWithoutARoundHasFailed(t *testing.T) {
	for name, c := range map[string]struct {
		rounds, broken int
		fails          bool
	}{
		"no round could be run":       {broken: 1, fails: true},
		"one round could be run":      {rounds: 1, broken: 1},
		"many could not":              {rounds: 1, broken: inARow, fails: true},
		"the only round could be run": {rounds: 1},
	} {
		begins := time.Unix(1<<33, 0) // far away, so that only the length decides whether the time is over
		s := &soaking{series: &series{begun: begins}, rounds: []harness.Plan{{}}}
		s.sum.Rounds = c.rounds
		left := max(c.broken, 1)
		for st := range s.steps {
			if c.broken > 0 {
				st.err = errors.New("no space left on device")
			}
			if left--; left == 0 {
				s.length = math.MinInt64
			}
		}
		if (s.failure != nil) != c.fails {
			t.Errorf("%s: got %v", name, s.failure)
		}
	}
}

// TestAnErrorLeavesEarlierVerdicts: an error that ends conformance does not hide a violation that a run has shown.
func TestAnErrorLeavesEarlierVerdicts(t *testing.T) {
	var stdout, stderr bytes.Buffer
	e := Env{Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" }}
	o := &options{json: true}
	o.plan.Out = t.TempDir()
	run := results.Run{Name: "one", Verdicts: []checker.Verdict{{Checker: "exclusion", Status: checker.Fail}}}
	st := &step{job: &harness.Job{Combinations: make([]harness.Combination, 1)}, runs: []results.Run{run}}
	if code := e.conformance(t.Context(), o, st, errors.New("no space left on device")); code != Violation {
		t.Errorf("exit code %d", code)
	}
	if stderr.String() != "error: no space left on device\n" || !json.Valid(stdout.Bytes()) {
		t.Errorf("%s\n%s", stderr.String(), stdout.String())
	}
}

// TestAPartOfAFileIsNoResult: of a file that could not be written, nothing is left. What others wrote to a file stays.
func TestAPartOfAFileIsNoResult(t *testing.T) {
	full := errors.New("no space left on device")
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, "<testsuites>")
		return errors.Join(err, full)
	}
	path := filepath.Join(t.TempDir(), junitFile)
	if err := writeFile(path, os.O_TRUNC, write); !errors.Is(err, full) {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part of the file is left: %v", err)
	}
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, os.O_APPEND, write); !errors.Is(err, full) {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "before<testsuites>" {
		t.Errorf("%q %v", text, err)
	}
}
