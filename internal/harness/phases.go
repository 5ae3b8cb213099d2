package harness

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"hammerlock/faults"
	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/results"
	"hammerlock/workload"
)

// Phase is a part of a run with its own load and faults.
type Phase struct {
	Kind     string // one of PhaseKinds
	Name     string // empty = Kind is the name
	Duration time.Duration
	Rate     workload.Rate // for an open loop
	Rated    bool          // Rate is set; otherwise the plan's rate applies
	Burst    int           // number of visits that are due at the start of the phase, besides those of the rate
	Workers  int           // for a closed loop; 0 = as in the plan
	Faults   []string      // in the syntax of faults.Parse; times count from the start of the phase
}

// Kinds of phases that have special rules.
const (
	warmUp   = "warm-up"
	ramp     = "ramp"
	burst    = "burst"
	sine     = "sine"
	broken   = "fault"
	recovery = "recovery"
)

// PhaseKinds lists the kinds of phases.
var PhaseKinds = []string{
	warmUp,   // comes first, and is not measured
	ramp,     // changes its rate linearly
	"steady", // keeps its rate
	burst,    // begins with many visits that are due together
	sine,     // raises and lowers its rate
	broken,   // has a fault in force
	recovery, // shows how the load recovers
}

// maxPhases limits the number of phases, each of which needs memory for its measurements.
const maxPhases = 32

// wrong returns a mistake about one key of the phase; if the argument key is empty, about the whole phase.
func (p *Phase) wrong(key, format string, args ...any) human.Mistake {
	text := p.Called() + ": "
	if key != "" {
		text += key + ": "
	}
	return human.Mistake{Setting: "phases", Item: p.Called(), Key: key, Text: text + fmt.Sprintf(format, args...)}
}

// Called returns the phase's name in assertions and reports.
func (p *Phase) Called() string { return cmp.Or(p.Name, p.Kind) }

// Mistakes returns those mistakes that the phase alone shows, without the rest of the plan. Each names the key that
// is wrong.
func (p *Phase) Mistakes() (all human.Mistakes) {
	r := p.Rate
	for _, rule := range []struct {
		wrong     bool
		key, text string
	}{
		{p.Duration == 0, "duration", "it is missing, as in 10s"},
		{p.Duration != 0 && p.Duration < time.Millisecond, "duration", "at least 1ms"},
		{p.Kind == ramp && r.First == r.Last, "rate", "a ramp goes from one rate to another, as in 100/s..500/s"},
		{p.Kind != ramp && r.First != r.Last, "rate", "only a ramp goes from one rate to another"},
		{max(r.First, r.Last) > maxRate, "rate", fmt.Sprintf("at most %d/s", maxRate)},
		{p.Kind == sine && r.Amplitude == 0, "amplitude", "a sine needs one, as in 200/s"},
		{p.Kind == sine && r.Period == 0, "period", "a sine needs one, as in 5s"},
		{p.Kind != sine && r.Amplitude != 0, "amplitude", "only a sine has one"},
		{p.Kind != sine && r.Period != 0, "period", "only a sine has one"},
		{p.Kind == sine && p.Rated && r.Amplitude > r.First, "amplitude",
			"it is more than the rate, which cannot fall below zero"},
		{p.Kind == burst && p.Burst == 0, "burst", "how many visits at once, as in 300?"},
		{p.Kind != burst && p.Burst != 0, "burst", "only a burst has one"},
		{p.Burst < 0 || p.Burst > maxRate, "burst", fmt.Sprintf("from 1 to %d", maxRate)},
		{p.Workers < 0 || p.Workers > MostWorkers, "workers", fmt.Sprintf("from 1 to %d", MostWorkers)},
		{p.Workers > 0 && p.open(), "workers", "in an open loop the rate is the load: leave it out"},
		{p.Kind == broken && len(p.Faults) == 0, "fault", "what breaks, as in kill-primary or lost-grant@1s?"},
		{(p.Kind == warmUp || p.Kind == recovery) && len(p.Faults) > 0, "fault", "nothing breaks in a " + p.Kind},
	} {
		if rule.wrong {
			all.Add(p.wrong(rule.key, "%s", rule.text))
		}
	}
	return all
}

// The method open tells whether the phase is possible only with an open loop, in which visits have due times.
func (p *Phase) open() bool { return p.Rated || p.Burst > 0 }

// The method phases checks that the phases fit together.
func (c *check) phases() {
	p := c.plan
	if len(p.Workload.Trace) > 0 && p.Workload.Rate > 0 {
		c.mistake("rate", "does nothing with --arrivals of a trace, which says when visits are due")
	}
	if len(p.Phases) == 0 {
		return
	}
	wrong := func(i int, key, format string, args ...any) {
		m := p.Phases[i].wrong(key, format, args...)
		m.Text = m.Setting + " " + m.Text
		c.mistakes.Add(m)
	}
	open := p.Workload.Rate > 0 || slices.ContainsFunc(p.Phases, func(x Phase) bool { return x.open() })
	names, measured := map[string]bool{}, false
	for i := range p.Phases {
		x := &p.Phases[i]
		if names[x.Called()] {
			wrong(i, "", "another phase has the same name: give it one of its own, as in name: %s-2", x.Called())
		}
		names[x.Called()] = true
		switch rate := p.rate(x); {
		case x.Kind == warmUp && measured:
			wrong(i, "", "a warm-up comes first, before what is measured")
		case open && x.Workers > 0 && !x.open():
			wrong(i, "workers", "in an open loop the rate is the load: leave it out")
		case open && rate == workload.Rate{} && !x.open():
			wrong(i, "rate", "it is missing, and others have one; or set the rate of the plan")
		case rate.Amplitude > rate.First && !x.Rated:
			wrong(i, "amplitude", "it is more than the rate, which cannot fall below zero")
		}
		measured = measured || x.Kind != warmUp
	}
	if !measured {
		wrong(0, "", "nothing is measured in a warm-up: add a phase")
	}
	if len(p.Phases) > maxPhases {
		c.mistake("", "phases: at most %d", maxPhases)
	}
	if len(p.Workload.Trace) > 0 {
		c.mistake("arrivals", ": a trace says when visits are due, and so do phases: leave one out")
	}
}

// rate returns the rate of a phase: its own, or else the plan's.
func (p *Plan) rate(x *Phase) workload.Rate {
	r := x.Rate
	if !x.Rated {
		r.First, r.Last = p.Workload.Rate, p.Workload.Rate
	}
	return r
}

// phased returns the plan as workers need it. Each phase becomes a workload.Stretch. The plan's rate becomes the mean
// rate of the phases or of the trace.
func (p Plan) phased() Plan {
	if n := len(p.Workload.Trace); n > 0 {
		p.Workload.Rate = float64(n) / (p.Warmup + p.Duration).Seconds()
	}
	if len(p.Phases) == 0 {
		return p
	}
	base := p
	w := &p.Workload
	p.Faults, p.Warmup, p.Duration, w.Workers, w.Stretches = nil, 0, 0, 0, nil
	visits := 0.0
	for i := range p.Phases {
		x := &p.Phases[i]
		s := workload.Stretch{From: p.Warmup + p.Duration, Rate: base.rate(x), Burst: x.Burst, Workers: x.Workers}
		s.Workers = cmp.Or(s.Workers, base.Workload.Workers)
		s.To = s.From + x.Duration
		if x.Kind == warmUp {
			p.Warmup += x.Duration
		} else {
			p.Duration += x.Duration
		}
		w.Workers = max(w.Workers, s.Workers)
		visits += s.Visits()
		w.Stretches = append(w.Stretches, s)
	}
	w.Rate = visits / (p.Warmup + p.Duration).Seconds()
	return p
}

// steps returns the faults of a combination, and the mistakes in them. A fault of a phase is healed when the phase
// ends.
func (x *Combination) steps(scene faults.Scene) (steps []faults.Step, mistakes human.Mistakes) {
	p := &x.Plan
	if len(p.Phases) == 0 {
		steps, wrong := faults.Parse(p.Faults, scene, p.Warmup+p.Duration, p.Workload.Seed)
		for _, m := range wrong {
			mistakes.Add(human.Wrong("fault", "%s", m.Text).In(m.Item, ""))
		}
		return steps, mistakes
	}
	for i, s := range p.Workload.Stretches {
		phase := &p.Phases[i]
		more, wrong := faults.Parse(phase.Faults, scene, phase.Duration, p.Workload.Seed+uint64(i))
		for _, step := range more {
			if step.From += s.From; step.To > 0 {
				step.To += s.From
			} else {
				step.To = s.To
			}
			steps = append(steps, step)
		}
		for _, m := range wrong {
			of := phase.wrong("fault", "")
			of.Text = fmt.Sprintf("phases %s: fault %s", phase.Called(), m.Text)
			mistakes.Add(of)
		}
	}
	return steps, mistakes
}

// spans returns the phases as the meter needs them; nil if the plan has no phases.
func (p *Plan) spans() (spans []measure.Span) {
	if len(p.Phases) == 0 {
		return nil
	}
	for i, s := range p.Workload.Stretches {
		spans = append(spans, measure.Span{Name: p.Phases[i].Called(), From: s.From, To: s.To, Workers: s.Workers})
	}
	return spans
}

func (p *Plan) measuredPhases(measured []results.Run) (all []results.Phase) {
	for i := range measured {
		x, s := &p.Phases[i], &p.Workload.Stretches[i]
		phase := results.Phase{
			Name: x.Called(), Kind: x.Kind, Load: load(s, p.Workload.Open()), From: int64(s.From), To: int64(s.To),
			Faults: x.Faults,
		}
		phase.Take(&measured[i])
		all = append(all, phase)
	}
	return all
}

// steerable tells whether a user may change the rate during a run. It returns false if phases or a trace set the
// rate.
func (p *Plan) steerable() bool { return len(p.Workload.Stretches)+len(p.Workload.Trace) == 0 }

// load describes the load of a stretch in words.
func load(s *workload.Stretch, open bool) string {
	if !open {
		return human.Quantity(s.Workers, "worker")
	}
	r := s.Rate
	if s.Burst > 0 && r == (workload.Rate{}) {
		return human.Count(int64(s.Burst)) + " at once"
	}
	text := human.Number(r.First) + "/s"
	if r.First != r.Last {
		text += ".." + human.Number(r.Last) + "/s"
	}
	if r.Amplitude != 0 {
		text += fmt.Sprintf(" ± %s/s each %s", human.Number(r.Amplitude), human.Duration(r.Period))
	}
	if s.Burst > 0 {
		text = fmt.Sprintf("%s at once, %s", human.Count(int64(s.Burst)), text)
	}
	return text
}

// lookEvery is the time between two calls of Job.Hopeless, which may end a run early.
const lookEvery = time.Second

// gated wraps the function tell. The new function also calls Job.Hopeless, at most once every lookEvery. It ends the
// run if Hopeless returns a reason.
func (x *Run) gated(tell func(now, final time.Duration)) func(now, final time.Duration) {
	if x.job.Hopeless == nil {
		return tell
	}
	last := time.Duration(0)
	return func(now, final time.Duration) {
		tell(now, final)
		if now-last < lookEvery || x.run.Aborted != "" {
			return
		}
		last = now
		run, spans := x.meter.SoFar(now)
		run.Topology, run.Lock, run.Phases = x.run.Topology, x.run.Lock, x.combo.Plan.measuredPhases(spans)
		if x.run.Aborted = x.job.Hopeless(&run); x.run.Aborted != "" {
			x.abort(errors.New(x.run.Aborted))
		}
	}
}

// PhaseAt returns the name of the phase at a time of the run; empty if the plan has no phases.
func (c *Combination) PhaseAt(now time.Duration) string {
	for _, s := range c.Plan.spans() {
		if now < s.To {
			return s.Name
		}
	}
	return ""
}
