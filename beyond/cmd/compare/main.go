// Command compare measures common choices of locks in turn on this machine, and writes docs/COMPARE.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/beyond"
	"hammerlock/checker"
	"hammerlock/internal/cli"
	"hammerlock/internal/crew"
	"hammerlock/results"
)

// choice is a lock on a topology.
type choice struct{ topology, lock string }

var choices = []choice{
	{"single", "lease"}, {"sentinel", "lease"}, {"redlock", "redlock"},
	{"postgres", "pg-lease"}, {"postgres", "pg-advisory"}, {"mysql", "my-lease"}, {"mysql", "my-get-lock"},
	{"etcd", "etcd-mutex"}, {"etcd3", "etcd-mutex"}, {"zookeeper", "zookeeper"}, {"zookeeper3", "zookeeper"},
}

// shapes lists the loads, each with its numbers of workers and of keys.
var shapes = [][2]int{{1, 1}, {16, 16}, {64, 64}, {32, 1}, {256, 1}}

// hot is the index of the first shape with a single key.
const hot = 3

// asked lists the scenarios that show most of the differences between locks in a short time.
const asked = "contention,late-holder,crash,late-process,process-crash,cut-off,renewal-cut"

func main() {
	if len(os.Args) == 2 && os.Args[1] == crew.Command {
		os.Exit(cli.Verify(context.Background(), environment(os.Args[1:], os.Stdout, os.Stderr)))
	}
	out := flag.String("o", "docs/COMPARE.md", "the document")
	each := flag.Duration("duration", time.Second, "of each load")
	kills := flag.Int("kills", 10, "how often a leader is killed")
	flag.Parse()
	if err := compare(context.Background(), *out, *each, *kills); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(4)
	}
}

func environment(args []string, stdout, stderr io.Writer) cli.Env {
	return cli.Env{Args: args, Stdin: os.Stdin, Stdout: stdout, Stderr: stderr, Getenv: os.Getenv,
		More: beyond.Catalogue}
}

func compare(ctx context.Context, out string, each time.Duration, kills int) error {
	dir, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var rows []row
	for _, c := range choices {
		fmt.Fprintln(os.Stderr, c.topology, c.lock)
		r := row{choice: c}
		if r.missing = installed(ctx, c); r.missing == "" {
			r.loads = loads(ctx, c, each, dir)
			if r.dead, r.again, err = afterKills(ctx, c, kills); err != nil {
				fmt.Fprintln(os.Stderr, c.topology, c.lock, err)
			}
			r.scenarios = scenariosOf(ctx, c, dir)
		}
		rows = append(rows, r)
	}
	return os.WriteFile(out, []byte(document(rows, each, kills)), 0o644)
}

// command runs a command of the suite and returns its runs, which contain the results.
func command(ctx context.Context, run func(context.Context, cli.Env) int, args ...string) []results.Run {
	var stdout, stderr bytes.Buffer
	_ = run(ctx, environment(append(args, "--json", "--quiet"), &stdout, &stderr))
	var d cli.Document
	if json.Unmarshal(stdout.Bytes(), &d) != nil || len(d.Runs) == 0 {
		fmt.Fprintf(os.Stderr, "%s: %s\n", strings.Join(args, " "), strings.TrimSpace(stderr.String()))
	}
	return d.Runs
}

// loads makes a run of the lock for each shape. An element is nil if its run has no results.
func loads(ctx context.Context, c choice, each time.Duration, dir string) (all []*results.Run) {
	for _, s := range shapes {
		runs := command(ctx, cli.Bench, "--topology", c.topology, "--lock", c.lock, "--workers", strconv.Itoa(s[0]),
			"--pages", strconv.Itoa(s[1]),
			"--hold", "0s", "--warmup", "500ms", "--duration", each.String(), "--patience", "20s", "--out", dir)
		if len(runs) == 0 {
			all = append(all, nil)
			continue
		}
		all = append(all, &runs[0])
	}
	return all
}

// scenariosOf runs the scenarios and lists their names with the lock's results: bold = failed, a question
// mark = undecided.
func scenariosOf(ctx context.Context, c choice, dir string) (list []string) {
	args := []string{"--topology", c.topology, "--lock", c.lock, "--scenario", asked, "--budget", "60s", "--out", dir}
	for _, r := range command(ctx, cli.Verify, args...) {
		status, _ := r.Safety()
		switch status {
		case checker.Fail:
			list = append(list, "**"+r.Scenario+"**")
		case checker.Pass:
			list = append(list, r.Scenario)
		default:
			list = append(list, r.Scenario+"?")
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
