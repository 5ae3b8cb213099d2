package matrix

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/results"
)

func TestRedAndGreen(t *testing.T) {
	failed := Record{Status: checker.Fail, Findings: []finding{{"exclusion", "double-grant", "overrun"}, {"lost-updates", "stale-read", ""}}}
	passed := Record{Status: checker.Pass, Holds: 300}
	unsure := Record{Status: checker.Inconclusive, Summary: "3 contended hand-offs"}
	stopped := Record{Error: "no server"}
	must := func(causes ...string) expectation { return expectation{Want: mustFail, Causes: causes} }
	cases := map[string]struct {
		record Record
		want   expectation
		why    string // red, if it is not empty
		again  bool
	}{
		"passes as it must":           {passed, expectation{Want: mustPass}, "", false},
		"fails, but must pass":        {failed, expectation{Want: mustPass}, "it must pass", false},
		"unsure, but must pass":       {unsure, expectation{Want: mustPass}, "it must pass: 3 contended", true},
		"fails as it must":            {failed, must("double-grant"), "", false},
		"fails with one of them":      {failed, must("leak", "stale-read"), "", false},
		"with a cause that is second": {failed, must("overrun"), "", false},
		"by the checker's name":       {failed, must("lost-updates"), "", false},
		"by both":                     {failed, must("exclusion:overrun"), "", false},
		"by another checker":          {failed, must("lost-updates:overrun"), "not with double-grant", true},
		"with another cause":          {failed, must("leak"), "it must fail with leak, not with double-grant", true},
		"passes, but must fail":       {passed, must("leak", "stuck"), "it must fail with leak or stuck and passed", false},
		"unsure, but must fail":       {unsure, must("leak"), "it must fail with leak: 3 contended", true},
		"may fail: fails":             {failed, expectation{Want: mayFail}, "", false},
		"may fail: passes":            {passed, expectation{Want: mayFail}, "", false},
		"may fail: unsure":            {unsure, expectation{Want: mayFail}, "", false},
		"may fail, but was not run":   {stopped, expectation{Want: mayFail}, "could not be run: no server", true},
		"nothing expected":            {passed, expectation{}, "nothing was expected", false},
	}
	for name, c := range cases {
		x := compare(c.record, c.want)
		if x.Red != (c.why != "") || !strings.Contains(x.Why, c.why) {
			t.Errorf("%s: red %v, %q; want %q", name, x.Red, x.Why, c.why)
		}
		if got := again(&c.record, c.want); got != c.again {
			t.Errorf("%s: another try %v, want %v", name, got, c.again)
		}
	}
	if x := compare(passed, expectation{Want: mustPass}); x.Upper != 0.01 {
		t.Errorf("0 of 300 holds: bound %g, want 0.01", x.Upper)
	}
}

func TestARecordSaysWhenTheFirstViolationWasComplete(t *testing.T) {
	at := func(returns ...time.Duration) (ops []history.Op) {
		for _, r := range returns {
			ops = append(ops, history.Op{Call: r - 1, Return: r})
		}
		return ops
	}
	run := &results.Run{Verdicts: []checker.Verdict{
		{Checker: "activity", Status: checker.Pass, Exposed: 500},
		{Checker: "exclusion", Status: checker.Fail, Cause: "overrun", Causes: map[string]int64{"overrun": 2, "phantom": 1, "leak": 0},
			Exposed: 400, Violations: 3, Evidence: at(10, 70, 40)},
		{Checker: "lost-updates", Status: checker.Fail, Cause: "stale-read", Violations: 9, Evidence: at(20, 60, history.Forever)},
		{Checker: "release", Status: checker.Fail, Cause: "false-release", Violations: 1},
	}}
	run.Verdicts[2].Evidence[2].Call = 65
	var r Record
	r.observe(run)
	if r.Status != checker.Fail || r.cause() != "overrun" || !r.shows("phantom") || r.shows("leak") || r.Holds != 400 || r.Violations != 3 || r.Detected != 65 {
		t.Errorf("got %+v", r)
	}
}

func TestAMatrixGoesOnWhereItStopped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "matrix")
	log, err := Create(dir, 7)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := cell("lease", "single", "none"), cell("lease", "single", "flush"), cell("lease", "replica", "none")
	for _, r := range []Record{{Cell: a, Status: checker.Pass, Holds: 5}, {Cell: b, Error: "no server"}} {
		if err := log.add(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, 8); err == nil {
		t.Error("a matrix was begun where one is")
	}
	path := filepath.Join(dir, cellsFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, `{"lock":"lease","topo`...), 0o600); err != nil {
		t.Fatal(err)
	}
	log, seed, err := Resume(dir)
	if err != nil || seed != 7 {
		t.Fatalf("seed %d, %v", seed, err)
	}
	if r, ok := log.find(a, 7); !ok || r.Holds != 5 || r.Status != checker.Pass {
		t.Errorf("got %+v, %v", r, ok)
	}
	for name, x := range map[string]struct {
		cell Cell
		seed uint64
	}{"that could not be run": {b, 7}, "never run": {c, 7}, "with another seed": {a, 8}} {
		if _, ok := log.find(x.cell, x.seed); ok {
			t.Errorf("a cell %s is done", name)
		}
	}
	if err := errors.Join(log.add(&Record{Cell: c, Status: checker.Fail}), log.Close()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(after, whole) || bytes.Count(after, []byte("\n")) != 4 {
		t.Errorf("the log is %q, %v", after, err)
	}
}

func TestALogThatCannotBeReadIsNamedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "which seed",
		"{\"matrix_seed\":7":                 "which seed",
		"seed 7\n":                           cellsFile + ":1: ",
		"{\"matrix_seed\":7}\n{}\n{\"lock\n": cellsFile + ":3: ",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, cellsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Resume(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if _, _, err := Resume(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestTheTableSaysWhatIsRed(t *testing.T) {
	all := []Result{
		compare(Record{Cell: cell("lease", "single", "none"), Status: checker.Pass, Holds: 100}, expectation{Want: mustPass}),
		compare(Record{Cell: cell("lease", "single", "delay"), Status: checker.Pass, Holds: 200}, expectation{Want: mustPass}),
		compare(Record{Cell: cell("lease", "single", "flush"), Status: checker.Fail, Holds: 50, Violations: 2, Detected: 1500 * time.Millisecond,
			Findings: []finding{{"exclusion", "service-loss", ""}}}, expectation{Want: mustFail, Causes: []string{"service-loss"}}),
		compare(Record{Cell: cell("bit", "single", "none"), Status: checker.Pass, Holds: 30, Command: "verify --lock bit"},
			expectation{Want: mustFail, Causes: []string{"double-grant"}}),
	}
	s := Summarize(all)
	if s.Cells != 4 || s.Green != 3 || s.Red != 1 || s.Caught != 1 || s.Median != 1500*time.Millisecond || s.Holds != 380 || s.Broken != 0 {
		t.Errorf("got %+v", s)
	}
	var text bytes.Buffer
	if err := WriteText(&text, all, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"none, delay", "300", "service-loss", "1.50 s", "RED: must-fail double-grant", "RED  bit on single: it must fail",
		"repeat  verify --lock bit", "4 cells, 3 as expected, 1 RED"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
