package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Injection is a fault of a run, planned or injected by hand. Its Fault and Heal operations refer to it by its index
// in Header.Faults.
type Injection struct {
	Name   string        `json:"name"`
	At     string        `json:"at"`                // the requested time: 2s, @granted
	From   time.Duration `json:"from_ns"`           // planned start, if At is a time
	To     time.Duration `json:"to_ns,omitempty"`   // planned heal; 0 = it ends without a heal
	Node   string        `json:"node,omitempty"`    // the requested server, if any
	ByHand bool          `json:"by_hand,omitempty"` // not in the plan
	Timed  bool          `json:"timed,omitempty"`   // From and To were requested; otherwise they were drawn at random
	Effect Effect        `json:"effect,omitzero"`
}

// Effect says what a fault can do, so that checkers depend on neither its name nor its note. Checkers treat the
// zero Effect as unknown: the fault may have done anything.
type Effect struct {
	Hits   []Party `json:"hits,omitempty"`
	Loses  Loss    `json:"loses,omitempty"`
	Blocks bool    `json:"blocks,omitempty"` // servers may not answer while it lasts
	Spares bool    `json:"spares,omitempty"` // a majority of the independent sites is unaffected
}

// Party is a part of the run that a fault can hit.
type Party string

const (
	Servers Party = "servers"
	Clocks  Party = "clocks"  // clocks of servers
	Links   Party = "links"   // messages are late or lost
	Clients Party = "clients" // whole worker processes: nothing in them runs, not even renewals
	Holders Party = "holders" // workers during visits; the rest of their process runs on
	Nobody  Party = "nobody"  // the run was changed but nothing was broken
)

// Loss is the kind of acknowledged data that a server may lose.
type Loss string

const (
	NoLoss      Loss = ""
	LosesKeys   Loss = "keys"   // the keys are lost, and no other server has them
	LosesWrites Loss = "writes" // a server that may lack the last writes takes over
	LosesTime   Loss = "time"   // leases end early or late
)

var (
	parties = []Party{Servers, Clocks, Links, Clients, Holders, Nobody}
	losses  = []Loss{NoLoss, LosesKeys, LosesWrites, LosesTime}
)

// Known reports whether the effect is known. The zero Effect is not.
func (e *Effect) Known() bool { return len(e.Hits) > 0 }

// Hit reports whether the fault may hit a party.
func (e *Effect) Hit(p Party) bool { return !e.Known() || slices.Contains(e.Hits, p) }

// BreaksPromises reports whether a server may forget a grant because of the fault.
func (e *Effect) BreaksPromises() bool { return !e.Known() || e.Loses != NoLoss && !e.Spares }

// CutsLinks reports whether the fault is known to cut links, and not only to delay messages.
func (e *Effect) CutsLinks() bool { return e.Known() && e.Hit(Links) && e.Blocks }

// StopsService reports whether the fault may block all service.
func (e *Effect) StopsService() bool { return !e.Known() || e.Blocks && !e.Spares }

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
