package measure

import (
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

// wakes counts tries and hand-offs by the reason why the waiting worker woke up.
type wakes [int(history.LeaseEnd) + 1]struct {
	tries, grants int64
	// nil until the first hand-off, because few of the reasons occur with a given lock
	handoff *histogram
}

func (w *wakes) try(by history.Wake, granted bool) {
	if w[by].tries++; granted {
		w[by].grants++
	}
}

func (w *wakes) handedOff(by history.Wake, d time.Duration) {
	if w[by].handoff == nil {
		w[by].handoff = newFine()
	}
	w[by].handoff.record(d)
}

// summary returns the counts for each reason that occurred, in the order of package history.
func (w *wakes) summary() []results.Woken {
	all := []results.Woken{}
	for i := range w {
		by := &w[i]
		if by.tries == 0 {
			continue
		}
		x := results.Woken{By: history.Wake(i).String(), Tries: by.tries, Grants: by.grants}
		if by.handoff != nil {
			x.Handoff = by.handoff.summary()
		}
		all = append(all, x)
	}
	return all
}
