package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"hammerlock/checker"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// maxCount keeps a typing error from running for days.
const maxCount = 1000

// ciFlags declares the flags of runs that something is made of afterwards.
func (o *options) ciFlags(f *pflag.FlagSet) {
	o.integer(f, "count", &o.count, "how often to run everything, each time with the next seed")
	o.gateFlag(f, "what must hold at the end, or the exit code is 5; may be given several times,\nas in response.p99<50ms, throughput>1000/s, fairness.jain>0.8, cost.round_trips<=2.1", func(text string) error {
		g, err := compare.ParseGate(text)
		if err == nil && g.Relative {
			err = errors.New("a change needs something to change from: bench ab and bench compare have that")
		}
		o.gates = append(o.gates, g)
		return err
	})
	o.text(f, "benchfmt", "file", func(s string) { o.benchfmt = s }, "", "write the runs in the format of Go benchmarks, for benchstat")
	o.metricsFlag(f)
}

func (o *options) metricsFlag(f *pflag.FlagSet) {
	o.add(f, "metrics", "addr", "", "serve what goes on to Prometheus during the runs, at http://ADDR/metrics;\nwithout a host: on loopback only, as in :9464", func(text string) (err error) {
		o.metrics, err = listenAddress(text)
		return err
	})
}

// listenAddress reads host:port. Without a host it is this machine's loopback: nobody else is to see a run unless
// that was asked for.
func listenAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", errors.New("an address is HOST:PORT or :PORT, as in :9464")
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", fmt.Errorf("port %q: from 0 to 65535", port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// openMetrics serves what was asked for; nil if nothing was. An address that cannot be had is a mistake, before
// anything is started.
func (o *options) openMetrics(e Env) (*metricsServer, error) {
	if o.metrics == "" || len(o.mistakes) > 0 {
		return nil, nil
	}
	m, err := serveMetrics(o.metrics)
	if err != nil {
		return nil, fmt.Errorf("--metrics %s: %w", o.metrics, err)
	}
	if !o.quiet {
		_, _ = fmt.Fprintf(e.Stderr, "metrics at http://%s/metrics\n", m.address())
	}
	return m, nil
}

// judgements are what CI systems are told: of every run what was judged, and of gates how they came out.
func judgements(out string, runs []results.Run, gates []compare.GateResult) (all []results.Judgement) {
	for i := range runs {
		j := runs[i].Judgement()
		j.Saved = filepath.Join(out, runs[i].Name)
		all = append(all, j)
	}
	return append(all, gateJudgements(gates)...)
}

// gateJudgements makes verdicts of gates, one judgement for everything that they were checked of.
func gateJudgements(gates []compare.GateResult) (all []results.Judgement) {
	at := map[string]int{}
	for _, g := range gates {
		key := g.Topology + " " + g.Lock
		if _, known := at[key]; !known {
			at[key] = len(all)
			all = append(all, results.Judgement{Topology: orWord(g.Topology, "comparison"), Lock: orWord(g.Lock, "gates"), Faults: []string{}})
		}
		j := &all[at[key]]
		v := checker.Verdict{Checker: g.Gate, Status: checker.Inconclusive, Cause: string(g.Status), Summary: g.Gate + ": " + g.Summary}
		switch g.Status {
		case compare.GatePass:
			v.Status, v.Cause = checker.Pass, ""
		case compare.GateFail:
			v.Status, v.Cause = checker.Fail, "gate"
		}
		j.Verdicts = append(j.Verdicts, v)
	}
	return all
}

func orWord(text, word string) string {
	if text == "" {
		return word
	}
	return text
}

// writeBenchmarks writes the file that --benchfmt asks for.
func (o *options) writeBenchmarks(runs []results.Run) error {
	if o.benchfmt == "" {
		return nil
	}
	return writeFile(o.benchfmt, os.O_TRUNC, func(w io.Writer) error { return results.WriteBenchmarks(w, runs) })
}

// summarize puts a table into the summary of a CI step, if there is one.
func (e Env) summarize(title string, write func(io.Writer) error) error {
	path := e.getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	return writeFile(path, os.O_APPEND, func(w io.Writer) error { return results.WriteSummaryText(w, title, text.String()) })
}
