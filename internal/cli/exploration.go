package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/explore"
	"hammerlock/internal/harness"
	"hammerlock/locks"
	"hammerlock/results"
)

type exploreOptions struct {
	*options
	e       Env
	locks   []locks.Spec
	o       explore.Options
	replay  string
	sweep   string
	picture string // SVG picture of the first counterexample, or of a sweep
}

// The method one explores a lock. If that finds a counterexample, it saves the counterexample as a run, and returns
// the directory of the run; otherwise dir is empty. It does not save a replay, nor a sweep, which saveSweep saves.
func (x *exploreOptions) one(stop context.Context, o explore.Orders) (r explore.Report, dir string, err error) {
	if o.Replay || o.Sweep != nil {
		if r, err = explore.InProcess(stop, o); r.Found != nil {
			x.picture, r.Found.Picture = r.Found.Picture, ""
		}
		return r, "", err
	}
	name := filepath.Base(folder(x.plan, "explore-"+o.Lock))
	folder, err := results.OpenFolder(x.plan.Out, name)
	if err != nil {
		return r, "", err
	}
	x.foundKilled(folder)
	o.File, o.Command = folder.Path(results.HistoryFile), x.command(o)
	run := harness.Explored(name, o.Lock, o.Command, &o.Options)
	if r, err = explore.InProcess(stop, o); err != nil || r.Found == nil {
		return r, "", errors.Join(err, folder.Discard())
	}
	if r.Found.Picture != "" { // empty if the child process died before it could draw
		err = os.WriteFile(folder.Path(results.SequenceFile), []byte(r.Found.Picture), 0o644)
	}
	x.picture, r.Found.Picture = cmp.Or(x.picture, r.Found.Picture), ""
	text, wrong := json.MarshalIndent(r, "", "  ")
	if err = errors.Join(err, wrong); err == nil {
		err = os.WriteFile(folder.Path(explore.ReportFile), append(text, '\n'), 0o644)
	}
	if err != nil {
		return r, "", errors.Join(err, folder.Leave(), folder.Left())
	}
	run.Label, run.Verdicts = "explored: one schedule in virtual time; its times say nothing about Redis",
		r.Found.Verdicts
	if dir, err = folder.Commit(run); err != nil {
		err = errors.Join(err, folder.Left())
	}
	return r, dir, err
}

// command returns the command line that repeats the exploration o.
func (x *exploreOptions) command(o explore.Orders) string {
	further := " --random=false"
	switch {
	case o.Options.Schedules > 0:
		further = fmt.Sprintf(" --schedules %d --seed %d", o.Options.Schedules, o.Options.Seed)
	case o.Options.Random:
		further = fmt.Sprintf(" --seed %d", o.Options.Seed)
	}
	return fmt.Sprintf("verify explore --lock %s --clients %d --together=%t --visits %d --sites %d --deviations %d "+
		"--lease %v --hold %v --pause %v",
		o.Lock, o.Options.Clients, o.Options.Together, o.Options.Visits, o.Options.Sites, o.Options.Deviations,
		o.Options.TTL, o.Options.Hold, o.Options.Pause) + further
}

// saveSweep saves a sweep as one run, whose report shows the picture. A sweep explores a lock while one number grows,
// such as the length of a pause. It returns the directory of the run.
func (x *exploreOptions) saveSweep(all []explore.Report, started time.Time) (string, error) {
	var b bytes.Buffer
	if err := explore.WriteEnvelopesSVG(&b, all); err != nil {
		return "", err
	}
	x.picture = b.String()
	var names []string
	var verdicts []checker.Verdict
	for _, r := range all {
		names = append(names, r.Lock)
		verdicts = append(verdicts, checker.Stated(exploreScenario.Name, r.Status, "", r.Lock+": "+r.Verdict()))
	}
	locks := strings.Join(names, ",")
	run := harness.Explored(filepath.Base(folder(x.plan, "explore-sweep")), locks,
		"verify explore --sweep "+quote(x.sweep)+" --lock "+locks, &all[0].Options)
	run.Started, run.Topology, run.Verdicts = started, "in memory", verdicts
	run.Label = "explored: one deviation while a number of it grows, in virtual time; nothing was measured"
	dir, err := results.OpenFolder(x.plan.Out, run.Name)
	if err != nil {
		return "", err
	}
	x.foundKilled(dir)
	if err := os.WriteFile(dir.Path(results.EnvelopeFile), b.Bytes(), 0o644); err != nil {
		return "", errors.Join(err, dir.Leave(), dir.Left())
	}
	return dir.Commit(run)
}

// explored makes a judgement from the report of an exploration. The trace of a counterexample becomes the story of
// the violation.
func explored(r explore.Report, saved, command string) results.Judgement {
	j := results.Judgement{
		Topology: "memory", Lock: r.Lock, Scenario: exploreScenario.Name, Faults: []string{}, Command: command,
		Saved:    saved,
		Verdicts: []checker.Verdict{checker.Stated(exploreScenario.Name, r.Status, "", r.Verdict())},
	}
	if r.Found == nil {
		return j
	}
	j.Verdicts = slices.Clone(r.Found.Verdicts)
	at := slices.IndexFunc(j.Verdicts, func(v checker.Verdict) bool { return v.Checker == r.Found.Checker })
	j.Verdicts[at].Story = r.Found.Trace
	j.Faults = nil
	for _, c := range r.Found.Schedule {
		j.Faults = append(j.Faults, strings.ReplaceAll(c.What, ":", ""))
	}
	return j
}

// foundKilled tells the user about the histories of killed runs that OpenFolder found.
func (x *exploreOptions) foundKilled(f *results.Folder) {
	for _, dir := range f.Killed {
		x.e.foundKilled(dir)
	}
}
