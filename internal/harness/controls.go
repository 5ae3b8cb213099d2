package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/topologies"
)

const (
	keyPlaces = 8               // largest number of faults in force at the same time that a user injected with keys
	keyHeals  = 3 * time.Second // time after which a fault that a user injected with a key is healed
)

// controls returns the actions that a user may take during a run, for example with keys in a dashboard. If an action
// breaks something, the history has it as a fault.
func (x *Run) controls(ctx, ending context.Context) *measure.Controls {
	inject := func(s faults.Step, healed time.Duration) error { return x.breaker.Inject(ctx, ending, s, healed) }
	c := &measure.Controls{
		Kill:  func(node string) error { return x.killOrStart(inject, node) },
		Pause: x.pauseSuite,
		Rate:  x.changeRate(),
	}
	scene := x.combo.scene()
	known := map[string]faults.Fault{}
	for _, f := range faults.All {
		refused := f.Refused(scene, x.deployment.Topology.Options)
		choice := measure.Choice{Name: f.Name, Doc: f.Doc, Refused: refused}
		if refused == "" {
			known[f.Name], choice.Targets = f, f.Targets(x.deployment.Topology)
		}
		c.Faults = append(c.Faults, choice)
	}
	c.Inject = func(name, target string) error {
		f, ok := known[name]
		if !ok {
			return fmt.Errorf("%s: unavailable here", name)
		}
		return inject(faults.Step{Fault: f, Arg: target}, keyHeals)
	}
	return c
}

func (x *Run) killOrStart(inject func(faults.Step, time.Duration) error, name string) error {
	for _, n := range x.deployment.Topology.Nodes {
		if n.Name != name {
			continue
		}
		if n.State() == topologies.Down {
			return inject(faults.Step{Fault: faults.StartNode(n)}, time.Millisecond)
		}
		f, _ := faults.Find("kill-node")
		return inject(faults.Step{Fault: f, Arg: name}, 0)
	}
	return fmt.Errorf("there is no node %s", name)
}

// Limits of the rate, as factors of the planned rate.
const (
	slowest = 1.0 / 100
	fastest = 100.0
)

// changeRate returns a function that multiplies the rate of future visits by a factor, and returns the new rate. The
// history has each change as a fault without a duration, although nothing breaks.
func (x *Run) changeRate() func(factor float64) (float64, error) {
	var one sync.Mutex
	plan := x.combo.Plan.Workload.Rate
	return func(factor float64) (float64, error) {
		if !x.combo.Plan.steerable() {
			return 0, errors.New("phases or a trace say what is due when")
		}
		tempo := x.session.Tempo
		if tempo == nil {
			return plan, errors.New("the rate of workers on other machines cannot be changed")
		}
		if plan == 0 {
			return 0,
				errors.New("a closed loop has no rate: its workers go on as soon as they can; " +
					"--rate 100/s makes an open one")
		}
		one.Lock()
		defer one.Unlock()
		before, after := plan*tempo.Speed(), plan*tempo.Speed()*factor
		if after > maxRate || after > plan*fastest || after < plan*slowest {
			return before, fmt.Errorf("%s visits a second is as far as it goes: at most %s, at least %s, of %s planned",
				human.Number(before),
				human.Number(min(maxRate, plan*fastest)), human.Number(plan*slowest), human.Number(plan))
		}
		over, err := x.breaker.Record("rate", history.Effect{Hits: []history.Party{history.Nobody}},
			func() (string, error) {
				from, err := tempo.Change(x.session.Clock.Now(), after/plan)
				if err != nil {
					return err.Error(), err
				}
				return fmt.Sprintf("%s/s became %s/s from %.3f s on", human.Number(before), human.Number(after),
					from.Seconds()), nil
			})
		over()
		if err != nil {
			return before, err
		}
		return after, nil
	}
}

// pauseSuite records that a user is about to stop the whole suite with ctrl-z. Call resume when the suite continues.
func (x *Run) pauseSuite(why string) (resume func()) {
	f, _ := faults.Find("stop-process")
	// an error is ignored, because it only means that the run is ending
	over, _ := x.breaker.Record(f.Name, f.Effect(x.combo.scene()), func() (string, error) { return why, nil })
	return over
}
