package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"hammerlock/history"
)

// The words that stand for no fault, and for every fault that a right lock survives.
const (
	None = "none"
	Auto = "auto"
)

// Step is one fault of a plan.
type Step struct {
	Fault Fault
	Arg   string
	From  time.Duration // since the run's start; when to look for a worker if there is a Point
	To    time.Duration // when it is healed; 0 = by itself, or at the end
	Point string        // catch a worker there first; empty = none
	Alone bool          // placed by the seed: it waits until others that were are over
}

// Injection is the step as a history keeps it, in a scene.
func (s Step) Injection(in Scene) history.Injection {
	return history.Injection{Name: s.name(), At: s.at(), From: s.From, To: s.To, Effect: s.Fault.Effect(in)}
}

func (s Step) name() string {
	if s.Arg != "" {
		return s.Fault.Name + ":" + s.Arg
	}
	return s.Fault.Name
}

func (s Step) at() string {
	if s.Point != "" {
		return "@" + s.Point
	}
	return "@" + s.From.Round(time.Millisecond).String()
}

// String writes the step as the command line takes it.
func (s Step) String() string { return s.name() + s.at() }

// Parse reads a list of faults, as in kill-primary@2s,heal@5s or lost-grant,delay: a name, perhaps with an argument
// after a colon, perhaps with a time or a point after an @; heal@TIME heals what began before. Those without a time
// are placed by the seed, each in a part of the run of its own. It returns all mistakes.
func Parse(items []string, s Scene, duration time.Duration, seed uint64) (steps []Step, mistakes []string) {
	if slices.Equal(items, []string{Auto}) {
		items = auto(s)
	}
	var open []int // by place in items: steps that the seed places
	for _, item := range items {
		if item == None && len(items) == 1 {
			return nil, nil
		}
		step, heal, mistake := parse(item, duration)
		if mistake == "" && !heal {
			mistake = possible(step.Fault, s)
		}
		if mistake == "" && strings.Contains(step.Arg, Holder) && s.Processes < 2 {
			mistake = processesNeeded
		}
		switch {
		case mistake != "":
			mistakes = append(mistakes, "--fault "+item+": "+mistake)
		case heal:
			for i := range steps {
				if steps[i].To == 0 && steps[i].From < step.From {
					steps[i].To = step.From
				}
			}
		default:
			if step.From < 0 {
				open = append(open, len(steps))
			}
			steps = append(steps, step)
		}
	}
	place(steps, open, duration, seed)
	return steps, mistakes
}

// parse reads one item. Its From is negative if the seed is to place it.
func parse(item string, duration time.Duration) (step Step, heal bool, mistake string) {
	name, at, timed := strings.Cut(item, "@")
	name, step.Arg, _ = strings.Cut(name, ":")
	heal = name == "heal"
	ok := true
	if step.Fault, ok = Find(name); !ok && !heal {
		return step, false, "there is " + strings.Join(Names(), ", ") + ", " + Auto + " or " + None
	}
	step.From = -1
	switch {
	case heal && !timed:
		return step, heal, "when? As in heal@5s"
	case !timed:
	case slices.Contains(Points, at) && !heal:
		step.Point, step.From = at, duration/10
	default:
		d, err := time.ParseDuration(at)
		if err != nil || d < 0 || d >= duration {
			return step, heal, fmt.Sprintf("@ takes a time from 0s to the run's end at %s, or a point: %s", duration, strings.Join(Points, ", "))
		}
		step.From = d
	}
	return step, heal, ""
}

const processesNeeded = "needs workers in processes of their own: --processes 2 or more"

// possible says why a fault cannot be had in a scene; empty if it can.
func possible(f Fault, s Scene) string {
	if f.On != nil {
		if why := f.On(s); why != "" {
			return why
		}
	}
	if f.Needs.Processes && s.Processes < 2 {
		return processesNeeded
	}
	return ""
}

// auto is every fault that a right lock survives there.
func auto(s Scene) (names []string) {
	for _, f := range All {
		if possible(f, s) == "" && f.Breaks(s) == "" {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return []string{None}
	}
	return names
}

// place draws when the open steps begin and are healed: each has an equal part of the run, begins in its first
// third and is healed in the second.
func place(steps []Step, open []int, duration time.Duration, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1<<33))
	r.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	for n, i := range open {
		part := duration / time.Duration(len(open))
		begin := part * time.Duration(n)
		steps[i].Alone = true
		steps[i].From = begin + time.Duration((0.05+0.25*r.Float64())*float64(part))
		steps[i].To = begin + time.Duration((0.40+0.20*r.Float64())*float64(part))
	}
}

// Names lists the faults.
func Names() []string {
	var names []string
	for _, f := range All {
		names = append(names, f.Name)
	}
	return names
}
