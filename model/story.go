package model

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
)

// Cost orders stories by four counts, the most important first: deviations, accidents outside the plan, priors, losses
// by planned faults. A prior says how unusual a deviation or a planned loss is.
type Cost uint64

const (
	oneFault     = Cost(1)
	onePrior     = oneFault << 12
	oneAccident  = onePrior << 28
	oneDeviation = oneAccident << 12
)

// and adds the costs of two parts of a page. Each component saturates at its maximum.
func (c Cost) and(d Cost) Cost {
	add := func(unit, next Cost) Cost {
		return min(c%next/unit+d%next/unit, next/unit-1) * unit
	}
	return min(c/oneDeviation+d/oneDeviation, 1<<12-1)*oneDeviation + add(oneAccident, oneDeviation) +
		add(onePrior, oneAccident) + add(oneFault, onePrior)
}

// Deviations is the number of deviations.
func (c Cost) Deviations() int { return int(c / oneDeviation) }

// Accidents is the number of losses by accidents.
func (c Cost) Accidents() int { return int(c % oneDeviation / oneAccident) }

// Faults is the number of losses by planned faults.
func (c Cost) Faults() int { return int(c % onePrior) }

// counted is the cost without the priors.
func (c Cost) counted() Cost { return c - c%oneAccident + c%onePrior }

// String lists the parts.
func (c Cost) String() string {
	return fmt.Sprintf("%d deviations, %d accidents, priors %d, %d faults", c.Deviations(), c.Accidents(),
		uint64(c%oneAccident/onePrior), c.Faults())
}

// Event says what a step is.
type Event uint8

const (
	Effect    Event = iota // a call has its effect, or its answer shows the state
	LeaseEnd               // the lease of a hold ends
	Forgotten              // the servers forget a hold
	Restored               // a hold that was over comes back, and the servers forget the current holder
	Stretched              // the lease of a hold lasts longer than T2
)

var events = [...]string{"effect", "lease-end", "forgotten", "restored", "stretched"}

// String returns the event's name in files.
func (e Event) String() string { return events[e] }

// Step is one thing that happens in a story.
type Step struct {
	At    time.Duration
	Event Event
	Call  history.ID // for Effect: the call
	Kind  Kind       // of the call
	// Unanswered says that the call had no answer but an effect. A call without an answer and without a step had
	// no effect.
	Unanswered bool
	Hold       int32      // the subject of the step
	Window     int32      // for Forgotten, Restored and Stretched: index in Page.Windows; -1 = none
	Planned    bool       // the window is a fault of the plan
	Deviation  *Deviation // nil = the lock behaves correctly
	// Elsewhere says that a call changes nothing in the state. Either another server answered, which still had a hold
	// that was forgotten; or a release that does not check the owner freed nothing.
	Elsewhere bool
	// Against is the hold that a deviation harms; -1 = none.
	Against int32
	// Began and TTL describe the lease of a restored hold.
	Began, TTL time.Duration
	// Again says that a release was sent twice, and the second one freed another holder's lock.
	Again bool
	// Anew says that a re-entry began its hold again.
	Anew bool
	// Alone says that only the new hold has the lock after a double grant. With several sites, both holds may have
	// some of the sites.
	Alone bool
}

// Status says how far a page is explained.
type Status uint8

const (
	Explained   Status = iota // Steps are the story
	Unexplained               // no story is possible without a deviation, and the search found none with deviations
	Unknown                   // the search hit its bounds before it could say whether a story is possible
	NotModelled               // the model cannot express the page: Missing says why
)

// Story is the cheapest story of a page.
type Story struct {
	Status  Status
	Missing string
	Cost    Cost
	// Steps are in the order of the story. Without Bounds.Instants, they cover only the parts of the page that needed
	// a search.
	Steps []Step
	// Unexplained are the calls at which no state was possible, one for each part of the page without a story.
	Unexplained []history.ID
	// Looked is the number of states that the search looked at.
	Looked int
}

// Bounds limit the search.
type Bounds struct {
	Instants bool // give the instant of each call
	// States is the largest number of states to look at for each part of a page; 0 = DefaultStates.
	States int
	// All is the largest number of states to look at for the whole page; 0 = unlimited.
	All int
}

// DefaultStates is the default of Bounds.States. A search through that number of states takes about half a second.
const DefaultStates = 100_000

// Explain finds the cheapest story of a page.
func Explain(p *Page, b Bounds) Story {
	return newExplainer(p, b).explain()
}

// Broke lists the holds that a step ends although they were neither released nor over. The argument held lists the
// holds that have the lock before the step.
func (s *Step) Broke(held []int32) (list []int32) {
	switch {
	case s.Event == Forgotten, s.Event == LeaseEnd && s.Deviation != nil:
		return []int32{s.Hold}
	case s.Deviation == &Deviations[foreignRelease]:
		return []int32{s.Against}
	case s.takesAll():
		list = slices.DeleteFunc(slices.Clone(held), func(h int32) bool { return h == s.Hold })
		if s.Against >= 0 && !slices.Contains(list, s.Against) {
			list = append(list, s.Against)
		}
	}
	return list
}

// takesAll reports whether only the step's hold has the lock afterwards.
func (s *Step) takesAll() bool {
	return s.Event == Restored || s.Deviation == &Deviations[silentReacquire] || s.Deviation == &Deviations[phantom] ||
		s.Deviation == &Deviations[doubleGrant] && s.Alone
}

// After returns the holds that have the lock after a step. The argument held lists those that have it before the step.
func (s *Step) After(held []int32) []int32 {
	broke := s.Broke(held)
	held = slices.DeleteFunc(slices.Clone(held), func(h int32) bool { return slices.Contains(broke, h) })
	ends := s.Event == LeaseEnd || s.Event == Effect && s.Kind == Release && s.Deviation == nil && !s.Elsewhere
	begins := s.takesAll() || s.Event == Effect && (s.Kind == Grant || s.Anew)
	switch i := slices.Index(held, s.Hold); {
	case ends && i >= 0:
		held = slices.Delete(held, i, i+1)
	case begins && i < 0:
		held = append(held, s.Hold)
	}
	return held
}
