// Command flakes (make flakes) runs all tests repeatedly on a busy machine, and reports which fail, how often, and with
// what message. Busy loops occupy the cores. Outputs of rounds with failures are kept in bin/flakes.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rounds := flag.Int("rounds", 10, "how often all tests are run")
	loops := flag.Int("loops", runtime.NumCPU(), "busy loops beside the tests")
	reruns := flag.Bool("reruns", false, "run what failed again, as make test does")
	flag.Parse()
	red, err := run(ctx, *rounds, *loops, *reruns)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(4)
	}
	if red > 0 {
		os.Exit(1)
	}
}

// run runs the rounds, prints a line for each and then the table. It returns the number of red rounds, which had a
// failure.
func run(ctx context.Context, rounds, loops int, reruns bool) (red int, err error) {
	end := busy(loops)
	defer end()
	flaky := failures{}
	done := 0
	for ; done < rounds && ctx.Err() == nil; done++ {
		begun := time.Now()
		green, out := round(ctx, reruns)
		if ctx.Err() != nil {
			break // the result of an interrupted round is not valid
		}
		before := flaky.total()
		if err := flaky.read("bin/test"); err != nil {
			return red, fmt.Errorf("round %d: %w; it printed:\n%s", done+1, err, out)
		}
		verdict := "green"
		if !green {
			red++
			verdict = "RED"
			if flaky.total() == before { // no test has failed: the reason is a failed build, a data race or a leak
				flaky.add("(no test)", lastLines(out))
			}
		}
		if flaky.total() > before {
			if err := keep("bin/test", fmt.Sprintf("bin/flakes/%d", done+1)); err != nil {
				return red, err
			}
		}
		fmt.Printf("round %d of %d: %s, %d failures, %.0f s\n", done+1, rounds, verdict, flaky.total()-before,
			time.Since(begun).Seconds())
	}
	fmt.Printf("%d rounds beside %d busy loops, %d red\n", done, loops, red)
	return red, flaky.write(os.Stdout)
}

// busy keeps cores busy until end is called.
func busy(loops int) (end func()) {
	var over atomic.Bool
	var all sync.WaitGroup
	for range loops {
		all.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() {
		over.Store(true)
		all.Wait()
	}
}

func round(ctx context.Context, reruns bool) (green bool, out []byte) {
	args := []string{".ci/test"}
	if !reruns {
		args = append(args, "strict")
	}
	test := exec.CommandContext(ctx, "sh", args...)
	test.Env = append(os.Environ(), "TESTFLAGS=-count=1 "+os.Getenv("TESTFLAGS"))
	test.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	test.Cancel = func() error { return syscall.Kill(-test.Process.Pid, syscall.SIGTERM) } // with its child processes
	out, err := test.CombinedOutput()
	return err == nil, out
}

// failures maps the names of failed tests to their messages.
type failures map[string][]string

// add stores a failure and prints it immediately, because an interrupted run prints no table.
func (f failures) add(test, message string) {
	f[test] = append(f[test], message)
	fmt.Printf("  %s: %s\n", test, message)
}

func (f failures) total() (n int) {
	for _, messages := range f {
		n += len(messages)
	}
	return n
}

// read reads a round's failures from the events that "go test -json" wrote to a folder.
func (f failures) read(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("no events in %s", folder))
	}
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			return err
		}
		err = f.events(in)
		if err := errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// said matches a line with the place of a failure: in the test, in the testing package after a data race, or in a
// script.
var said = regexp.MustCompile(`^\s+(\w+_test\.go:\d+: |testing\.go:\d+: |FAIL: testdata/)`)

func (f failures) events(in io.Reader) error {
	type event struct{ Action, Package, Test, Output string }
	var failed []event
	first := map[string]string{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		name := e.Package + "." + e.Test
		switch {
		case e.Test == "":
		case e.Action == "output" && said.MatchString(e.Output) && first[name] == "":
			first[name] = strings.TrimSpace(e.Output)
		case e.Action == "fail":
			failed = append(failed, e)
		}
	}
	for _, e := range failed {
		parent := func(other event) bool {
			return other.Package == e.Package && strings.HasPrefix(other.Test, e.Test+"/")
		}
		if name := e.Package + "." + e.Test; !slices.ContainsFunc(failed, parent) { // report its subtest instead
			f.add(name, cmp.Or(first[name], "(no message)"))
		}
	}
	return lines.Err()
}

func (f failures) write(out io.Writer) error {
	names := make([]string, 0, len(f))
	for name := range f {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(f[b]), len(f[a])), strings.Compare(a, b))
	})
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(names) > 0 {
		fmt.Fprintln(table, "failures\ttest\tfirst message")
	}
	for _, name := range names {
		fmt.Fprintf(table, "%d\t%s\t%s\n", len(f[name]), strings.TrimPrefix(name, "hammerlock/"), f[name][0])
	}
	return table.Flush()
}

// keep copies the output of a round, which the next round removes.
func keep(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}

func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}
