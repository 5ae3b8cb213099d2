package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hammerlock/internal/settings"
	"hammerlock/results"
)

// Outputs that several commands have. They do not include a run's record, history and certificate, which the harness
// writes.
var (
	jsonOutput = output{name: "json", what: "print one JSON document instead of text",
		set: func(o *options, f settings.Flag) { o.Toggle(f, "", &o.json) }}
	quietOutput = output{name: "quiet", what: "no progress lines",
		set: func(o *options, f settings.Flag) { o.Toggle(f, "q", &o.quiet) }}
	dashboardOutput = output{name: "tui", what: "the dashboard: auto = if stdout and stderr are a terminal; on; off",
		set: func(o *options, f settings.Flag) {
			o.tui = tuiAuto
			settings.One(&o.Set, f, &o.tui, settings.Words(tuiAuto, tuiOn, tuiOff))
		}}
	metricsOutput = output{name: "metrics", open: openMetrics,
		what: "serve live metrics for Prometheus during the runs, at http://ADDR/metrics;\n" +
			"without a host: on loopback only, as in :9464"}
	lingerOutput = output{name: "metrics-linger",
		what: "at the end --metrics stays up until it was read once more, for so long at most",
		set:  func(o *options, f settings.Flag) { o.Duration(f, &o.linger) }}
	otlpOutput = output{name: "otlp",
		what: "send the numbers of --metrics to an OpenTelemetry collector, as http://127.0.0.1:4318,\n" +
			"now and then and at the end; OTEL_* variables say more",
		set: func(o *options, f settings.Flag) { o.hasPlace(f, "url", collectorAddress, openOTLP) }}
	planOutput   = output{name: "plan", what: "the settings, beside each run", saved: (*options).savePlan}
	reportOutput = output{name: "report", what: "a page of each run, and one of all",
		saved: func(_ *options, r *reports, dir string) error { return r.save(dir) }}
	webOutput = output{name: "web", open: openPage,
		what: "show the runs live on a page that is the report at the end; " +
			"its address has a secret, and is printed;\n" +
			"without a host: on loopback only, as in :8080, or :0 for any free port"}
)

// always has the outputs of every command. They have no flags.
var always = []output{
	{name: "document", what: "what --json prints, beside the runs", end: func(_ Env, r *result) error {
		if r.file == "" {
			return nil
		}
		return writeFile(filepath.Join(r.dir, r.file), os.O_TRUNC, encode(r.document))
	}},
	{name: "junit", what: "the verdicts, beside the runs", at: func(_ Env, dir string) string {
		path := filepath.Join(dir, junitFile)
		if _, err := os.Stat(path); err != nil {
			return "" // end will create the file
		}
		return path
	}, end: func(_ Env, r *result) error {
		if r.dir == "" {
			return nil
		}
		return writeFile(filepath.Join(r.dir, junitFile), os.O_TRUNC, func(w io.Writer) error {
			return results.WriteJUnit(w, r.judged)
		})
	}},
	{name: "github", what: "the summary of a step, and annotations", at: func(e Env, _ string) string {
		return e.Getenv(stepSummary)
	}, end: func(e Env, r *result) error {
		if len(r.judged) == 0 {
			return nil
		}
		err := e.stepSummary(func(w io.Writer) error { return results.WriteSummary(w, r.judged) })
		if e.Getenv("GITHUB_ACTIONS") == "true" {
			err = errors.Join(err, results.WriteAnnotations(e.Stderr, r.judged))
		}
		return err
	}},
}

// junitFile is the name of the file with the verdicts. stepSummary is the environment variable with the path of the
// file that GitHub shows as the summary of a CI step.
const (
	junitFile   = "junit.xml"
	stepSummary = "GITHUB_STEP_SUMMARY"
)

// planOutputs are the outputs of bench and verify.
var planOutputs = []output{
	planOutput, reportOutput, webOutput,
	{name: "benchfmt", what: "write the runs in the format of Go benchmarks, for benchstat",
		write: func(w io.Writer, d *Document) error { return results.WriteBenchmarks(w, d.Runs) }},
	metricsOutput, lingerOutput, otlpOutput, jsonOutput, quietOutput, dashboardOutput,
}

// The method has adds outputs to the command, and declares their flags.
func (o *options) has(all ...output) {
	for _, x := range all {
		f := flag(session, x.name, x.what)
		switch {
		case x.set != nil:
			x.set(o, f)
		case x.open != nil:
			o.hasPlace(f, "addr", listenAddress, x.open)
		case x.write != nil:
			o.hasFile(f, x.write)
		default:
			o.runFiles = append(o.runFiles, x)
		}
	}
}

// writable reports files that cannot be written, before any run starts. It checks outputs without a flag only.
func (o *options) writable(e Env, dir string) {
	for _, x := range slices.Concat(always, o.runFiles) {
		if x.at == nil || x.at(e, dir) == "" {
			continue
		}
		if err := settings.Writable(x.at(e, dir)); err != nil {
			o.Mistake("", "%s (%s): %v", x.at(e, dir), x.what, err)
		}
	}
}

// hasPlace declares the flag of an output at an address. The function parse checks the address.
func (o *options) hasPlace(f settings.Flag, kind string, parse func(string) (string, error),
	open func(context.Context, Env, *options, string) (show, error)) {
	at := ""
	o.Add(f, kind, "", func(text string) (err error) {
		at, err = parse(text)
		return err
	})
	o.live = append(o.live, func(ctx context.Context, e Env) shows {
		if at == "" {
			return nil
		}
		if other := o.places[at]; other != "" {
			o.Mistake(f.Name, "%s: --%s has this address, too", at, other)
			return nil
		}
		if !strings.HasSuffix(at, ":0") {
			o.places[at] = f.Name
		}
		x, err := open(ctx, e, o, at)
		if err != nil {
			o.Mistake(f.Name, "%s: %v", at, err)
			return nil
		}
		return shows{x}
	})
}

// hasFile declares the flag of an output that is a file. A file that cannot be written is reported before any run
// starts.
func (o *options) hasFile(f settings.Flag, write func(io.Writer, *Document) error) {
	path := ""
	o.Written(f, &path)
	o.files = append(o.files, func(d *Document) error {
		if path == "" {
			return nil
		}
		var text bytes.Buffer // the whole text first, so that an error leaves an existing file unchanged
		if err := write(&text, d); err != nil || text.Len() == 0 {
			return err
		}
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			return fmt.Errorf("--%s: %w", f.Name, err)
		}
		return nil
	})
}

func (o *options) writeFiles(document any) (err error) {
	d, _ := document.(Document) // other types, as of an exploration, become an empty document
	for _, write := range o.files {
		err = errors.Join(err, write(&d))
	}
	return err
}

// openShows opens the outputs with addresses. It opens none if the command line has mistakes. An address that cannot
// be used is reported as a mistake in its flag.
func (e Env) openShows(ctx context.Context, o *options) (all shows) {
	if len(o.Mistakes) > 0 {
		return nil
	}
	o.places = map[string]string{}
	for _, open := range o.live {
		all = append(all, open(ctx, e)...)
	}
	return all
}

// listenAddress checks HOST:PORT. A missing host becomes the loopback address, so that other machines can only
// connect if the user wants that.
func listenAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", errors.New("an address is HOST:PORT or :PORT, as in :9464")
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", fmt.Errorf("port %q: from 0 to 65535", port)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// The method planned declares the flags that commands which run plans have in common: the plan's file, and the
// outputs.
func (o *options) planned(all ...output) {
	o.Begin(outputSection)
	defer o.Begin(settings.Section{})
	o.Text(flag(session, settings.FileFlag,
		"read settings from a YAML file, whose keys are the flags' names; flags and HAMMERLOCK_* variables\n"+
			"(as in HAMMERLOCK_WORKERS) are stronger; bench plan FILE shows what comes of it"), "file",
		&o.File).CommandLineOnly = true
	o.has(all...)
	list := o.Toggle(flag(session, "list", "print what there is to choose from"), "", &o.list)
	settings.ValueOf(list).CommandLineOnly = true
}

// stepSummary appends to the summary of a CI step, if the environment names a file for it.
func (e Env) stepSummary(write func(io.Writer) error) error {
	if path := e.Getenv(stepSummary); path != "" {
		return writeFile(path, os.O_APPEND, write)
	}
	return nil
}

// answer writes the result to stdout, and errors of outputs to stderr. It returns the exit code.
func (e Env) answer(o *options, r result) int {
	write := r.text
	if o.json {
		write = encode(r.document)
	}
	err := errors.Join(r.err, o.writeFiles(r.document))
	for _, x := range always {
		err = errors.Join(err, x.end(e, &r))
	}
	return e.end(r.exit, errors.Join(err, write(e.Stdout)))
}
