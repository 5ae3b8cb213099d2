package results

import (
	"fmt"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Woken says what came of the tries that one kind of wake-up made workers begin.
type Woken struct {
	By     string `json:"by"`     // as history.Wake has it
	Tries  int64  `json:"tries"`  // of the visits that were due within the measurement
	Grants int64  `json:"grants"` // of these tries
	// Handoff is the hand-off to a worker that was woken so.
	Handoff Percentiles `json:"handoff"`
}

// kindsOfWake is how many history knows.
const kindsOfWake = int(history.LeaseEnd) + 1

// wakeMeter counts for one kind of wake-up.
type wakeMeter struct {
	tries, grants int64
	handoff       *Latency // nil until there is one: most locks know one or two ways
}

func (w *wakeMeter) try(granted bool) {
	if w.tries++; granted {
		w.grants++
	}
}

func (w *wakeMeter) handed(d time.Duration) {
	if w.handoff == nil {
		w.handoff = newFine()
	}
	w.handoff.record(d)
}

// wokenBy lists the ways in which workers were woken, in the order of history's.
func (m *Meter) wokenBy() []Woken {
	all := []Woken{}
	for i := range m.wakes {
		w := &m.wakes[i]
		if w.tries == 0 {
			continue
		}
		x := Woken{By: history.Wake(i).String(), Tries: w.tries, Grants: w.grants}
		if w.handoff != nil {
			x.Handoff = w.handoff.Summary()
		}
		all = append(all, x)
	}
	return all
}

// wokenText says how those who got the lock had waited, and how many tries one of them took.
func (r *Run) wokenText() string {
	var sum int64
	for _, w := range r.Waiting.Woken {
		sum += w.Grants
	}
	var parts []string
	for _, w := range r.Waiting.Woken {
		if w.Grants == 0 {
			parts = append(parts, w.By+" never granted, tried "+human.Count(w.Tries)+" times")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s of the grants (%s tries each)", w.By, human.Percent(float64(w.Grants)/float64(sum)),
			human.Number(float64(w.Tries)/float64(w.Grants))))
	}
	return strings.Join(parts, "; ")
}

// handoffs are the ways in which waiters were woken that were handed the lock, if there are several.
func (r *Run) handoffs() (split []Woken) {
	for _, w := range r.Waiting.Woken {
		if w.Handoff.Count > 0 {
			split = append(split, w)
		}
	}
	if len(split) < 2 {
		return nil
	}
	return split
}
