package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/internal/cli"
	"hammerlock/results"
)

// TestLiveCheckSaysWhatTheRunSaid: for any saved run of verify or bench, the command "check" finds the same verdicts.
// It checks the runs one by one, and all together. Its exit code is that of the run.
func TestLiveCheckSaysWhatTheRunSaid(t *testing.T) {
	t.Parallel()
	some := "--scenario=late-holder,crash"
	if !testing.Short() {
		some = "--scenario=all"
	}
	service := []string{"--serve", "exec python3 ../../examples/pageviews/pageviews.py 127.0.0.1 18199",
		"--burst", "60",
		"--visit", "POST http://127.0.0.1:18199/v2/pview", "--count", "GET http://127.0.0.1:18199/v2/pview"}
	for name, args := range map[string][]string{
		"right":    {"verify", "--topology", "single", "--lock", "lease", some, "--seed", "3"},
		"wrong":    {"verify", "--topology", "single", "--lock", "plain-del", some, "--seed", "3"},
		"explored": {"verify", "--topology", "single", "--lock", "fragile,plain-del", "--scenario", "explore"},
		"driver": {"verify", "--topology", "single", "--lock", "exec:python3 ../../drivers/python/template.py",
			"--scenario", "late-holder"},
		"service": append([]string{"verify", "http"}, service...),
		"bench":   {"bench", "--topology", "single", "--backoff", "5ms", "--duration", "1s", "--warmup", "0s"},
		"bench, a fault": {"bench", "--topology", "single", "--lock", "lease,none", "--lease", "200ms", "--fault",
			"kill-primary@500ms,heal@1s", "--backoff", "5ms", "--duration", "2s", "--warmup", "0s"},
		"bench, driver": {"bench", "--topology", "single", "--backoff", "5ms", "--lock", "exec:python3 " +
			"../../drivers/python/template.py", "--duration", "1s", "--warmup", "0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			var ran, checked struct {
				cli.Document
				Runs []json.RawMessage `json:"runs"`
			}
			said(t, &ran, append(args, "--out", out)...)
			said(t, &checked, "verify", "check", out)
			if len(ran.Runs)+len(ran.Explored) == 0 || checked.Exit.Code != ran.Exit.Code && len(ran.NotRun) == 0 {
				t.Fatalf("the run: %+v, check: %+v", ran.Exit, checked.Exit)
			}
			runs, err := filepath.Glob(filepath.Join(out, "*", results.RunFile))
			if err != nil || len(runs) < len(ran.Runs) {
				t.Fatalf("%d runs, %q are saved, %v", len(ran.Runs), runs, err)
			}
			n := 0
			for _, file := range runs {
				if dir := filepath.Dir(file); filepath.Base(dir) != "latest" {
					again(t, dir)
					n++
				}
			}
			if len(checked.Runs) > n || len(checked.Runs) < len(ran.Runs) {
				t.Errorf("check judges %d of %d runs", len(checked.Runs), n)
			}
		})
	}
}

// again checks one run.
func again(t *testing.T, dir string) {
	t.Helper()
	r, err := results.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Runs []results.Judgement `json:"runs"`
	}
	said(t, &got, "verify", "check", dir)
	if len(got.Runs) != 1 {
		t.Fatalf("%s: %d are judged", dir, len(got.Runs))
	}
	for i := range r.Verdicts {
		v := r.Verdicts[i]
		at := slices.IndexFunc(got.Runs[0].Verdicts, func(w checker.Verdict) bool { return w.Checker == v.Checker })
		w := got.Runs[0].Verdicts[max(at, 0)]
		if v.Story, w.Story = nil, nil; !reflect.DeepEqual(v, w) && !r.Explored || v.Status != w.Status ||
			v.Cause != w.Cause {
			t.Errorf("%s %s: the run said\n%+v, check says\n%+v", r.Combination(), v.Checker, v, w)
		}
	}
	if len(got.Runs[0].Verdicts) < len(r.Verdicts) || got.Runs[0].Name() != strings.TrimSpace(r.Combination()) {
		t.Errorf("%s: %d verdicts, %d before; %s", r.Combination(), len(got.Runs[0].Verdicts), len(r.Verdicts),
			got.Runs[0].Name())
	}
}

// said runs a command and reads its JSON.
func said(t *testing.T, document any, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.Command(args[0], append(args[1:], "--json")...)
	c.Stdout, c.Stderr, c.Env = &stdout, &stderr, append(os.Environ(), "TMPDIR="+t.TempDir())
	if _, ended := errors.AsType[*exec.ExitError](c.Run()); c.ProcessState == nil {
		t.Fatal(ended)
	}
	if err := json.Unmarshal(stdout.Bytes(), document); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, stderr.String())
	}
}
