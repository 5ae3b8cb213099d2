package results

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/human"
)

// state is a verdict for the eye: a word, a sign and a colour, never the colour alone.
type state struct{ Class, Sign, Word string }

func stateOf(s checker.Status) state {
	switch s {
	case checker.Pass:
		return state{"pass", "✓", "PASS"}
	case checker.Fail:
		return state{"fail", "✕", "FAIL"}
	}
	return state{"unsure", "?", "INCONCLUSIVE"}
}

func generatorState(g *Generator) state {
	switch g.State {
	case GeneratorOK:
		return state{"pass", "✓", "OK"}
	case Saturated:
		return state{"fail", "✕", string(g.State)}
	}
	return state{"unsure", "!", string(g.State)}
}

// bannerView is what is to be seen first.
type bannerView struct {
	State state
	Text  string
	Notes []string
}

// tileView is one number that stands for a run.
type tileView struct{ Name, Value, More string }

// tableView is a table of texts.
type tableView struct {
	Title, Note string
	Head        []string
	Rows        [][]cellView
	Facts       bool // two columns: what, and its value
	Words       bool // more words than numbers
	Ops         bool // operations
}

type cellView struct {
	Text  string
	State *state
	Bar   int // in percent; 0 = none
}

// storyView is the evidence of a failed property.
type storyView struct {
	Title   string
	Lines   []string
	Ops     tableView
	From    string // where the strip is to go, in nanoseconds; empty if nowhere
	To      string
	Checker string
}

// runView is the part of the page about one run.
type runView struct {
	ID                            string
	Title, Load, Command, Name    string
	Started                       string
	Banner                        bannerView
	Generator                     state
	Tiles                         []tileView
	Verdicts, Latency, Faults     tableView
	Fairness, Health, Config, Env tableView
	Cost                          tableView
	Overlaps                      tableView
	Stories                       []storyView
	FairnessText                  string
	Series, Strip                 bool
	StripText                     string
}

func banner(runs []reported) bannerView {
	b := bannerView{}
	all := checker.Pass
	counts := map[checker.Status]int{}
	for i := range runs {
		s, _ := runs[i].Safety()
		counts[s]++
		if s == checker.Fail || s == checker.Inconclusive && all == checker.Pass {
			all = s
		}
	}
	b.State = stateOf(all)
	if len(runs) == 1 {
		_, b.Text = runs[0].Safety()
		return b
	}
	b.Text = fmt.Sprintf("%s: %d passed, %d failed, %d inconclusive", human.Quantity(len(runs), "run"),
		counts[checker.Pass], counts[checker.Fail], counts[checker.Inconclusive])
	for i := range runs {
		if s, text := runs[i].Safety(); s != checker.Pass {
			b.Notes = append(b.Notes, fmt.Sprintf("%s: %s: %s", runs[i].short(), s, text))
		}
	}
	return b
}

func view(r *reported, number int) runView {
	status, text := r.Safety()
	v := runView{
		ID: "run" + strconv.Itoa(number), Title: r.Topology + " · " + r.Lock, Load: r.load(), Command: r.Command, Name: r.Name,
		Started: r.Started.Format("2006-01-02 15:04:05 MST"), Banner: bannerView{State: stateOf(status), Text: text},
		Generator: generatorState(&r.Generator), Series: r.series != nil, Strip: r.strip != nil, StripText: r.why,
		FairnessText: r.fairnessText(), Verdicts: r.verdictTable(), Latency: r.latencyTable(), Faults: r.faultTable(),
		Fairness: r.workerTable(), Health: r.healthTable(), Config: r.configTable(), Env: r.environmentTable(),
		Cost: r.costTable(), Stories: r.stories(), Tiles: r.tiles(),
	}
	if r.Label != "" {
		v.Banner.Notes = append(v.Banner.Notes, r.Label)
	}
	if r.Partial != "" {
		v.Banner.Notes = append(v.Banner.Notes, "The run ended early: "+r.Partial)
	}
	if s := r.strip; s != nil {
		v.StripText = fmt.Sprintf("%s of %s; %s", human.Quantity(s.Visits, "visit"), human.Quantity(s.Workers, "worker"), overlapText(s))
		v.Overlaps = s.table()
	}
	return v
}

func overlapText(s *ownership) string {
	text := human.Quantity(s.Overlaps, "overlap")
	if s.Overlaps == 0 {
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

func (r *Run) tiles() []tileView {
	response, acquire, handoff := r.Latency.Response, r.Latency.Acquire, r.Latency.Handoff
	return []tileView{
		{"Throughput", human.Number(r.Throughput) + "/s", human.Count(r.Visits.Done) + " visits counted"},
		{"Response p99", quantile(response.P99, response.Max), "median " + quantile(response.P50, response.Max)},
		{"Acquire p99", quantile(acquire.P99, acquire.Max), "median " + quantile(acquire.P50, acquire.Max)},
		{"Hand-off p50", quantile(handoff.P50, handoff.Max), "p99 " + quantile(handoff.P99, handoff.Max)},
		{"Fairness", "Jain " + fmt.Sprintf("%.2f", r.Fairness.Jain), fmt.Sprintf("%d of %d starving", r.Fairness.Starving, r.Workers)},
		{"Cost a visit", optional(r.Cost.RoundTrips) + " trips", optional(r.Cost.Commands) + " commands"},
		{"Views lost", human.Count(r.Views.Lost), "of " + human.Count(r.Views.Acknowledged)},
	}
}

func texts(all ...string) []cellView {
	row := make([]cellView, len(all))
	for i, text := range all {
		row[i].Text = text
	}
	return row
}

func (r *Run) verdictTable() tableView {
	t := tableView{Head: []string{"Property", "Verdict", "Exposed", "Violations", "What was found"}, Words: true}
	for _, v := range r.Verdicts {
		text := finding(&v)
		if v.Cause != "" {
			text = v.Cause + ": " + text
		}
		s := stateOf(v.Status)
		row := texts(v.Checker, "", human.Count(v.Exposed), human.Count(v.Violations), text)
		row[1].State = &s
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (r *Run) stories() []storyView {
	var all []storyView
	for _, v := range r.Verdicts {
		if v.Status != checker.Fail || len(v.Story)+len(v.Evidence) == 0 {
			continue
		}
		s := storyView{Title: title(&v), Lines: v.Story, Checker: v.Checker}
		s.Ops = tableView{Head: []string{"Call", "Return", "Worker", "Operation", "Page", "Outcome", "Value", "Took"}, Ops: true}
		from, to := history.Forever, time.Duration(0)
		for i := range v.Evidence {
			op := &v.Evidence[i]
			from, to = min(from, op.Call), max(to, op.Call)
			back, took := "never", "-"
			if op.Return != history.Forever {
				to = max(to, op.Return)
				back, took = clockText(op.Return), human.Duration(op.Latency())
			}
			value := "-"
			if op.Kind == history.Load || op.Kind == history.Store {
				value = human.Count(op.Value)
			}
			outcome := strings.TrimSpace(op.Outcome.String() + " " + op.Reason.String())
			s.Ops.Rows = append(s.Ops.Rows, texts(clockText(op.Call), back, fmt.Sprintf("w%02d", op.Worker), op.Kind.String(),
				strconv.Itoa(int(op.Key)), outcome, value, took))
		}
		if len(v.Evidence) > 0 {
			s.From, s.To = strconv.FormatInt(int64(from), 10), strconv.FormatInt(int64(to), 10)
		}
		all = append(all, s)
	}
	return all
}

// clockText is a time of the run to the microsecond, for what happened is compared by it.
func clockText(at time.Duration) string {
	if at == history.Forever {
		return "never"
	}
	return fmt.Sprintf("%.6f s", at.Seconds())
}
