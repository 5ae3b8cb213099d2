package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hammerlock/internal/dashboard"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/measure"
)

const (
	tuiAuto = "auto"
	tuiOn   = "on"
	tuiOff  = "off"
)

// openDashboard takes over the terminal if the user wants a dashboard and the terminal is suited. It returns nil if
// progress is to be printed as lines instead.
func (e Env) openDashboard(o *options, options dashboard.Options) (*dashboard.Dashboard, error) {
	if o.tui == tuiOff || o.tui == tuiAuto && (o.json || o.quiet) {
		return nil, nil
	}
	err := dashboard.Fits(e.terminals[0], e.terminals[1], e.Getenv)
	switch {
	case err != nil && o.tui == tuiAuto:
		return nil, nil
	case err != nil && !errors.Is(err, dashboard.ErrSmall):
		return nil, usage("--tui on: the dashboard needs a terminal: %v; leave --tui out, "+
			"or --web :0 shows the run in a browser", err)
	}
	d, err := dashboard.Start(options, e.Getenv)
	if err != nil && o.tui == tuiOn {
		return nil, fmt.Errorf("start the dashboard: %w", err)
	}
	if err != nil {
		_, _ = fmt.Fprintf(e.Stderr, "no dashboard: %v\n", err)
	}
	return d, nil
}

// frames makes a snapshot, the content of the dashboard, from each event of a job.
type frames struct{ last *measure.Snapshot }

func (f *frames) next(e harness.Event) *measure.Snapshot {
	w := &e.Combination.Plan.Workload
	s := &measure.Snapshot{LongestBy: -1, Steps: e.Steps, Head: measure.Head{
		Topology: e.Combination.Topology.Name, Lock: e.Combination.Lock.Name, Scenario: e.Combination.Scenario.Name,
		Workers: w.Workers, Keys: w.Keys, Rate: w.Rate, Unseen: e.Combination.Topology.Can().Lock,
	}}
	switch {
	case e.Snapshot != nil:
		*s = *e.Snapshot
	case e.Stage != harness.Starting && f.last != nil:
		*s = *f.last
	}
	s.Stage, s.Head.Number, s.Head.Of = string(e.Stage), e.Number, e.Of
	s.Exploration = explorationOf(&e)
	f.last = s
	return s
}

// view shows a job in the dashboard. If runs are parallel, it also shows a board, which lists all runs.
type view struct {
	*dashboard.Dashboard
	job   *harness.Job
	after io.Writer // gets the directories of saved runs when the screen is free again

	one    sync.Mutex
	runs   []shownRun // indexed by run number - 1
	chosen int        // number of the run that the user chose; 0 = none
	ended  int
	left   time.Duration
	saved  []string
}

type shownRun struct {
	frames
	measure.Row
	controls *measure.Controls // nil when the run can no longer be changed
}

func newView(d *dashboard.Dashboard, job *harness.Job, after io.Writer) *view {
	v := &view{Dashboard: d, job: job, after: after}
	one := len(on(job)) == 1 && len(job.Plan.Locks) == 1 // if true, the name of a scenario suffices to name a run
	for i := range job.Combinations {
		c := &job.Combinations[i]
		name := c.Name()
		if one && c.Scenario.Name != "" {
			name = c.Scenario.Name
		}
		v.runs = append(v.runs, shownRun{Row: measure.Row{Number: i + 1, Name: name, State: "waiting"}})
	}
	return v
}

func (v *view) tell(e harness.Event) {
	v.one.Lock()
	defer v.one.Unlock()
	r := &v.runs[e.Number-1]
	switch {
	case e.Controls != nil:
		r.controls = e.Controls
	case e.Stage == harness.Saved:
		v.saved = append(v.saved, e.Folder)
		r.State, r.Text = found(e.Run)
		r.Place = e.Ended
		fallthrough
	case e.Stage == harness.Judging:
		r.controls = nil
	default:
		r.State, r.Place = "running", 0
		r.Text = fmt.Sprintf("%.1f of %.1f s, %s", e.Live.At.Seconds(), e.Combination.Plan.Duration.Seconds(),
			human.Quantity(e.Live.Done, "visit"))
	}
	if e.Controls == nil {
		r.next(e)
	}
	v.ended, v.left = e.Ended, e.Left
	v.draw(e.Number)
}

// draw shows the run that the user chose. Without a choice, it shows the first run in progress. If no run is in
// progress, it shows the run with the number latest.
func (v *view) draw(latest int) {
	rows := v.rows()
	number := v.chosen
	if i := slices.IndexFunc(rows, func(r measure.Row) bool { return r.State == "running" }); number == 0 && i >= 0 {
		number = rows[i].Number
	} else if number == 0 {
		number = latest
	}
	r := &v.runs[number-1]
	controls := measure.Controls{}
	if r.controls != nil {
		controls = *r.controls
	}
	s := &measure.Snapshot{Stage: r.State, LongestBy: -1}
	if r.last != nil {
		s = r.last
	}
	if v.job.Parallel() {
		with := *s
		with.Board = &measure.Board{Rows: rows, Chosen: number, Ended: v.ended, Left: v.left}
		s, controls.Choose, controls.Pause = &with, v.choose, v.pause
	}
	v.Control(&controls)
	v.Publish(s)
}

func (v *view) rows() (rows []measure.Row) {
	for i := range v.runs {
		rows = append(rows, v.runs[i].Row)
	}
	states := []string{"FAIL", "running", "INCONCLUSIVE", "PASS", "waiting"}
	slices.SortStableFunc(rows, func(a, b measure.Row) int {
		return cmp.Or(slices.Index(states, a.State)-slices.Index(states, b.State), b.Place-a.Place)
	})
	return rows
}

// choose selects another run on the board, the given number of rows further down. Negative numbers move up.
func (v *view) choose(down int) {
	v.one.Lock()
	defer v.one.Unlock()
	rows := v.rows()
	at := slices.IndexFunc(rows, func(r measure.Row) bool { return r.Number == v.chosen })
	if at < 0 {
		at = max(slices.IndexFunc(rows, func(r measure.Row) bool { return r.State == "running" }), 0)
	}
	v.chosen = rows[min(max(at+down, 0), len(rows)-1)].Number
	v.draw(v.chosen)
}

// pause tells each run in progress that the user suspends the suite (Ctrl-Z), with the reason why. Call resume when
// the suite continues.
func (v *view) pause(why string) (resume func()) {
	v.one.Lock()
	defer v.one.Unlock()
	var all []func()
	for i := range v.runs {
		if c := v.runs[i].controls; c != nil && c.Pause != nil {
			all = append(all, c.Pause(why))
		}
	}
	return func() {
		for _, resume := range all {
			resume()
		}
	}
}

// close leaves the dashboard, so that the terminal is usable again. It then prints where runs were saved.
func (v *view) close(context.Context, string) error {
	err := v.Close()
	if n := len(v.saved); n == 1 {
		_, _ = fmt.Fprintln(v.after, "saved", v.saved[0])
	} else if n > 1 {
		_, _ = fmt.Fprintf(v.after, "saved %d runs in %s\n", n, filepath.Dir(v.saved[0]))
	}
	return err
}

// dashboardOrLines opens an output for the progress of a job. The result drawn is true if that is the dashboard, and
// false if it is lines.
func (e Env) dashboardOrLines(o *options, s signals, job *harness.Job) (own shows, drawn bool, err error) {
	d, err := e.openDashboard(o, dashboard.Options{Quit: func(int) { s.press() }})
	for i := range job.Combinations {
		if w := job.Combinations[i].Plan.Program; d != nil && w != nil {
			w.Output = nil // the dashboard has the terminal
		}
	}
	switch {
	case err != nil:
		return nil, false, err
	case d != nil:
		return shows{newView(d, job, e.Stderr)}, true, nil
	case !o.quiet:
		return shows{&progress{w: e.Stderr, parallel: job.Parallel()}}, false, nil
	}
	return nil, false, nil
}

// The function on returns the names of a job's topologies.
func on(job *harness.Job) (names []string) {
	for i := range job.Combinations {
		if name := job.Combinations[i].Topology.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// explorationOf returns the state of an exploration for a page, or nil if the event is about a run.
func explorationOf(e *harness.Event) *measure.Exploration {
	x := e.Explored
	if x == nil {
		return nil
	}
	m := &measure.Exploration{Schedules: x.Schedules, Remaining: x.Remaining(), Speed: x.Speed,
		Deviations: x.Deviations, Took: e.Took}
	switch r := x.Result; {
	case r != nil:
		m.Verdict, m.Text = strings.ToUpper(r.Status.String()), r.Verdict()
	case x.Schedules > 0:
		m.Text = x.String()
	}
	return m
}
