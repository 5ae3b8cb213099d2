package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/results"
	"hammerlock/results/report"
)

// Limits of the data that are sent to a page.
const (
	keptSeconds = 900 // seconds of the series; the report has older ones, too
	shownEvents = 40
	shownRuns   = 50
	shownCells  = 400 // cells of the strip of each worker, which cover ten seconds
)

// series has measurements for each second of a run. A null stands for a second without data.
type series struct {
	At    []float64         `json:"at"` // in seconds since the start of the run
	Rate  []float64         `json:"rate"`
	Lines map[string]*lines `json:"lines"`
	run   int               // number of the run in its job
	seen  time.Duration     // time of the latest snapshot that was added
}

// lines has percentiles for each second of a series, in nanoseconds; nil = unknown, or from too few values.
type lines struct {
	P50 []*int64 `json:"p50"`
	P99 []*int64 `json:"p99"`
}

// observe adds the seconds of a snapshot that are over and were not added before. For another run, or an earlier time,
// it begins anew. It returns whether the series has changed.
func (s *series) observe(m *measure.Snapshot) (grown bool) {
	if s.Lines == nil || s.run != m.Head.Number || m.At < s.seen {
		*s = series{run: m.Head.Number, At: []float64{}, Rate: []float64{}, Lines: map[string]*lines{}}
		for _, name := range []string{"response", "acquire"} {
			s.Lines[name] = &lines{P50: []*int64{}, P99: []*int64{}}
		}
		grown = true
	}
	s.seen = m.At
	if len(m.Seconds) < 2 {
		return grown
	}
	over := m.Seconds[:len(m.Seconds)-1] // the last second is not over
	for i, second := range over {
		at := second.At.Seconds()
		if n := len(s.At); n > 0 && at <= s.At[n-1] {
			continue
		}
		grown = true
		s.At, s.Rate = kept(s.At, at), kept(s.Rate, float64(second.Done))
		for name, l := range s.Lines {
			var now measure.Quantiles
			for _, row := range m.Latency {
				if row.Name == name && i == len(over)-1 { // a snapshot has percentiles of the last full second only
					now = row.Now
				}
			}
			l.P50, l.P99 = kept(l.P50, supported(now, 0.5, now.P50)), kept(l.P99, supported(now, 0.99, now.P99))
		}
	}
	return grown
}

// The function kept appends a value to a list. It drops the oldest value if the list already has keptSeconds values.
func kept[T any](all []T, one T) []T {
	return append(slices.Delete(all, 0, max(len(all)+1-keptSeconds, 0)), one)
}

func supported(q measure.Quantiles, of float64, value time.Duration) *int64 {
	if !results.Supports(of, q.Count) {
		return nil
	}
	ns := int64(value)
	return &ns
}

// frame is the content of the page at one moment. Times are in nanoseconds since the start of the run.
type frame struct {
	Title   string           `json:"title"`
	Stage   string           `json:"stage"`
	Note    string           `json:"note"`
	Command string           `json:"command"`
	Run     int              `json:"run"`
	At      int64            `json:"at"`
	To      int64            `json:"to"`
	Safety  []string         `json:"safety"` // four texts: class, sign, word, explanation
	Tiles   [][3]string      `json:"tiles"`  // for each tile: name, value, additional text
	Faults  []span           `json:"faults"`
	Phases  []span           `json:"phases"`
	Workers []results.Worker `json:"workers"`
	Events  [][3]string      `json:"events"` // for each event: time, kind, text; the latest event first
	Nodes   [][3]string      `json:"nodes"`  // for each node: name, role, state
	Lanes   *lanes           `json:"lanes"`
	Done    []doneRun        `json:"done"`
	Bare    bool             `json:"bare"` // there are no measurements, so the page shows no charts
}

// span is a fault or a phase, in the form that the report's script expects. To is -1 as long as it lasts.
type span struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Name string `json:"name"`
	Note string `json:"note"`
}

// lanes is what workers did recently, in the form of the report's strip: planes with one byte for each cell, and one
// row for each worker.
type lanes struct {
	From    int64  `json:"from"`
	End     int64  `json:"end"`
	Cells   int    `json:"cells"`
	Workers []int  `json:"workers"`
	Hidden  int    `json:"hidden"`
	Planes  []byte `json:"planes"` // in JSON: base64
}

func newFrame(m *measure.Snapshot, done []doneRun) *frame {
	f := &frame{
		Title: m.Head.Name(), Stage: m.Stage, Note: m.Head.Label, Command: m.Head.Command, Run: m.Head.Number,
		At: int64(m.At), To: int64(m.To),
		Safety: safety(m), Tiles: tiles(m), Workers: m.Fairness.Workers, Done: done[max(len(done)-shownRuns, 0):],
		Faults: []span{}, Phases: []span{}, Events: [][3]string{}, Nodes: [][3]string{},
	}
	if m.Exploration != nil {
		f.Bare, f.Safety, f.Tiles = true, explored(m.Exploration), exploredTiles(m.Exploration)
	}
	if m.Head.Of > 1 {
		f.Title = fmt.Sprintf("[%d/%d] %s", m.Head.Number, m.Head.Of, f.Title)
	}
	for _, p := range m.Head.Phases {
		f.Phases = append(f.Phases, span{int64(p.From), int64(p.To), p.Name, ""})
	}
	for _, e := range m.Events {
		if e.Kind == measure.FaultEvent {
			name, note, _ := strings.Cut(e.Text, ": ")
			f.Faults = append(f.Faults, span{int64(e.At), cmp.Or(int64(e.To), -1), name, note})
		}
	}
	for _, e := range slices.Backward(m.Events[max(len(m.Events)-shownEvents, 0):]) {
		text := e.Text
		if e.Count > 1 {
			text += fmt.Sprintf(" (%d times)", e.Count)
		}
		f.Events = append(f.Events, [3]string{fmt.Sprintf("%.3f s", e.At.Seconds()), string(e.Kind), text})
	}
	for _, n := range m.Nodes {
		f.Nodes = append(f.Nodes, [3]string{n.Name, n.Role, n.State})
	}
	if len(m.Lanes) > 0 {
		f.Lanes = newLanes(m)
	}
	return f
}

func newLanes(m *measure.Snapshot) *lanes {
	n := min(shownCells, max(int(m.LanesEnd/measure.StripStep), 1))
	l := &lanes{From: int64(m.LanesEnd - time.Duration(n)*measure.StripStep), End: int64(m.LanesEnd), Cells: n,
		Hidden: m.Hidden}
	for i := range m.Lanes {
		l.Workers = append(l.Workers, m.Lanes[i].Worker)
	}
	for _, share := range []func(measure.Cell) float64{measure.Cell.Share, marked(measure.Waited),
		marked(measure.Overlap)} {
		for i := range m.Lanes {
			for _, c := range m.Lanes[i].Cells[len(m.Lanes[i].Cells)-n:] {
				l.Planes = append(l.Planes, report.Share(share(c)))
			}
		}
	}
	return l
}

// marked returns a function of a cell, whose result is 1 if the cell has the mark, and 0 otherwise.
func marked(mark measure.Cell) func(measure.Cell) float64 {
	return func(c measure.Cell) float64 {
		if c&mark != 0 {
			return 1
		}
		return 0
	}
}

// safety returns the verdict on safety so far, as in frame.Safety. It is not a pass before the run has ended.
func safety(m *measure.Snapshot) []string {
	switch n := m.Safety.Violations; {
	case n > 0:
		return []string{"fail", "✕", "VIOLATED", human.Quantity(n, "violation") + "; the first: " + m.Safety.First}
	case m.At == 0:
		return []string{"unsure", "…", "STARTING", "nothing was tried yet"}
	case m.Head.Unseen, !m.Safety.Excludes:
		return []string{"unsure", "…", "RUNNING", "judged at the end"}
	default:
		return []string{"unsure", "…", "RUNNING",
			fmt.Sprintf("no violation up to %.1f s; judged at the end", m.Safety.SafeUpTo.Seconds())}
	}
}

func tiles(m *measure.Snapshot) [][3]string {
	all := [][3]string{{"Visits", human.Count(m.Done), human.Quantity(m.Errors, "error")}}
	if n := len(m.Seconds); n > 1 {
		all = append(all, [3]string{"Last second", human.Count(m.Seconds[n-2].Done) + "/s",
			human.Quantity(m.Waiting, "worker") + " waiting"})
	}
	for _, l := range m.Latency {
		all = append(all, [3]string{"The run's " + l.Name + " p50", l.Run.Text(false), "p99 " + l.Run.Text(true)})
	}
	longest := "no worker waits"
	if m.LongestBy >= 0 {
		longest = fmt.Sprintf("longest now %s, w%02d", human.Duration(m.Longest), m.LongestBy)
	}
	all = append(all, [3]string{"Random waiter p50", m.Random.Text(false), longest})
	all = append(all, [3]string{"Fairness", m.Fairness.JainText(),
		fmt.Sprintf("%d of %d starving", m.Fairness.Starving, m.Head.Workers)})
	if m.Generator.State != "" {
		all = append(all, [3]string{"Generator", string(m.Generator.State),
			cmp.Or(append(m.Generator.Reasons, "")[0], "its latencies are those of the lock")})
	}
	return all
}

// explored returns the verdict on an exploration so far, as in frame.Safety.
func explored(x *measure.Exploration) []string {
	switch x.Verdict {
	case "":
		return []string{"unsure", "…", "EXPLORING", cmp.Or(x.Text, "nothing was tried yet")}
	case "PASS":
		return []string{"pass", "✓", x.Verdict, x.Text}
	case "FAIL":
		return []string{"fail", "✕", "VIOLATED", x.Text}
	}
	return []string{"unsure", "?", x.Verdict, x.Text}
}

func exploredTiles(x *measure.Exploration) [][3]string {
	remaining := "none known to follow"
	if x.Remaining > 0 {
		remaining = "about " + human.Count(int64(x.Remaining)) + " to go"
	}
	return [][3]string{{"Schedules", human.Count(int64(x.Schedules)), remaining},
		{"Deviations", fmt.Sprintf("up to %d", x.Deviations), "in a schedule"},
		{"Speed", human.Number(x.Speed) + "/s", "for " + x.Took.Round(time.Second).String()}}
}

// encode returns v as JSON on one line. It panics if JSON cannot encode v, which does not happen with frames.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
