package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/history"
)

// Source is the kind of load that a fault disturbs.
type Source int

const (
	OfWorkers Source = iota // the suite's workers, which use a lock
	OfService               // a service under test, which does its own locking
	OnWire                  // a program under test; a proxy reads its traffic to the servers
)

// Fits tells whether a fault can disturb this kind of load.
func (f Fault) Fits(s Source) bool {
	switch n := f.Needs; {
	case f.Sources != nil:
		return slices.Contains(f.Sources, s)
	case s == OnWire: // of a program's clients, a fault can disturb messages only
		return !n.Processes && !n.Clock && !n.Power &&
			slices.Contains(f.Effect(Scene{Sites: 1, Nodes: 4}).Hits, history.Servers)
	}
	return s == OfWorkers
}

// Fitting lists the names of the faults that can disturb this kind of load.
func Fitting(s Source) []string {
	return namesOf(slices.DeleteFunc(slices.Clone(All), func(f Fault) bool { return !f.Fits(s) }))
}

// Points at which a fault can begin: a point in a worker's visit, or a reply to a command of a program.
const (
	Refused  = "refused"  // after a refused try, before the next try
	Granted  = "granted"  // after a grant; a worker has received it, a program has not
	Loaded   = "loaded"   // between load and store of the counter
	Between  = "between"  // between two commands of a broken lock; a correct lock would send them as one
	Extended = "extended" // after a lease was extended
	Released = "released" // after the lock was released
	Read     = "read"     // after the lock's key was read
)

// Points lists the points of a worker's visit.
var Points = []string{Refused, Granted, Loaded, Between}

// Commands lists the points of a program: replies to its commands on the lock's key.
var Commands = []string{Granted, Refused, Extended, Released, Read}

// points lists the points at which a fault can begin under this kind of load. A service has none, because the suite
// does not see its commands.
func (s Source) points() []string {
	return map[Source][]string{OfWorkers: Points, OnWire: Commands}[s]
}

// Moment is the occurrence of a point at which a fault begins: the n-th one, or every n-th.
type Moment struct {
	Point string // name of the point; empty = the fault begins at a time
	Nth   int    // number of the occurrence, from 1; 0 with Each 0 = the first
	Each  int    // the fault begins at each occurrence whose number is a multiple of this; 0 = once
}

// Hit tells whether a fault with this Moment begins at the n-th occurrence of the point.
func (m Moment) Hit(n int) bool {
	return m.Each > 0 && n%m.Each == 0 || m.Each == 0 && n == max(m.Nth, 1)
}

// String returns the Moment as it stands after the @ on the command line.
func (m Moment) String() string {
	switch {
	case m.Each > 0:
		return fmt.Sprintf("%s/%d", m.Point, m.Each)
	case m.Nth > 0:
		return fmt.Sprintf("%s:%d", m.Point, m.Nth)
	}
	return m.Point
}

// moment parses texts such as granted, granted:5 or granted/10. The result ok is false if the text does not begin
// with a point of this kind of load.
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

// onWire returns an error message if a step does not fit a program under test; empty if it fits.
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

// Hit tells whether the step begins at the n-th occurrence of its point, counted from 1. A step that delays replies
// and has no number begins at every occurrence.
func (s Step) Hit(n int) bool {
	return s.Moment.Hit(n) || s.Nth+s.Each == 0 && s.Fault.Message != nil && s.Fault.Message(s.Arg).Delay > 0
}

// names lists the words that a plan of faults may contain for this kind of load.
func (s Source) names() []string {
	if s == OfWorkers {
		return append(Names(), Auto, None)
	}
	return append(Fitting(s), None)
}

// unsaid is the default length of a fault that begins at a program's command.
const unsaid = 2 * time.Second

// Force returns the length of a fault that begins at a program's command: the given length, else the delay of its
// message, else a default. 0 means that the fault is over immediately.
func (s Step) Force() time.Duration {
	switch {
	case s.Lasts > 0 || s.Fault.Passes:
		return s.Lasts
	case s.Fault.Message != nil:
		return s.Fault.Message(s.Arg).Delay
	}
	return unsaid
}

// misfit returns the reason why a fault does not fit the load; empty if it fits.
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
