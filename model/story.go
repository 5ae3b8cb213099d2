package model

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
)

// Cost orders stories: first the number of deviations of the lock counts, then accidents without a plan, then how usual
// the deviations and the losses by planned faults are, then how many of these there are.
type Cost uint64

const (
	oneFault     = Cost(1)
	onePrior     = oneFault << 12
	oneAccident  = onePrior << 28
	oneDeviation = oneAccident << 12
)

// and is the cost of two parts of a page. Each of its numbers stays at its greatest value.
func (c Cost) and(d Cost) Cost {
	add := func(unit, next Cost) Cost {
		return min(c%next/unit+d%next/unit, next/unit-1) * unit
	}
	return min(c/oneDeviation+d/oneDeviation, 1<<12-1)*oneDeviation + add(oneAccident, oneDeviation) +
		add(onePrior, oneAccident) + add(oneFault, onePrior)
}

// Deviations is how many deviations of the lock a story of this cost contains.
func (c Cost) Deviations() int { return int(c / oneDeviation) }

// Accidents is how many losses by accidents it contains.
func (c Cost) Accidents() int { return int(c % oneDeviation / oneAccident) }

// Faults is how many losses by planned faults it contains.
func (c Cost) Faults() int { return int(c % onePrior) }

// counted is the cost without how usual the deviations are.
func (c Cost) counted() Cost { return c - c%oneAccident + c%onePrior }

// String lists the parts.
func (c Cost) String() string {
	return fmt.Sprintf("%d deviations, %d accidents, priors %d, %d faults", c.Deviations(), c.Accidents(),
		uint64(c%oneAccident/onePrior), c.Faults())
}

// Event says what a step is.
type Event uint8

// The events.
const (
	Effect    Event = iota // a call has its effect, or shows what it was answered
	LeaseEnd               // the lease of a hold ends
	Forgotten              // the servers forget a hold
	Restored               // the servers have a hold again that was over, and forget who has it now
	Stretched              // the lease of a hold lasts longer than T2
)

var events = [...]string{"effect", "lease-end", "forgotten", "restored", "stretched"}

// String is the event's name in files.
func (e Event) String() string { return events[e] }

// Step is one thing that happens in a story.
type Step struct {
	At    time.Duration // the instant
	Event Event
	Call  history.ID // Effect: whose effect it is
	Kind  Kind       // of the call
	// Unanswered says that the call had no answer, and had its effect all the same. A call without an answer and
	// without a step had no effect.
	Unanswered bool
	Hold       int32      // what the step is about
	Window     int32      // Forgotten, Restored, Stretched: in Page.Windows; -1 = none
	Planned    bool       // that is a fault of the plan
	Deviation  *Deviation // nil = the lock is right to do this
	// Elsewhere says that a call changes nothing here: another server answers, which still has a hold that was
	// forgotten, or it is a release that does not look whose the lock is, and may free nothing.
	Elsewhere bool
	// Against is the hold that a deviation is against; -1 = none.
	Against int32
	// Began and TTL are of the lease of a hold that is restored.
	Began, TTL time.Duration
	// Again says that a release frees the lock of another because it was sent again.
	Again bool
	// Anew says that a re-entry began its hold once more.
	Anew bool
	// Alone says that after a double grant the new hold has the lock alone. Of several sites both may have some.
	Alone bool
}

// Status says what is known of a page.
type Status uint8

// The statuses.
const (
	Explained   Status = iota // Steps are the story
	Unexplained               // no story is possible without a deviation, and the search found none with deviations
	Unknown                   // the bounds of the search were too small to say whether a story is possible
	NotModelled               // the model has no word for something: Missing says for what
)

// Story is the cheapest that explains a page.
type Story struct {
	Status  Status
	Missing string
	Cost    Cost
	// Steps are in the order of the story. Where Bounds.Instants is false they are those of the parts of the page for
	// which the calls and the ends of leases are not enough.
	Steps []Step
	// Unexplained are the calls at which no state was possible, in each part of the page for which the search found no
	// story.
	Unexplained []history.ID
	// Looked is at how many states the search has looked.
	Looked int
}

// Bounds limit the search.
type Bounds struct {
	Instants bool // the story has the instant of each call
	// States is how many states the search may look at for each part of a page; 0 = DefaultStates.
	States int
	// All is how many it may look at for the whole page; 0 = any number.
	All int
}

// DefaultStates is the bound of a search that names none. It takes about half a second.
const DefaultStates = 100_000

// Explain finds the cheapest story of a page.
func Explain(p *Page, b Bounds) Story {
	return newExplainer(p, b).explain()
}

// Broke lists the holds of those that have the lock which end in a step, although they neither gave it back nor had a
// lease that was over.
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

// takesAll tells whether only the hold of a step has the lock after it.
func (s *Step) takesAll() bool {
	return s.Event == Restored || s.Deviation == &Deviations[silentReacquire] || s.Deviation == &Deviations[phantom] ||
		s.Deviation == &Deviations[doubleGrant] && s.Alone
}

// After is who has the lock after a step.
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

// Answers tells whether a step is a deviation that is no more than a wrong answer: it changes nothing in the servers.
func (s *Step) Answers() bool {
	switch s.Deviation {
	case &Deviations[falseRelease], &Deviations[doubleRelease], &Deviations[falseRefusal], &Deviations[falseExtension]:
		return true
	}
	return false
}
