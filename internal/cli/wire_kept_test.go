package cli

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/results"
	"hammerlock/topologies"
)

// TestLiveWireKeepsPasswords: the watched program gets all values that the user gave for it, including passwords. No
// output and no saved file contains the passwords.
func TestLiveWireKeepsPasswords(t *testing.T) {
	t.Parallel()
	wireServer(t)
	const given = "redis://bob:hunter2@h/1"
	out := t.TempDir()
	got := filepath.Join(t.TempDir(), "got")
	var stdout, stderr lockedBuffer
	Verify(t.Context(),
		Env{Args: []string{"wire", "--topology", "single", "--locks", "lock:*", "--out", out, "--tui", "off",
			"--env", "U=redis://:{password}@{host}:{port}", "--env", "V=redis://joe:hunter2@i", "--",
			"sh", "-c", `printf '%s\n' "$0" "$U" "$V" "$REDIS_URL" > ` + got, given},
			Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
	text, _ := os.ReadFile(got)
	lines := strings.Split(string(text), "\n")
	if len(lines) < 4 || lines[0] != given || lines[1] != lines[3] || lines[2] != "redis://joe:hunter2@i" {
		t.Errorf("the program got %q\n%s", lines, stderr.String())
	}
	saved := stdout.String() + stderr.String()
	_ = filepath.WalkDir(out, func(path string, d fs.DirEntry, _ error) error {
		if text, err := os.ReadFile(path); err == nil {
			saved += string(text)
		}
		return nil
	})
	if strings.Contains(saved, "hunter2") || !strings.Contains(saved, "redis://bob@h/1") {
		t.Errorf("the password is shown, or its address is not:\n%s", saved)
	}
}

// TestLiveWireIsKeptMeanwhile: while the program works, its recorded history is on disk, and can be judged.
func TestLiveWireIsKeptMeanwhile(t *testing.T) {
	t.Parallel()
	wireServer(t)
	out, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	var stdout, stderr lockedBuffer
	ended := make(chan int)
	go func() {
		ended <- Verify(t.Context(),
			Env{Args: []string{"wire", "--topology", "single", "--locks", "lock:*", "--out", out, "--tui", "off",
				"--", "sh", "-c",
				`REDISCLI_AUTH=$REDIS_PASSWORD redis-cli -h "${REDIS_NODES%:*}" -p "${REDIS_NODES##*:}" ` +
					`set lock:a 1 nx px 60000; until [ -e "$0" ]; do sleep 0.05; done`, done},
				Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
	}()
	live.Wait(t, "a grant on disk", func() bool {
		found, _ := filepath.Glob(filepath.Join(out, "*.partial", results.HistoryFile))
		if len(found) == 0 {
			return false
		}
		h, err := history.Open(found[0])
		if err != nil {
			t.Error(err)
			return true
		}
		defer h.Space.Free()
		if !slices.ContainsFunc(h.Ops, func(op history.Op) bool { return op.Kind == history.Acquire }) {
			return false
		}
		if _, err := checker.JudgeHistory(h); err != nil || !strings.Contains(h.Partial, "killed") {
			t.Errorf("%q: %v", h.Partial, err)
		}
		return true
	})
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != Inconclusive {
		t.Errorf("exit %d:\n%s%s", code, stdout.String(), stderr.String())
	}
	if left, _ := filepath.Glob(filepath.Join(out, "*.partial")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestLiveTapOnlyIsKeptMeanwhile: a watch of a replication stream writes its history to disk while it runs. So the
// history can be judged even if the watch is killed. The metrics count grants and violations.
func TestLiveTapOnlyIsKeptMeanwhile(t *testing.T) {
	t.Parallel()
	s := testbed.Up(t, "single", topologies.Options{}).Sites[0]
	a, c, out := s.Access(), s.Client(topologies.ClientOptions{}), t.TempDir()
	defer func() { _ = c.Close() }()
	var stdout, stderr lockedBuffer
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		ended <- Verify(ctx,
			Env{Args: []string{"wire", "--addr", "redis://:" + a.Password + "@" + a.Addrs[0], "--locks", "lock:*",
				"--tap-only", "--metrics", ":0", "--json",
				"--out", out, "--tui", "off"}, Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
	}()
	at := regexp.MustCompile(`http://\S+/metrics`)
	live.Wait(t, "the metrics of a violation", func() bool {
		c.Set(t.Context(), "lock:stolen", "one", time.Minute)
		c.Set(t.Context(), "lock:stolen", "two", time.Minute)
		address := at.FindString(stderr.String())
		if address == "" {
			return false
		}
		answer, err := http.Get(address)
		if err != nil {
			return false
		}
		defer func() { _ = answer.Body.Close() }()
		text, _ := io.ReadAll(answer.Body)
		counts := func(name string) bool {
			return regexp.MustCompile("(?m)^hammerlock_" + name + `\{.*\} [1-9]`).Match(text)
		}
		return counts("visits_total") && counts("violations_total")
	})
	live.Wait(t, "a violation on disk", func() bool {
		var judged, complaints lockedBuffer
		found, _ := filepath.Glob(filepath.Join(out, "*.partial"))
		return len(found) == 1 &&
			Verify(t.Context(), Env{Args: []string{"check", found[0]}, Stdout: &judged, Stderr: &complaints}) ==
				Violation &&
			strings.Contains(judged.String(), "killed")
	})
	live.Wait(t, "the document of a cut", func() bool {
		var d Document
		line, _, whole := strings.Cut(stdout.String(), "\n")
		if !whole {
			return false
		}
		err := json.Unmarshal([]byte(line), &d)
		_, missing := os.Stat(d.Saved)
		if err != nil || missing != nil || d.Exit.Code != Violation || len(d.Runs) != 1 {
			t.Errorf("%v, %v: %s", err, missing, line)
		}
		return true
	})
	end()
	if code := <-ended; code != Violation || !strings.HasPrefix(stdout.String(), "{") ||
		!strings.Contains(stderr.String(), `"two" took the place of "one"`) {
		t.Errorf("exit %d:\n%s%s", code, stdout.String(), stderr.String())
	}
}

// TestLiveWireOpensItsFolderFirst: an output directory that cannot be made is reported as a mistake. The program to
// watch is not started.
func TestLiveWireOpensItsFolderFirst(t *testing.T) {
	t.Parallel()
	wireServer(t)
	out, started := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "started")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr lockedBuffer
	code := Verify(t.Context(),
		Env{Args: []string{"wire", "--topology", "single", "--locks", "lock:*", "--out", out, "--tui", "off",
			"--", "touch", started}, Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
	if _, err := os.Stat(started); err == nil || code != Usage ||
		!strings.Contains(stderr.String(), "runs are saved in a directory") {
		t.Errorf("exit %d, the program was started: %v\n%s", code, err == nil, stderr.String())
	}
}
