package story

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/explore"
	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/locks/known"
)

// lateReply is a schedule in which plain-del deletes another client's key, because the answer to its own grant is late.
var lateReply = explore.Choice{At: 2, Option: 1, What: "w00 reply set: is paused"}

// explored returns the story of a lock's shortest counterexample, or of the given schedule.
func explored(t *testing.T, lock string, given ...explore.Choice) *Story {
	t.Helper()
	i := slices.IndexFunc(known.Locks, func(s locks.Spec) bool { return s.Name == lock })
	o := explore.Defaults
	o.Deviations = 1
	r, err := explore.Run(t, known.Locks[i], o)
	f := r.Found
	if len(given) > 0 {
		f, err = explore.Replay(t, known.Locks[i], o, given)
	}
	if err != nil || f == nil {
		t.Fatalf("%v: %s", err, r.Verdict())
	}
	at := slices.IndexFunc(f.Verdicts, func(v checker.Verdict) bool { return v.Checker == f.Checker })
	s, err := Of(f.History, &f.Verdicts[at], f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func steps(s *Story) (all []string) {
	for _, st := range s.Steps {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", st.At.Milliseconds(), st.Who, st.Do, st.Fault)))
	}
	return all
}

func compare(t *testing.T, s *Story, want ...string) {
	t.Helper()
	if got := steps(s); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOfACounterexample: the story delays the same messages as the exploration, and a third client acquires at the end.
func TestOfACounterexample(t *testing.T) {
	compare(t, explored(t, "plain-del", lateReply), "0 w00 acquire late reply 1", "2241 w01 acquire", "2877 w00 go on",
		"3081 w01 extend", "3081 w01 release",
		"3081 w01 acquire", "3716 w00 extend", "3717 w00 release", "3717 w02 acquire")
	compare(t, explored(t, "plain-del"), "0 w00 acquire", "0 w01 acquire cut request 1", "0 w01 release",
		"0 w02 acquire")
	get := strings.Join(steps(explored(t, "get-del")), "; ")
	if !strings.Contains(get, "w00 release late reply 1") {
		t.Errorf("get-del is not held between its two commands: %s", get)
	}
	broken := strings.Join(steps(explored(t, "setnx-expire")), "; ")
	if !strings.Contains(broken, "cut") || !strings.Contains(broken, "acquire must") {
		t.Errorf("setnx-expire loses no message, or nothing has to be granted: %s", broken)
	}
}

// ran is a history of a run under load: an extension by w05 is unanswered, and w06 is granted the lock during
// w05's lease.
func ran(sites int) (*history.History, *checker.Verdict) {
	const ms = time.Millisecond
	op := func(id, hold history.ID, worker int32, kind history.Kind, call, ret time.Duration,
		outcome history.Outcome) history.Op {
		return history.Op{ID: id, Hold: hold, Worker: worker, Kind: kind, Call: call * ms, Return: ret * ms,
			Outcome: outcome, TTL: 400 * ms}
	}
	h := &history.History{Header: history.Header{Lock: "exec:x@1", Workers: 8, Sites: sites}, Ops: []history.Op{
		op(9, 9, 7, history.Acquire, 1, 2, history.OK), op(1, 1, 5, history.Acquire, 100, 101, history.OK),
		op(8, 9, 7, history.Release, 30, 102, history.OK),
		op(2, 1, 5, history.Extend, 150, 160, history.Unknown), op(3, 0, 6, history.Acquire, 170, 171, history.Failed),
		op(4, 4, 6, history.Acquire, 200, 201, history.OK), op(5, 4, 6, history.Release, 210, 250, history.OK),
		op(6, 1, 5, history.Extend, 220, 221, history.OK),
	}}
	return h, &checker.Verdict{Checker: "exclusion", Status: checker.Fail, Cause: history.DoubleGrant, Summary: "two",
		Evidence: []history.Op{h.Ops[1], h.Ops[5], h.Ops[6]}}
}

// TestOfARun: the story has the calls of the holds in the evidence, with the disturbance of each.
func TestOfARun(t *testing.T) {
	h, v := ran(1)
	s, err := Of(h, v, nil)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, s, "0 w05 acquire", "250 w05 extend cut reply 1", "500 w06 acquire", "550 w06 release late request 1",
		"600 w05 extend", "750 w06 go on", "750 w08 acquire")
	if s.Lease != leastLease {
		t.Errorf("the lease is %v", s.Lease)
	}
}

// TestNoStory: a story that a test cannot tell is refused with the reason.
func TestNoStory(t *testing.T) {
	h, v := ran(5)
	_, err := Of(h, v, nil)
	wants(t, err, "5 servers")
	h, v = ran(1)
	v.Evidence = nil
	_, err = Of(h, v, nil)
	wants(t, err, "names no calls")
	h, v = ran(1)
	_, err = Of(h, v, &explore.Found{
		Messages: []explore.Message{{At: 100*time.Millisecond + 1, Client: 5, Fate: "comes after all keys were lost"}},
	})
	wants(t, err, "a request comes after all keys were lost")
	_, err = Language("lock.rb")
	wants(t, err, "go, js or py")
}

func wants(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}

// TestWrite: a test is a program in its language, with the story in words at its head.
func TestWrite(t *testing.T) {
	s := explored(t, "plain-del", lateReply)
	for _, file := range []string{"plain.go", "plain.js", "plain.py"} {
		text := written(t, s, file)
		for _, want := range []string{"VIOLATION of exclusion", "late reply 1", "verify export --test"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", file, want, text)
			}
		}
	}
	for clause, want := range map[string]string{"": "lock_test", "// Calls.\npackage\tmine_test // of x": "mine_test",
		"//go:build ignore\n\npackage mine\r": "mine"} {
		text, err := s.Write("go", clause+"\n\nimport \"errors\"\n")
		if err != nil || !strings.Contains(string(text), "\npackage "+want+"\n\nimport (") ||
			strings.Count(string(text), "\npackage ") != 1 {
			t.Errorf("%q: %v, want package %s in\n%.900s", clause, err, want, text)
		}
	}
	if _, err := s.Write("go", "this is no Go"); err == nil {
		t.Error("calls that are no Go become a test")
	}
}

func written(t *testing.T, s *Story, calls string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", calls))
	if err != nil {
		t.Fatal(err)
	}
	language, err := Language(calls)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Write(language, string(source))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLiveExported runs a test in each language. The test is red for the wrong lock of the story, and green for a lock
// that compares tokens.
func TestLiveExported(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs, and takes 20 s")
	}
	s := explored(t, "plain-del", lateReply)
	for _, c := range []struct {
		calls, file string
		command     []string
	}{
		{"plain.go", "lock_test.go", []string{"go", "test", "-count", "1"}},
		{"plain.js", "lock.test.js", []string{"node", "--test"}},
		{"plain.py", "test_lock.py", []string{"python3"}},
	} {
		t.Run(c.calls, func(t *testing.T) {
			_, err := exec.LookPath(c.command[0])
			live.Need(t, err == nil, c.command[0])
			file := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(file, []byte(written(t, s, c.calls)), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, right := range []string{"", "yes"} {
				cmd := exec.Command(c.command[0], append(c.command[1:], file)...)
				cmd.Env = append(os.Environ(), "RIGHT="+right)
				out, err := cmd.CombinedOutput()
				if told := strings.Contains(string(out), "must be refused: w01 holds the lock"); (err == nil) !=
					(right != "") || told != (right == "") {
					t.Errorf("RIGHT=%q: %v\n%s", right, err, out)
				}
			}
		})
	}
}

// TestLiveExportIsRed: a run does not record which request of a release was late. Export finds the one that makes the
// test red; if none exists, it writes nothing.
func TestLiveExportIsRed(t *testing.T) {
	const ms = time.Millisecond
	op := func(id, hold history.ID, worker int32, kind history.Kind, call, ret time.Duration) history.Op {
		return history.Op{ID: id, Hold: hold, Worker: worker, Kind: kind, Call: call * ms, Return: ret * ms,
			Outcome: history.OK, TTL: 400 * ms}
	}
	h := &history.History{Header: history.Header{Lock: "x", Claims: history.Claims{Owned: true}}, Ops: []history.Op{
		op(1, 1, 5, history.Acquire, 0, 1), op(2, 1, 5, history.Release, 350, 500),
		op(3, 3, 6, history.Acquire, 450, 451)}}
	v := &checker.Verdict{Checker: "exclusion", Status: checker.Fail, Cause: history.ForeignRelease, Evidence: h.Ops}
	s, err := Of(h, v, nil)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("testdata/plain.py")
	if err != nil {
		t.Fatal(err)
	}
	compares := strings.Replace(string(source), `os.environ.get("RIGHT")`, "True", 1)
	atomic := strings.Replace(compares, `self.ours()) and self.ask("DEL", self.key)`, `False) or self.ask("EVAL", `+
		`"return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0", 1, self.key, self.token)`,
		1)
	if compares == string(source) || atomic == compares {
		t.Fatal("testdata/plain.py releases otherwise")
	}
	file := filepath.Join(t.TempDir(), "test_lock.py")
	wants(t, s.Export(t.Context(), file, atomic), "the test is green with these calls: tried 4 messages")
	if _, err := os.Stat(file); err == nil {
		t.Error("a green test was handed out")
	}
	if err := s.Export(t.Context(), file, compares); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "late request 2") {
		t.Errorf("%v: not the second request:\n%s", err, text)
	}
	wants(t, s.Export(t.Context(), file, "import no_such_library"), "No module named 'no_such_library'")
	if now, err := os.ReadFile(file); err != nil || string(now) != string(text) {
		t.Errorf("what was there before is not there any more: %v", err)
	}
}
