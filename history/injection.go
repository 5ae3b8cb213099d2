package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Injection is a fault of a run: one of its plan, or one that somebody injected while it went on. A Fault and its Heal
// name it by its place in Header.Faults.
type Injection struct {
	Name   string        `json:"name"`
	At     string        `json:"at"`                // when, as it was asked for: 2s, @granted
	From   time.Duration `json:"from_ns"`           // when it was to begin, if that is a time
	To     time.Duration `json:"to_ns,omitempty"`   // when it was to be healed; 0 = it passes
	Node   string        `json:"node,omitempty"`    // where, if that was asked for
	ByHand bool          `json:"by_hand,omitempty"` // it is in no plan
	Timed  bool          `json:"timed,omitempty"`   // From and To were asked for; otherwise they were drawn
	Effect Effect        `json:"effect,omitzero"`
}

// Effect says what a fault can do, so that judges need to know neither its name nor its note. The zero Effect says
// nothing: the fault may have done anything.
type Effect struct {
	Hits   []Party `json:"hits,omitempty"`
	Loses  Loss    `json:"loses,omitempty"`
	Blocks bool    `json:"blocks,omitempty"` // servers may not answer while it is in effect
	Spares bool    `json:"spares,omitempty"` // of independent sites it leaves a majority as it was
}

// Party is somebody that a fault hits.
type Party string

// The parties.
const (
	Servers Party = "servers"
	Clocks  Party = "clocks"  // of servers
	Links   Party = "links"   // messages are late or lost
	Clients Party = "clients" // worker processes: nothing of them runs, no renewal either
	Holders Party = "holders" // workers in their visits; the rest of their processes runs on
	Nobody  Party = "nobody"  // the run was changed, and nothing was broken
)

// Loss is what a server may lose of what it acknowledged.
type Loss string

// The losses.
const (
	NoLoss      Loss = ""
	LosesKeys   Loss = "keys"   // the keys, and no other server has them
	LosesWrites Loss = "writes" // another server takes over that may lack the last writes
	LosesTime   Loss = "time"   // leases end early or late
)

var (
	parties = []Party{Servers, Clocks, Links, Clients, Holders, Nobody}
	losses  = []Loss{NoLoss, LosesKeys, LosesWrites, LosesTime}
)

// Known tells whether anything is said of what the fault can do.
func (e *Effect) Known() bool { return len(e.Hits) > 0 }

// Hit tells whether the fault hits a party, as far as is known.
func (e *Effect) Hit(p Party) bool { return !e.Known() || slices.Contains(e.Hits, p) }

// BreaksPromises tells whether a server may give up, because of the fault, what it had granted.
func (e *Effect) BreaksPromises() bool { return !e.Known() || e.Loses != NoLoss && !e.Spares }

// StopsService tells whether, because of the fault, nobody may be served.
func (e *Effect) StopsService() bool { return !e.Known() || e.Blocks && !e.Spares }

// mistakes names what an injection says that means nothing.
func (i *Injection) mistakes() (list []string) {
	for _, p := range i.Effect.Hits {
		if !slices.Contains(parties, p) {
			list = append(list, fmt.Sprintf("hits %q; there is %s", p, joined(parties)))
		}
	}
	if !slices.Contains(losses, i.Effect.Loses) {
		list = append(list, fmt.Sprintf("loses %q; there is %s", i.Effect.Loses, joined(losses[1:])))
	}
	if i.From < 0 || i.To < 0 || i.To != 0 && i.To < i.From {
		list = append(list, fmt.Sprintf("is from %v to %v", i.From, i.To))
	}
	return list
}

func joined[T ~string](all []T) string {
	words := make([]string, len(all))
	for i, w := range all {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}
