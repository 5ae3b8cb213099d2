package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/history"
)

// Source says where the operations come from that a fault disturbs.
type Source int

// The sources.
const (
	OfWorkers Source = iota // the suite's workers with a lock
	OfService               // a visited service with its own lock
	OnWire                  // a program whose messages to the servers are read
)

// Fits tells whether a fault can be injected into operations of that source.
func (f Fault) Fits(s Source) bool {
	switch n := f.Needs; {
	case f.Sources != nil:
		return slices.Contains(f.Sources, s)
	case s == OnWire: // the suite does not control a program's clients
		return !n.Processes && !n.Clock && !n.Power &&
			slices.Contains(f.Effect(Scene{Sites: 1, Nodes: 4}).Hits, history.Servers)
	}
	return s == OfWorkers
}

// Fitting names the faults that fit a source.
func Fitting(s Source) []string {
	return namesOf(slices.DeleteFunc(slices.Clone(All), func(f Fault) bool { return !f.Fits(s) }))
}

// The points at which workers can be caught, and the kinds of a program's commands that can be disturbed.
const (
	Refused  = "refused"  // right after a refused try, before the next one
	Granted  = "granted"  // right after a grant: the worker knows of it, while a program does not yet
	Loaded   = "loaded"   // between load and store
	Between  = "between"  // between the two commands of a lock that needs two
	Extended = "extended" // a lease was extended
	Released = "released" // the lock was given back
	Read     = "read"     // the lock's key was read
)

// Points lists the points of a worker's visit.
var Points = []string{Refused, Granted, Loaded, Between}

// Commands lists the points of a program: the replies to its commands about locks.
var Commands = []string{Granted, Refused, Extended, Released, Read}

// points lists the points of a source.
func (s Source) points() []string {
	if s == OnWire {
		return Commands
	}
	return Points
}

// Moment says at which occurrence of a point a step begins: the n-th, or every n-th.
type Moment struct {
	Point string // empty = the step begins at a time
	Nth   int    // the occurrence, from 1; 0 = no single one
	Each  int    // 0 = once
}

// Hit tells whether the n-th occurrence of the point (from 1) is the moment.
func (m Moment) Hit(n int) bool {
	return m.Each > 0 && n%m.Each == 0 || m.Each == 0 && n == max(m.Nth, 1)
}

// String is the moment in the form of the command line: what stands after the @.
func (m Moment) String() string {
	switch {
	case m.Each > 0:
		return fmt.Sprintf("%s/%d", m.Point, m.Each)
	case m.Nth > 0:
		return fmt.Sprintf("%s:%d", m.Point, m.Nth)
	}
	return m.Point
}

// moment parses granted, granted:5 or granted/10; ok tells whether the text begins with a point of the source.
func (s Source) moment(text string) (m Moment, ok bool, mistake string) {
	at := strings.IndexAny(text, ":/")
	if m.Point = text; at >= 0 {
		m.Point = text[:at]
	}
	if !slices.Contains(s.points(), m.Point) {
		return m, false, ""
	}
	if at < 0 {
		return m, true, ""
	}
	n, err := strconv.Atoi(text[at+1:])
	if err != nil || n < 1 {
		return m, true, fmt.Sprintf("%q: :3 is the third such moment, /10 every tenth", text[at+1:])
	}
	if m.Nth = n; text[at] == '/' {
		m.Nth, m.Each = 0, n
	}
	return m, true, ""
}

// onWire returns a mistake in a step for a program that makes its own load.
func (s *Step) onWire(duration time.Duration) string {
	switch {
	case s.Point == "" && (s.Fault.Message != nil || s.From < 0 && duration == 0):
		return fmt.Sprintf("a fault is NAME@MOMENT, as in %s@granted:3; there are %s", s.Fault.Name,
			strings.Join(Commands, ", "))
	case s.Fault.Message != nil && s.Point == Refused && s.Fault.Message(s.Arg).Refuse != "":
		return "a command is refused before it is executed: @granted, for one that would be granted the lock"
	}
	return ""
}

// Hit tells whether the step begins at the n-th occurrence of its point, from 1. A delay without a number begins at
// each reply.
func (s Step) Hit(n int) bool {
	return s.Moment.Hit(n) || s.Nth+s.Each == 0 && s.Fault.Message != nil && s.Fault.Message(s.Arg).Delay > 0
}

// names lists the words that a plan of faults accepts for a source.
func (s Source) names() []string {
	if s == OfWorkers {
		return append(Names(), Auto, None)
	}
	return append(Fitting(s), None)
}

// unsaid is how long a fault lasts that begins at a program's command, if no time is given.
const unsaid = 2 * time.Second

// Force returns how long a step that begins at a program's command is in force.
func (s Step) Force() time.Duration {
	switch {
	case s.Lasts > 0 || s.Fault.Passes:
		return s.Lasts
	case s.Fault.Message != nil:
		return s.Fault.Message(s.Arg).Delay
	}
	return unsaid
}

// misfit says why a fault does not fit the scene's source.
func (f Fault) misfit(s Scene) string {
	programs := f.Fits(OfService)
	switch {
	case programs && s.Programs > 0:
		return ""
	case programs && s.Source != OnWire:
		return "needs a service that the suite starts: verify http --serve"
	case programs:
		return "it breaks the program, and there is no command"
	case f.Fits(s.Source) && (s.Source != OnWire || f.Sources != nil || s.Can.Own):
		return ""
	case f.Fits(s.Source):
		return "it breaks the server, which is possible only where it is ours: with --topology"
	case s.Source == OfService:
		return "breaks servers or workers of locks, of which a service has none; there is " +
			strings.Join(Fitting(OfService), ", ")
	case s.Source == OnWire:
		return "breaks workers of the suite, or what only they have; there is " + strings.Join(Fitting(OnWire), ", ")
	}
	return "breaks single messages of a program: verify wire; there is " + strings.Join(Fitting(OfWorkers), ", ")
}
