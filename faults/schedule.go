package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// None and Auto stand in place of the name of a fault. None means no fault; Auto means all faults that a correct lock
// survives.
const (
	None = "none"
	Auto = "auto"
)

type Step struct {
	Fault Fault
	Arg   string
	From  time.Duration // time since the run's start; with a Point, the fault waits for the point from then on
	To    time.Duration // time at which the fault is healed; 0 = it ends without a heal, or with the run
	Lasts time.Duration // how long the fault lasts; 0 = not given
	Moment
	Alone bool // the time was drawn at random, so the step waits until earlier steps have ended
}

// Stretched returns the step with all its times multiplied by the parameter.
func (s Step) Stretched(by int) Step {
	s.From, s.To = s.From*time.Duration(by), s.To*time.Duration(by)
	if lasts, err := time.ParseDuration(s.Arg); err == nil {
		s.Arg = (lasts * time.Duration(by)).String()
	}
	return s
}

// Injection returns the step as the history records it.
func (s Step) Injection(in Scene) history.Injection {
	return history.Injection{Name: s.name(), At: s.at(), From: s.From, To: s.To, Timed: !s.Alone && s.Point == "" &&
		s.To > 0, Effect: s.Fault.Effect(in)}
}

func (s Step) name() string {
	switch {
	case s.Arg != "":
		return s.Fault.Name + ":" + s.Arg
	case s.Lasts > 0:
		return s.Fault.Name + ":" + s.Lasts.String()
	}
	return s.Fault.Name
}

func (s Step) at() string {
	if s.Point != "" {
		return "@" + s.Moment.String()
	}
	return "@" + s.From.Round(time.Millisecond).String()
}

// String returns the step as on the command line.
func (s Step) String() string { return s.name() + s.at() }

// Parse reads a list of faults, such as kill-primary@2s,heal@5s or lost-grant,delay. An item is a name, an
// optional argument after a colon, and an optional time or point after an @. The item heal@TIME heals the faults
// before it. An item without a time gets a time that is drawn from the seed, in a part of the run of its own.
// Parse returns all errors, each with its item. If the Scene has no topology yet, Parse finds only errors that do
// not depend on the topology.
func Parse(items []string, s Scene, duration time.Duration, seed uint64) (steps []Step, mistakes human.Mistakes) {
	within := period{0, duration}
	var open []int // indices of the steps whose times will be drawn
	if slices.Equal(items, []string{Auto}) {
		within, items = amid(s, duration), nil
		list, _ := auto(s, within.to-within.from, seed)
		for i, f := range list {
			steps, open = append(steps, Step{Fault: f}), append(open, i)
		}
	}
	for _, item := range items {
		if item == None && len(items) == 1 {
			return nil, nil
		}
		step, heal, mistake := parse(item, s, duration)
		known := s.Topology != ""
		if mistake == "" && !heal && known {
			mistake = cmp.Or(unavailable(step.Fault, step.Arg, s), step.Fault.unknownName(step.Arg, s))
		}
		if mistake == "" && known && strings.Contains(step.Arg, holderParty) && s.Processes < 2 {
			mistake = processesNeeded
		}
		switch {
		case mistake != "":
			mistakes.Add(human.Mistake{Item: item, Text: item + ": " + mistake})
		case heal:
			healed := false
			for i := range steps {
				if steps[i].To == 0 && steps[i].From < step.From && !steps[i].Fault.Brief {
					steps[i].To, healed = step.From, true
				}
			}
			if !healed && len(mistakes) == 0 {
				mistakes.Add(human.Mistake{Item: item, Text: item +
					": no fault begins before it, as in kill-primary@2s,heal@5s"})
			}
		default:
			if step.From < 0 {
				open = append(open, len(steps))
			}
			steps = append(steps, step)
		}
	}
	place(steps, open, s, within, seed)
	return steps, mistakes
}

// parse reads one item. From is -1 if the item has no time, so that a time will be drawn. A duration of 0 means
// that the end of the run is not known.
func parse(item string, s Scene, duration time.Duration) (step Step, heal bool, mistake string) {
	name, at, timed := strings.Cut(item, "@")
	name, arg, _ := strings.Cut(name, ":")
	heal = name == "heal"
	ok := true
	if name == None || name == Auto {
		return step, false, "it stands alone: leave it out, or the others"
	}
	if step.Fault, ok = Find(name); !ok && !heal {
		return step, false, human.Instead(name, s.Source.names())
	}
	step.From = -1
	moment, pointed, mistake := s.Source.moment(at)
	switch d, err := time.ParseDuration(at); {
	case mistake != "":
	case heal && !timed:
		mistake = "when? As in heal@5s"
	case !timed:
	case pointed && !heal:
		step.Moment, step.From = moment, duration/10
	case err != nil || d < 0 || duration > 0 && d >= duration:
		mistake = s.Source.untimely(at, duration)
	default:
		step.From = d
	}
	if mistake == "" {
		mistake = step.argument(arg)
	}
	if mistake == "" && s.Source == OnWire && !heal {
		mistake = step.onWire(duration)
	}
	return step, heal, mistake
}

// untimely returns the error message for a wrong text after an @.
func (s Source) untimely(at string, duration time.Duration) string {
	hint, end := "", ""
	if _, err := strconv.Atoi(at); err == nil {
		hint = "; did you mean @" + at + "s?"
	}
	if duration > 0 {
		end = fmt.Sprintf(" to the end at %s", duration)
	}
	points := ""
	if all := s.points(); len(all) > 0 {
		points = ", or a point: " + strings.Join(all, ", ")
	}
	return fmt.Sprintf("@ takes a time from 0s%s%s%s", end, points, hint)
}

// argument parses the text after the name and a colon: the argument of the fault, or its duration if it begins at a
// point.
func (s *Step) argument(text string) (mistake string) {
	f := &s.Fault
	switch lasts, err := time.ParseDuration(text); {
	case f.Name == "", text == "" && (f.Message == nil || f.Message("") != Message{}):
	case f.Arg != nil && f.Arg(text) == "":
		s.Arg = text
	case f.Message == nil && s.Point != "" && err == nil && lasts > 0:
		s.Lasts = lasts
	case f.Arg == nil:
		return fmt.Sprintf("%s takes nothing after a colon; a time stands after an @, as in %s@2s", f.Name, f.Name)
	default:
		return f.Arg(text)
	}
	return ""
}

const processesNeeded = "needs workers in processes of their own: --processes 2 or more"

// unavailable returns the reason why a fault cannot be injected in a scene; empty if it can.
func unavailable(f Fault, arg string, s Scene) string {
	if why := f.misfit(s); why != "" {
		return why
	}
	if f.Redis && !s.Can.Ask() {
		return "needs Redis servers"
	}
	if f.Unavailable != nil {
		if why := f.Unavailable(s); why != "" {
			return why
		}
	}
	if !s.Can.Own {
		if why := f.abroad(arg, s); why != "" {
			return why
		}
	}
	if f.Needs.Processes && s.Processes < 2 {
		return processesNeeded
	}
	return ""
}

// abroad returns the reason why a fault cannot be injected into attached servers; empty if it can.
func (f Fault) abroad(arg string, s Scene) string {
	if f.UnavailableAttached != nil {
		if why := f.UnavailableAttached(arg); why != "" {
			return why
		}
	}
	for _, name := range f.Sends {
		if !slices.Contains(s.Can.Allowed, name) {
			return fmt.Sprintf("sends what can harm others who use the servers: --allow-destructive %s allows it",
				strings.Join(f.Sends, ","))
		}
	}
	return ""
}

type period struct{ from, to time.Duration }

// amid returns the part of a run in which faults may be active. The run begins and ends without faults. Only there
// can checkers distinguish a lock that does not recover from a lock that waits for the end of a fault.
func amid(s Scene, duration time.Duration) period {
	const calm = 2 * time.Second
	return period{min(calm, duration/6), duration - min(s.TTL+s.Recovery+calm, duration/3)}
}

// auto returns, in list, the faults that a correct lock survives in the scene. If the run is too short for all of
// them, the seed decides which ones are in list; the others are in late.
func auto(s Scene, duration time.Duration, seed uint64) (list, late []Fault) {
	var all []Fault
	for _, f := range All {
		if unavailable(f, "", s) == "" && f.Breaks(s) == "" {
			all = append(all, f)
		}
	}
	left := duration
	fits := make([]bool, len(all))
	for _, i := range rand.New(rand.NewPCG(seed, 1<<35)).Perm(len(all)) {
		if need := all[i].needs(s); need <= left {
			left -= need
			fits[i] = true
		}
	}
	for i, f := range all {
		if fits[i] {
			list = append(list, f)
		} else {
			late = append(late, f)
		}
	}
	return list, late
}

// LeftOut returns lines about the faults that --fault auto leaves out although a correct lock survives them. Each line
// names faults and the reason.
func LeftOut(s Scene, duration time.Duration, seed uint64) (lines []string) {
	if why := diesAlone(s); why != "" && crashWorker.Breaks(s) == "" && s.Processes < 2 {
		lines = append(lines, crashWorker.Name+": "+why)
	}
	within := amid(s, duration)
	list, late := auto(s, within.to-within.from, seed)
	if len(late) == 0 {
		return lines
	}
	var all time.Duration
	for _, f := range slices.Concat(list, late) {
		all += f.needs(s)
	}
	enough := duration
	for within := amid(s, enough); within.to-within.from < all; within = amid(s, enough) {
		enough = (enough + time.Second).Truncate(time.Second)
	}
	left := namesOf(late)
	slices.Sort(left)
	return append(lines, fmt.Sprintf("%s: the run is too short, there is time for all faults in %s",
		strings.Join(left, ", "), enough))
}

// length is a number of leases plus a duration.
type length struct {
	leases  float64
	besides time.Duration
}

func (l length) of(ttl time.Duration) time.Duration {
	return time.Duration(l.leases*float64(ttl)) + l.besides
}

// latest is a fraction of a fault's own period. The fault must begin before this part of the period is over.
const latest = 0.30

// needs returns the length of the period that a fault needs to begin, to end and to have no effect any more.
func (f Fault) needs(s Scene) time.Duration {
	const least = time.Second
	over := f.lasts.of(s.TTL)
	if e := f.Effect(s); e.StopsService() {
		over += s.Recovery
	}
	return max(least, time.Duration(float64(over)/(1-latest)))
}

// place draws the times of the steps whose indices are in open. Each step gets a period of the run in proportion to
// its needs. The fault begins in the first 30 % of its period and is healed after 40 to 60 % of it.
func place(steps []Step, open []int, in Scene, within period, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1<<33))
	r.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	all, begin := time.Duration(0), within.from
	for _, i := range open {
		all += steps[i].Fault.needs(in)
	}
	for _, i := range open {
		part := time.Duration(float64(within.to-within.from) * float64(steps[i].Fault.needs(in)) / float64(all))
		steps[i].Alone = true
		steps[i].From = begin + time.Duration((0.05+(latest-0.05)*r.Float64())*float64(part))
		steps[i].To = begin + time.Duration((0.40+0.20*r.Float64())*float64(part))
		begin += part
	}
}

func Names() []string { return namesOf(All) }

func namesOf(list []Fault) []string { return human.Names(list, func(f Fault) string { return f.Name }) }
