package report

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/human"
	"hammerlock/results"
)

type bannerView struct {
	State state
	Text  string
	Notes []string
}

type tileView struct{ Name, Value, More string }

// storyView is the evidence for a failed property, or for a cause of failures. Runs with the same cause share one.
type storyView struct {
	Title    string
	Means    string
	Lines    []string
	Remedy   string
	In       []cellView
	Command  string
	Ops      tableView
	From, To string // part of the strip to show, in ns; empty = none
}

type runView struct {
	ID                            string
	Title, Load, Command          string
	Started                       string
	Banner                        bannerView
	Generator                     state
	Tiles                         []tileView
	Verdicts, Latency, Faults     tableView
	Phases                        tableView
	Fairness, Health, Config, Env tableView
	Cost, Overlaps, Others        tableView
	Outages                       tableView
	Stories                       []storyView
	FairnessText, Certified       string
	Series, Strip                 bool
	StripText                     string
	Explored                      bool   // the run is an exploration, which measures nothing
	Picture, Shows                string // a picture and its title; empty = none
}

func banner(runs []saved) bannerView {
	b := bannerView{}
	all := checker.Pass
	counts, saturated := map[checker.Status]int{}, 0
	for i := range runs {
		s, text := runs[i].Safety()
		counts[s]++
		if alike(runs[i].Run) && runs[i].Generator.State.Unfit() {
			saturated++
		}
		if s == checker.Fail || s == checker.Inconclusive && all == checker.Pass {
			all = s
		}
		b.Text = text
	}
	if b.State = stateOf(all); all == checker.Pass && saturated > 0 {
		b.State = state{"unsure", "✓", b.State.Word}
	}
	if saturated > 0 && len(runs) > 1 {
		b.Notes = append(b.Notes,
			fmt.Sprintf("The load generator was saturated or disturbed in %s: the times measure this machine as "+
				"well as the locks.",
				human.Quantity(saturated, "run")))
	}
	judged := make([]results.Judgement, len(runs))
	for i := range runs {
		judged[i] = runs[i].Judgement()
	}
	if text := results.ExtentOf(judged).Text(); text != "" {
		b.Notes = append(b.Notes, "Tried: "+text+".")
	}
	if len(runs) > 1 {
		b.Text = fmt.Sprintf("%s: %d passed, %d failed, %d inconclusive", human.Quantity(len(runs), "run"),
			counts[checker.Pass], counts[checker.Fail], counts[checker.Inconclusive])
	}
	return b
}

func view(r *saved, number int, name string) runView {
	v := runView{
		ID: "run" + strconv.Itoa(number), Title: name, Load: r.Workload(), Command: r.Command,
		Banner: banner([]saved{*r}), Explored: r.Explored,
		Generator: generatorState(&r.Generator), Series: r.series != nil, Strip: r.strip != nil,
		FairnessText: r.FairnessText(), Verdicts: verdictTable(r.Run), Latency: latencyTable(r.Run),
		Faults:   r.faultTable(),
		Fairness: workerTable(&r.Fairness), Health: healthTable(&r.Generator), Config: configTable(r.Run),
		Env:    environmentTable(r.Run),
		Others: r.otherTable(), Outages: outageTable(r.Run), Cost: costTable(r.Run), Phases: phaseTable(r.Run),
		Stories: stories(r.Run), Tiles: tiles(r.Run),
	}
	if r.Certified != "" {
		v.Certified = "Certified: " + r.Certified
	}
	if !r.Started.IsZero() {
		v.Started = r.Started.Format("2006-01-02 15:04:05 MST")
	}
	if r.picture != nil {
		v.Shows, v.Picture = r.shows, "data:image/svg+xml;base64,"+base64.StdEncoding.EncodeToString(r.picture)
	}
	note := func(label, text string) {
		if text != "" {
			v.Banner.Notes = append(v.Banner.Notes, label+text)
		}
	}
	if r.Unseen() {
		note("", "A service does its own locking: its holders cannot be seen. Its answers are judged.")
	}
	note("", r.Label)
	note("Agents: ", r.Fleet.Text())
	if r.Interactive {
		note("INTERACTIVE: ", results.InteractiveText)
	}
	for i, why := range r.Before {
		note(fmt.Sprintf("Attempt %d was inconclusive: ", i+1), why)
	}
	note("The run ended early: ", r.Partial)
	if r.damaged != nil {
		note("Missing here: ", strings.ReplaceAll(r.damaged.Error(), "\n", "; "))
	}
	if s := r.strip; s != nil {
		v.StripText = fmt.Sprintf("%s of %s; %s", human.Quantity(s.Visits, "visit"),
			human.Quantity(s.Workers, "worker"), overlapText(s, r.Verdicts))
		v.Overlaps = overlapTable(s)
	}
	return v
}

// overlapText describes the overlaps in the strip. Even without an overlap, mutual exclusion can have failed: the
// strip shows only for how long workers relied on the lock, but the judge also counts what servers granted.
func overlapText(s *ownership, verdicts []checker.Verdict) string {
	text := human.Quantity(s.Overlaps, "overlap")
	switch failed := slices.ContainsFunc(verdicts, func(v checker.Verdict) bool {
		return v.Checker == "exclusion" && v.Status == checker.Fail
	}); {
	case s.Overlaps == 0 && failed:
		return "no overlap of what workers relied on; the evidence says how exclusion failed"
	case s.Overlaps == 0:
		return "no two workers ever held one page at the same time"
	}
	if s.Late > 0 {
		text += fmt.Sprintf(", %s of them only because a worker went on after its lease", human.Count(int64(s.Late)))
	}
	if !s.Excludes {
		text += "; this lock does not claim to exclude"
	}
	return text
}

func tiles(r *results.Run) []tileView {
	response, acquire, handoff := &r.Latency.Response, &r.Latency.Acquire, &r.Latency.Handoff
	trips, commands, _ := r.Cost.Texts()
	rate, ended := r.ThroughputText()
	all := []tileView{
		{"Throughput", rate + "/s", ended},
		{"Response p99", response.Text(response.P99), "median " + response.Text(response.P50)},
		{"Acquire p99", acquire.Text(acquire.P99), "median " + acquire.Text(acquire.P50)},
		{"Hand-off p50", handoff.Text(handoff.P50), "p99 " + handoff.Text(handoff.P99)},
		{"Fairness", r.Fairness.JainText(),
			fmt.Sprintf("%d of %d starving", r.Fairness.Starving, r.Workers)},
		{"Cost a visit", trips + " trips", commands + " commands"},
		{"Views lost", human.Count(r.Views.Lost), "of " + human.Count(r.Views.Acknowledged)},
	}
	if r.Scenario != "" { // a scenario is made to break things, so its speed means nothing
		all = slices.DeleteFunc(all, func(t tileView) bool { return t.Name == "Throughput" })
	}
	return all
}

func stories(r *results.Run) (all []storyView) {
	ns := func(t time.Duration) string { return strconv.FormatInt(int64(t), 10) }
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Status != checker.Fail || len(v.Story)+len(v.Evidence) == 0 {
			continue
		}
		s := storyView{Title: results.Title(v), Lines: human.Names(v.Story, human.Unbroken), Remedy: v.Remedy}
		ops, from, to := evidenceTable(v.Evidence)
		if s.Ops = ops; len(v.Evidence) > 0 {
			s.From, s.To = ns(from), ns(to)
		}
		all = append(all, s)
	}
	return all
}
