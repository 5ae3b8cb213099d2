package cli

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"

	"hammerlock/checker"
	"hammerlock/internal/settings"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// maxCount keeps a typing error from running for days.
const maxCount = 1000

// gateFlag declares --gate, which may be given several times.
func (o *options) gateFlag(usage string, set func(string) error) {
	v := o.Add(flag(session, "gate", usage), "expr", "", set)
	v.Complete, v.Many = settings.CompleteList(allMetrics.Names(), true), true
	v.Nodes, v.Object = o.readGates, gateSchema
}

func (o *options) gate(text string) error {
	g, err := compare.ParseGate(text)
	if err == nil && g.Relative {
		err = errors.New("a change needs two sides: use bench ab or bench compare")
	}
	o.gates = append(o.gates, g)
	return err
}

// runFlags declares how a command that carries out plans shows what it does.
func (o *options) runFlags() {
	o.Begin(outputSection)
	defer o.Begin(settings.Section{})
	o.liveFlag("metrics", "serve live metrics for Prometheus during the runs, at http://ADDR/metrics;\n"+
		"without a host: on loopback only, as in :9464", func(e Env, address string) (output, error) {
		m, err := serveMetrics(address)
		if err == nil {
			e.say(o, "metrics at http://%s/metrics", m.address())
		}
		return m, err
	})
	o.Text(flag(session, settings.FileFlag,
		"read settings from a YAML file, whose keys are the flags' names; flags and HAMMERLOCK_* variables\n"+
			"(as in HAMMERLOCK_WORKERS) are stronger; bench plan FILE shows what comes of it"), "file",
		&o.File).Here = true
	o.outputFlags()
	o.tuiFlag()
	settings.ValueOf(o.Toggle(flag(session, "list", "print what there is to choose from"), "", &o.list)).Here = true
}

func (o *options) tuiFlag() {
	o.tui = tuiAuto
	settings.One(&o.Set, flag(session, "tui", "the dashboard: auto = if stdout and stderr are a terminal; on; off"),
		&o.tui, settings.Words(tuiAuto, tuiOn, tuiOff))
}

// judgements are the verdicts of runs, as reports for CI systems show them.
func judgements(out string, runs []results.Run) (all []results.Judgement) {
	for i := range runs {
		j := runs[i].Judgement()
		j.Saved = filepath.Join(out, runs[i].Name)
		all = append(all, j)
	}
	return all
}

// gateJudgements shows gates as verdicts, with one judgement for each combination that they were checked on.
func gateJudgements(gates []compare.GateResult) (all []results.Judgement) {
	at := map[string]int{}
	for _, g := range gates {
		key := g.Topology + " " + g.Lock
		if _, known := at[key]; !known {
			at[key] = len(all)
			all = append(all, results.Judgement{Topology: cmp.Or(g.Topology, "comparison"),
				Lock: cmp.Or(g.Lock, "gates"), Faults: []string{}})
		}
		j := &all[at[key]]
		v := checker.Verdict{Checker: g.Gate, Status: checker.Inconclusive, Cause: string(g.Status), Summary: g.Gate +
			": " + g.Summary}
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

func (e Env) stepSummary(write func(io.Writer) error) error {
	if path := e.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
		return writeFile(path, os.O_APPEND, write)
	}
	return nil
}

// notify writes what CI systems read: a JUnit file beside the runs, a step's summary and annotations.
func (e Env) notify(out string, all []results.Judgement) error {
	err := writeFile(filepath.Join(out, "junit.xml"), os.O_TRUNC, func(w io.Writer) error {
		return results.WriteJUnit(w, all)
	})
	return errors.Join(err, e.announce(all))
}

// announce writes a step's summary and annotations.
func (e Env) announce(all []results.Judgement) (err error) {
	if len(all) == 0 {
		return nil
	}
	err = e.stepSummary(func(w io.Writer) error { return results.WriteSummary(w, all) })
	if e.Getenv("GITHUB_ACTIONS") == "true" {
		err = errors.Join(err, results.WriteAnnotations(e.Stderr, all))
	}
	return err
}

func writeFile(path string, mode int, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|mode, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
