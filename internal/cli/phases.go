package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/workload"
)

// phasesKey is the key of the list of phases in a plan's file. Phases have no flag.
const phasesKey = "phases"

// phasesSay lists the flags that phases replace.
var phasesSay = []string{"warmup", "duration", "fault"}

type phaseKey struct {
	name, kind, usage string
	set               func(*harness.Phase, string) error
	text              func(*harness.Phase) string // returns the value as text; empty = it is not set
}

var phaseKeys = []phaseKey{
	{"phase", "name", "what it is for", func(p *harness.Phase, text string) error {
		p.Kind = text
		if !slices.Contains(harness.PhaseKinds, text) {
			return errors.New(human.Instead(text, harness.PhaseKinds))
		}
		return nil
	}, func(p *harness.Phase) string { return p.Kind }},
	durationKey("duration", "how long it takes", func(p *harness.Phase) *time.Duration { return &p.Duration }),
	{"name", "text", "what gates and reports call it (default: what it is for)",
		func(p *harness.Phase, text string) error {
			if p.Name = text; text == "" || strings.ContainsAny(text, " \t:;,=<>{}[]\"'#") {
				return errors.New("a name is a word without punctuation, as in steady-2")
			}
			return nil
		}, func(p *harness.Phase) string { return p.Name }},
	{"rate", "n/s", "open loop: visits a second, as in 100/s, or for a ramp 100/s..500/s (default: the plan's)",
		func(p *harness.Phase, text string) (err error) {
			p.Rated = true
			first, last, two := strings.Cut(text, "..")
			if p.Rate.First, err = settings.PerSecond(first); err == nil && two {
				p.Rate.Last, err = settings.PerSecond(last)
				return err
			}
			p.Rate.Last = p.Rate.First
			return err
		}, func(p *harness.Phase) string {
			switch {
			case !p.Rated:
				return ""
			case p.Rate.First != p.Rate.Last:
				return settings.PerSecondText(p.Rate.First) + ".." + settings.PerSecondText(p.Rate.Last)
			}
			return settings.PerSecondText(p.Rate.First)
		}},
	{"amplitude", "n/s", "of a sine: by how much its rate rises and falls, as in 200/s",
		func(p *harness.Phase, text string) (err error) {
			p.Rate.Amplitude, err = settings.PerSecond(text)
			return err
		}, func(p *harness.Phase) string {
			return unless(p.Rate.Amplitude == 0, settings.PerSecondText(p.Rate.Amplitude))
		}},
	durationKey("period", "of a sine: how long a wave is",
		func(p *harness.Phase) *time.Duration { return &p.Rate.Period }),
	wholeKey("burst", "of a burst: how many visits are due at once when it begins, besides its rate",
		func(p *harness.Phase) *int { return &p.Burst }),
	wholeKey("workers", "closed loop: how many visit at the same time (default: the plan's)",
		func(p *harness.Phase) *int { return &p.Workers }),
	{"fault", "name,...",
		"what breaks, as in --fault; times count from the phase's begin, and it is healed at its end at the latest",
		func(p *harness.Phase, text string) error {
			p.Faults = settings.Split(text)
			return nil
		}, func(p *harness.Phase) string { return strings.Join(p.Faults, ",") }},
}

func phaseKeyNames() []string {
	return human.Names(phaseKeys, func(k phaseKey) string { return k.name })
}

func unless(is bool, text string) string {
	if is {
		return ""
	}
	return text
}

func durationKey(name, usage string, of func(*harness.Phase) *time.Duration) phaseKey {
	return phaseKey{name, "duration", usage, func(p *harness.Phase, text string) error {
		d, err := settings.ReadDuration(text)
		if err == nil && d <= 0 {
			err = errors.New("more than 0s")
		}
		*of(p) = max(d, 0)
		return err
	}, func(p *harness.Phase) string { return unless(*of(p) == 0, of(p).String()) }}
}

func wholeKey(name, usage string, of func(*harness.Phase) *int) phaseKey {
	return phaseKey{name, "n", usage, func(p *harness.Phase, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return errors.New("a whole number, 1 or more")
		}
		*of(p) = n
		return nil
	}, func(p *harness.Phase) string { return unless(*of(p) == 0, strconv.Itoa(*of(p))) }}
}

// besidePhases reports flags that phases replace, and gates (assertions) about phases that do not exist.
func (o *options) besidePhases() {
	var names []string
	for i := range o.plan.Phases {
		names = append(names, o.plan.Phases[i].Called())
	}
	if len(names) > 0 {
		o.Clash(phasesSay, ": phases say that: leave it out, or the phases")
	}
	for i := range o.gates {
		switch g := &o.gates[i]; {
		case g.Phase == "" || slices.Contains(names, g.Phase):
		case len(names) == 0:
			o.Mistakes.Add(human.Wrong("gate", "%q: there are no phases: a plan's file says which (docs/PLAN.md)",
				g.Text).In(g.Text, ""))
		default:
			o.Mistakes.Add(human.Wrong("gate", "%q: no phase %q: %s", g.Text, g.Phase,
				human.Instead(g.Phase, names)).In(g.Text, ""))
		}
	}
}

// arrivalsFlag declares --arrivals. Its value is a distribution of the times between visits, or a trace: a file with
// the time at which each visit is due.
func (o *options) arrivalsFlag() {
	w := &o.plan.Workload
	known := settings.Words(workload.AllArrivals...)
	v := o.Add(flag(load, "arrivals",
		"open loop: how visits are spread: poisson, uniform; or trace:FILE, which says when each is due:\n"+
			"docs/PLAN.md"), "name", string(w.Arrivals), func(text string) (err error) {
		w.Trace = nil
		if file, ok := strings.CutPrefix(text, workload.TracePrefix); ok {
			w.Trace, err = workload.ReadTrace(file)
			w.Arrivals = workload.Arrivals(text)
			return err
		}
		a, err := known.Find(text)
		if err != nil {
			return fmt.Errorf("%w, %sFILE", err, workload.TracePrefix)
		}
		w.Arrivals = a
		return nil
	})
	v.Complete = settings.CompleteList(known.Names(), false)
}
