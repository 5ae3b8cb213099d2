// Command record judges the releases of the lock libraries in record/libraries.json, and writes docs/record. It
// saves the verdicts on each release in a file in record/runs. A release that has a file is judged again only if the
// flag -library names it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/cli"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/tools/kept"
)

const (
	listFile    = "record/libraries.json"
	reportsFile = "record/reports.json"
	runsDir     = "record/runs"
	built       = "bin/record" // directory of the Go drivers that record builds
	seed        = 1
	limit       = 10 * time.Minute // for one release on one topology
)

// library is an entry of record/libraries.json. Driver is a folder of Go files, a file for drivers/node/driver.js,
// or a command.
type library struct {
	Name       string    `json:"name"`
	Language   string    `json:"language"`
	Package    string    `json:"package"`
	Driver     string    `json:"driver"`
	Topologies []string  `json:"topologies"`
	Promises   []promise `json:"promises"`
	Releases   []release `json:"releases"` // oldest first
}

// promise is a quotation from the library's documentation that makes a claim.
type promise struct {
	Claim string `json:"claim"`
	Quote string `json:"quote"`
	From  string `json:"from"` // an address, or package@version and a file
}

type release struct {
	Version string    `json:"version"`
	Driver  string    `json:"driver,omitempty"` // empty = that of the library
	On      []string  `json:"on,omitempty"`     // topologies; empty = those of the library
	With    []string  `json:"with,omitempty"`   // further Go modules, as module@version
	Without []string  `json:"without,omitempty"`
	Read    []reading `json:"read,omitempty"` // causes of failures, found by reading code
}

// reading is the cause of failures, which a person has found by reading the code of the library or the driver.
type reading struct {
	Scenarios []string `json:"scenarios"`
	// Verdict is "confirmed", "known" (reported before), "documented", or "ours" (a bug of the driver or judge, now
	// fixed).
	Verdict string `json:"verdict"`
	What    string `json:"what"`
	Code    string `json:"code"`
}

func main() {
	only := flag.String("library", "", "this library alone, or LIBRARY@VERSION; it is judged again")
	deps := flag.Bool("deps", false, "install what drivers need, and judge nothing")
	docs := flag.Bool("docs", false, "write the documents, and judge nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := record(ctx, *only, *deps, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context, only string, deps, docs bool) error {
	all, err := read[[]library](listFile)
	if err != nil {
		return err
	}
	var chosen []job
	for i := range all {
		for k := range all[i].Releases {
			if j := (job{&all[i], &all[i].Releases[k]}); only == "" || only == j.Name || only == j.name() {
				chosen = append(chosen, j)
			}
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("-library %s: %s has no such library or release", only, listFile)
	}
	var failed []error // a release that fails does not stop the others
	switch {
	case docs:
	case deps:
		for _, j := range chosen {
			failed = append(failed, j.build(ctx))
		}
	default:
		for _, j := range chosen {
			if _, err := os.Stat(j.file()); err == nil && only == "" || ctx.Err() != nil {
				continue
			}
			failed = append(failed, j.judge(ctx))
		}
	}
	return errors.Join(append(failed, writeDocs(all))...)
}

func read[T any](file string) (v T, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return v, err
}

type job struct {
	*library
	*release
}

func (j job) name() string { return j.Name + "@" + j.Version }
func (j job) file() string { return filepath.Join(runsDir, j.name()+".json") }

func (j job) driver() string {
	if j.release.Driver != "" {
		return j.release.Driver
	}
	return j.library.Driver
}

func (j job) topologies() []string {
	if len(j.On) > 0 {
		return j.On
	}
	return j.Topologies
}

func (j job) command() string {
	switch j.Language {
	case "Go":
		return filepath.Join(built, j.name())
	case "node":
		return "node drivers/node/driver.js " + j.driver() + " " + nodeFolder(j.Name, j.Version)
	}
	return j.driver()
}

func (j job) judge(ctx context.Context) error {
	if err := j.build(ctx); err != nil {
		return err
	}
	made, err := kept.Now(ctx)
	if err != nil {
		return err
	}
	r := results.Released{Schema: 1, Library: j.Name, Version: j.Version, Day: made.Day, Commit: made.Commit,
		Cores: made.Cores, Seed: seed}
	for _, topology := range j.topologies() {
		on, err := j.on(ctx, topology)
		if err != nil {
			return fmt.Errorf("%s on %s: %w", j.name(), topology, err)
		}
		fmt.Fprintf(os.Stderr, "%s on %s: %s\n", j.name(), topology, on.Reason)
		r.On = append(r.On, on)
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	here, err := os.Getwd() // stack traces of drivers contain this directory
	if err != nil {
		return err
	}
	return os.WriteFile(j.file(), append(bytes.ReplaceAll(text, []byte(here+"/"), nil), '\n'), 0o644)
}

// on judges a release on one topology, with the defaults of verify. It deletes the runs, because the saved command
// can repeat them.
func (j job) on(ctx context.Context, topology string) (on results.ReleasedOn, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := filepath.Join(built, "runs")
	defer func() { _ = os.RemoveAll(out) }()
	args := []string{"--topology", topology, "--lock", "exec:" + j.command(), "--seed", fmt.Sprint(seed)}
	var d cli.Document
	began := time.Now()
	if _, err := kept.Ask(ctx, "bin/verify", append(args, "--out", out), &d); err != nil {
		return on, err
	}
	if ctx.Err() != nil {
		return on, ctx.Err()
	}
	var claims history.Claims
	for i := range d.Runs {
		if got := d.Runs[i].Driver; got != nil &&
			strings.TrimPrefix(got.Version, "v") != strings.TrimPrefix(j.Version, "v") {
			return on, fmt.Errorf("the driver says that it is %s", got.Version)
		}
		if h, err := history.Open(filepath.Join(out, d.Runs[i].Name, results.HistoryFile)); err == nil {
			claims = h.Claims
		}
	}
	on = results.JudgedOn(claims, began, d.Runs)
	on.Topology, on.Command = topology, fmt.Sprintf("bin/verify --topology %s --lock 'exec:%s' --seed %d", topology,
		j.command(), seed)
	on.Code, on.Reason, on.Took, on.NotRun = d.Exit.Code, tidied(d.Exit.Reason), int64(time.Since(began)), len(d.NotRun)
	on.Missing = max(len(scenarios.All)-len(on.Scenarios)-on.NotRun, 0)
	return on, nil
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// tidied removes colours from a text, and cuts it after 500 letters.
func tidied(reason string) string {
	reason = strings.Join(strings.Fields(escapes.ReplaceAllString(reason, "")), " ")
	const most = 500
	if letters := []rune(reason); len(letters) > most {
		reason = string(letters[:most]) + " ..."
	}
	return reason
}
