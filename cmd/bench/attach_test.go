package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// others are servers that somebody else runs.
func others(t *testing.T, kind string) *topologies.Topology {
	t.Helper()
	return testbed.Up(t, kind, topologies.Options{})
}

// appPassword is that of the user who may touch nothing outside the prefix.
const appPassword = "s3cret-of-app"

// admit makes that user; more are further rules.
func admit(t *testing.T, n *topologies.Node, more ...any) {
	t.Helper()
	testbed.Command(t, n,
		append([]any{"ACL", "SETUSER", "app", "on", ">" + appPassword, "~hammerlock:*", "&hammerlock:*", "+@all",
			"-@admin", "-@dangerous", "+info"}, more...)...)
}

// monitor collects what a server is sent, until the function that it returns is called.
func monitor(t *testing.T, n *topologies.Node, password string) (stop func() []string) {
	t.Helper()
	conn, err := net.Dial("tcp", n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\nMONITOR\r\n", password); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for range 2 {
		if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "+OK") {
			t.Fatalf("MONITOR: %q, %v", line, err)
		}
	}
	var lines []string
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			line, err := r.ReadString('\n')
			if err != nil || strings.Contains(line, `"end of monitor"`) {
				return
			}
			lines = append(lines, line)
		}
	})
	return func() []string {
		testbed.Command(t, n, "ECHO", "end of monitor")
		wg.Wait()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		return lines
	}
}

// strange tells what in a line of MONITOR is neither harmless nor about keys under the prefix.
func strange(line string) string {
	_, rest, _ := strings.Cut(line, "] ")
	var args []string
	for rest != "" && rest[0] == '"' {
		text, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return line
		}
		word, _ := strconv.Unquote(text)
		args, rest = append(args, word), strings.TrimSpace(rest[len(text):])
	}
	if len(args) == 0 {
		return line
	}
	name := strings.ToUpper(args[0])
	if slices.Contains(topologies.Harmless, name) ||
		len(args) > 1 && slices.Contains(topologies.Harmless, name+" "+strings.ToUpper(args[1])) {
		return ""
	}
	keys := args[1:min(2, len(args))]
	if name == "EVAL" || name == "EVALSHA" {
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return line
		}
		keys = args[3 : 3+n]
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "hammerlock:") {
			return line
		}
	}
	return ""
}

// managed returns the commands for managing a server that the suite sent to it. It leaves out harmless commands, and
// those of these tests. MONITOR does not show such commands. Commands that the server refused are included.
func managed(t *testing.T, n *topologies.Node) (sent []string) {
	t.Helper()
	stats := fmt.Sprint(testbed.Command(t, n, "INFO", "commandstats"))
	ours := []string{"ACL SETUSER", "DEBUG", "MONITOR"}
	for _, name := range testbed.Command(t, n, "COMMAND", "LIST", "FILTERBY", "ACLCAT", "admin").([]any) {
		command := strings.ToUpper(strings.ReplaceAll(name.(string), "|", " "))
		if strings.Contains(stats, fmt.Sprintf("cmdstat_%s:", name)) &&
			!slices.Contains(slices.Concat(ours, topologies.Harmless), command) {
			sent = append(sent, command)
		}
	}
	return sent
}

// program is this test's own program as a file of a command's name, which worker processes start again.
func program(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Link(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// reported is what a command wrote, and how it ended.
type reported struct {
	out  string
	code int
}

// The function attached runs a command of the suite in a directory. While worker processes run, it checks that no
// process on the machine has the secret in its arguments.
func attached(t *testing.T, dir, secret, name string, args ...string) reported {
	t.Helper()
	attaching.Lock()
	defer attaching.Unlock()
	cmd := exec.CommandContext(t.Context(), program(t, name), args...)
	cmd.Dir = dir
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	var all bytes.Buffer
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "up in") { // worker processes live now
			shown(t, secret)
		}
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		return reported{all.String(), exit.ExitCode()}
	}
	return reported{all.String(), 0}
}

// attaching is locked while a program runs that gets a password as an argument. For a moment its arguments have the
// password, and the function shown looks at all processes.
var attaching sync.Mutex

// shown looks for a secret in the arguments of all processes.
func shown(t *testing.T, secret string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Logf("no processes to look at: %v", err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s shows the password: %q", file, text)
		}
	}
}

// kept looks for a secret in all files of a directory.
func kept(t *testing.T, dir, secret string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files: %v", files, err)
	}
}

// foreignKeys is how many keys of others there are.
const foreignKeys = 20_000

// digest sums up all keys and their values. It takes its time, and can be asked for again.
func digest(t *testing.T, n *topologies.Node) (sum string) {
	t.Helper()
	live.Wait(t, "the digest of all keys", func() (ok bool) {
		var err error
		sum, err = n.Do(t.Context(), "DEBUG", "DIGEST").Text()
		return err == nil
	})
	return sum
}

// TestAttachedTouchesNothingElse runs the suite as a user who may only use keys with the prefix, beside many other
// keys. It checks all commands that the server gets, and that the other keys are unchanged. No saved file has the
// password.
func TestAttachedTouchesNothingElse(t *testing.T) {
	t.Parallel()
	top := others(t, "single")
	n := top.Nodes[0]
	admit(t, n)
	for i := range foreignKeys / 5000 { // a slow machine must be done with one before the client gives up
		testbed.Command(t, n, "DEBUG", "POPULATE", 5000, fmt.Sprint("theirs-", i))
	}
	before := digest(t, n)
	stop := monitor(t, n, top.Sites[0].Password())
	addr := "redis://app:" + appPassword + "@" + n.Addr()
	dir := t.TempDir()
	runs := [][]string{
		{"bench", "--addr", addr, "--duration", "300ms", "--warmup", "0s", "--workers", "4", "--counter", "topology"},
		{"verify", "--addr=" + addr, "--duration", "1500ms", "--workers", "4", "--processes", "2", "--lease", "500ms",
			"--fault", "drop-reply:10@300ms,partition:holder/n1@600ms,heal@900ms"},
	}
	if !testing.Short() {
		runs = append(runs, []string{"bench", "ab", "addr=" + addr, "retry=5ms,addr=" + addr, "--duration", "200ms",
			"--warmup", "0s",
			"--show", "throughput", "--pairs", "6", "--workers", "4"}, []string{"bench", "ab", "bench=" +
			program(t, "bench"), "retry=5ms",
			"--addr", addr, "--duration", "200ms", "--warmup", "0s", "--show", "throughput", "--pairs", "6",
			"--workers", "4"},
			[]string{"bench", "search", "--addr", addr, "--slo", "response.p50<10s", "--duration", "100ms"})
	}
	for _, run := range runs {
		r := attached(t, dir, appPassword, run[0], run[1:]...)
		if r.code != 0 && r.code != 3 {
			t.Errorf("%s: exit code %d\n%s", run[0], r.code, r.out)
		}
		if strings.Contains(r.out, appPassword) {
			t.Errorf("%s shows the password:\n%s", run[0], r.out)
		}
	}
	lines := stop()
	if len(lines) < 100 {
		t.Errorf("MONITOR showed %d commands", len(lines))
	}
	for _, line := range lines {
		if s := strange(line); s != "" {
			t.Fatalf("sent: %s", s)
		}
	}
	if sent := managed(t, n); len(sent) > 0 {
		t.Errorf("sent: %v", sent)
	}
	kept(t, dir, appPassword)
	if digest(t, n) != before {
		t.Errorf("the keys of others have changed, or some are left: %v", testbed.Command(t, n, "KEYS", "hammerlock*"))
	}
}

// TestAttachedRunsThatWereKilledAreCleared kills a run. The next run reports that it has removed the keys of the
// killed run. It does not remove the keys of a run that is still in progress.
func TestAttachedRunsThatWereKilledAreCleared(t *testing.T) {
	for _, kind := range []string{"single", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			if testing.Short() && kind != "single" {
				t.Skip("as a single server, on more of them")
			}
			killedRuns(t, kind)
		})
	}
}

func killedRuns(t *testing.T, kind string) {
	top := others(t, kind)
	dir, addr := t.TempDir(), everyone(t, top)[0]
	keys := func(pattern string) (n int) {
		for _, node := range top.Nodes {
			if node.Role == topologies.Primary {
				n += len(testbed.Command(t, node, "KEYS", pattern).([]any))
			}
		}
		return n
	}
	args := func(duration string) []string {
		return []string{"--topology", kind, "--addr", addr, "--duration", duration, "--warmup", "0s", "--workers", "2",
			"--lock", "fenced",
			"--counter", "topology"}
	}
	start := func() *exec.Cmd {
		cmd := exec.Command(program(t, "bench"), args("10m")...)
		cmd.Dir = dir
		before := keys("hammerlock:*:views:*")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		live.Wait(t, "page views of the run", func() bool { return keys("hammerlock:*:views:*") > before })
		return cmd
	}
	doomed, living := start(), start()
	if err := doomed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = doomed.Wait()
	r := attached(t, dir, appPassword, "bench", args("200ms")...)
	want := fmt.Sprintf("(process %d) ended without removing them", doomed.Process.Pid)
	if r.code != 0 && r.code != 3 || !strings.Contains(r.out, want) {
		t.Errorf("exit code %d, want %q in:\n%s", r.code, want, r.out)
	}
	if got := keys("hammerlock:*:views:*"); got != 1 {
		t.Errorf("%d runs have page views, want the one that goes on", got)
	}
	if err := living.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = living.Wait()
	if left := keys("*"); left != 0 {
		t.Errorf("%d keys are left after an interrupt", left)
	}
}
