package cli

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/dashboard"
	"hammerlock/internal/measure"
)

// Bounds of the dashboard: holders and waiters, and locks. Others have no lane.
const (
	viewedWorkers = 32
	viewedLocks   = 1000
	viewedAfter   = time.Second // operations are known by then, as a rule
	viewedEvery   = 5           // ticks
)

// wireView shows holders and waiters in the dashboard while a program runs. It judges nothing: some operations come
// late.
type wireView struct {
	*dashboard.Dashboard
	meter  *measure.Meter
	viewer *measure.Viewer
	read   int          // operations of the reader
	next   []history.Op // not shown yet
	shown  time.Duration
	ticks  int
}

// openView takes the terminal if a dashboard is wanted and possible; nil if not.
func (w *watch) openView(quit func()) (*wireView, error) {
	d, err := w.openDashboard(w.o.options, dashboard.Options{Quit: func(int) { quit() }})
	if d == nil || err != nil {
		return nil, err
	}
	return w.viewOn(d), nil
}

func (w *watch) viewOn(d *dashboard.Dashboard) *wireView {
	v := &wireView{Dashboard: d, meter: measure.NewMeter(measure.Options{Workers: viewedWorkers, Keys: viewedLocks,
		To: history.Forever})}
	head := measure.Head{Watched: true, Topology: "wire", Lock: strings.Join(w.o.Locks, ","), Scenario: w.scenario,
		Workers: viewedWorkers, Keys: 1, Faults: w.round.faults}
	v.viewer = measure.NewViewer(v.meter, head,
		history.Header{Workers: viewedWorkers, Keys: viewedLocks, Faults: w.faults},
		func(op *history.Op) (i history.Injection, words string) {
			if op.Kind == history.Fault {
				i = w.faults[op.Value]
			}
			return i, ""
		})
	return v
}

// look draws operations that are old enough, in the order of their returns. One that comes later than that is left out.
func (v *wireView) look(w *watch) {
	if v == nil {
		return
	}
	if v.ticks++; v.ticks%viewedEvery != 0 {
		return
	}
	until := w.clock.Now() - viewedAfter
	more := w.reader.Since(v.read)
	v.read += len(more)
	v.next = append(v.next, more...)
	slices.SortStableFunc(v.next, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	n := 0
	for ; n < len(v.next) && v.next[n].Return <= until; n++ {
		op := &v.next[n]
		if op.Worker < viewedWorkers && op.Key < viewedLocks && op.Return >= v.shown {
			v.meter.Observe(op)
			v.viewer.Observe(op)
			v.shown = op.Return
		}
	}
	v.next = v.next[n:]
	v.viewer.UpTo(until)
	v.viewer.Known(until)
	v.Publish(v.viewer.Snapshot(max(until, 0), "watching", nil))
}

// close gives the terminal back.
func (v *wireView) close() error {
	if v == nil {
		return nil
	}
	return v.Dashboard.Close()
}
