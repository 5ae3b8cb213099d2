package harness

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// enough is the number of visits that must be shown before a run ends.
const enough = 100

// steered makes a watched run in which a user uses the controls once the workers work. The run ends some visits later.
func steered(t *testing.T, change func(*Plan), use func(*measure.Controls)) (*results.Run, *measure.Snapshot,
	*history.History) {
	t.Helper()
	j := job(t, change)
	j.Watched = true
	stop, end := context.WithCancel(t.Context())
	defer end()
	var last *measure.Snapshot
	controls, used := make(chan *measure.Controls, 1), make(chan struct{})
	j.Progress = func(e Event) {
		if e.Controls != nil {
			controls <- e.Controls
		}
		if e.Snapshot == nil {
			return
		}
		last = e.Snapshot
		select {
		case <-used:
			if last.Done > enough {
				end()
			}
		default:
		}
	}
	go func() {
		defer close(used)
		use(<-controls)
	}()
	runs, err := j.Run(t.Context(), stop)
	if err != nil {
		t.Fatal(err)
	}
	<-used
	if !j.Plan.Verify {
		return &runs[0], last, nil
	}
	h, err := history.Open(filepath.Join(j.Plan.Out, runs[0].Name, results.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	return &runs[0], last, h
}

// TestARateByKey: a user makes an open loop four times as fast during the run. No visit is lost, with workers in one
// process or in two. The history shows that a user changed the rate.
func TestARateByKey(t *testing.T) {
	t.Parallel()
	for name, processes := range map[string]int{"local": 1, "two processes": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, seen, h := steered(t, func(p *Plan) {
				p.Verify, p.Processes, p.Locks = true, processes, lockNamed("lease")
				p.Workload.Rate, p.Workload.Keys, p.Warmup, p.Duration = 40, 50, 0, 10*time.Minute
			}, func(c *measure.Controls) {
				for _, factor := range []float64{8, 0.5} {
					if _, err := c.Rate(factor); err != nil {
						t.Error(err)
					}
				}
				if now, err := c.Rate(1000); err == nil || now != 160 ||
					!strings.Contains(err.Error(), "at most 4 000") {
					t.Errorf("%v visits a second, %v", now, err)
				}
			})
			if a := run.Arrivals; a.Due != a.Begun+a.Skipped+a.Unfinished || a.Begun <= enough {
				t.Errorf("%+v", a)
			}
			if !run.Interactive || run.Rate != 40 {
				t.Errorf("interactive: %v, a rate of %v in the configuration", run.Interactive, run.Rate)
			}
			if seen == nil || seen.Head.Rate != 160 || !seen.Head.Interactive || len(seen.Active) > 0 ||
				!slices.ContainsFunc(seen.Events, func(e measure.Event) bool { return e.Kind == measure.RateEvent }) {
				t.Errorf("who watched saw %+v", seen)
			}
			if err := h.Validate(); err != nil {
				t.Error(err)
			}
			var texts []string
			for i := range h.Ops {
				if op := &h.Ops[i]; op.Kind == history.Fault && h.Faults[op.Value].ByHand && op.Outcome == history.OK {
					texts = append(texts, h.Faults[op.Value].Name+": "+h.Notes[op.ID])
				}
			}
			if len(texts) != 2 || !strings.HasPrefix(texts[0], "rate: 40.0/s became 320/s from ") ||
				!strings.HasPrefix(texts[1], "rate: 320/s became 160/s from ") {
				t.Errorf("the history says %q", texts)
			}
		})
	}
}

// TestAClosedLoopHasNoRate: the key tells why it has no effect.
func TestAClosedLoopHasNoRate(t *testing.T) {
	t.Parallel()
	run, _, _ := steered(t, func(p *Plan) {
		p.Locks, p.Duration = lockNamed("none"), 10*time.Minute
	}, func(c *measure.Controls) {
		if _, err := c.Rate(1.25); err == nil || !strings.Contains(err.Error(), "a closed loop has no rate") {
			t.Errorf("got %v", err)
		}
	})
	if run.Interactive {
		t.Error("a run that nobody could change is marked as interactive")
	}
}
