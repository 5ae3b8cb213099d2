package catalogue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

func isRueidislock(s locks.Spec) bool {
	return strings.HasPrefix(s.Name, "rueidislock")
}

// rueidislockSpec returns the lock that package known calls rueidislock.
func rueidislockSpec() locks.Spec {
	return every[slices.IndexFunc(every, isRueidislock)]
}

// TestRueidislockRecordsNoExtensionOfWhatItDoesNotHold: a worker waits in vain while the lock changes hands, so its
// library tries often. Those tries must not be recorded as extensions. Then the worker holds the lock for some
// renewals.
func TestRueidislockRecordsNoExtensionOfWhatItDoesNotHold(t *testing.T) {
	played(t, newBench(t, "single"), "k", func(home *stage, key string) {
		home.watch(t, home.sites[0])
		e := home.env()
		recorded := renewals(&e)
		b := open(t, rueidislockSpec(), home.env())
		a, err := rueidislockSpec().Open(e)
		must(t, err)
		defer func() { must(t, a.Close()) }()
		_ = a.Release(t.Context(), grant(t, a, key, home.renewed)) // it has learned the TTL
		for range 3 {
			held := grant(t, b, key, home.renewed)
			if granted := wakes(t, a, key, home.renewed/2); granted && !home.slow(home.renewed/5) {
				t.Error("granted what is held")
			}
			_ = b.Release(t.Context(), held)
			if home.undecided != "" {
				return
			}
		}
		held := grant(t, b, key, home.renewed)
		began := time.Now()
		free := time.AfterFunc(home.renewed, func() { _ = b.Release(t.Context(), held) })
		defer free.Stop()
		_, err = a.(locks.Waiter).Wait(t.Context(), key)
		must(t, err)
		mine := grant(t, a, key, home.renewed)
		if time.Now().Add(-mine.Spent).Before(began) {
			t.Errorf("granted %v ago, before it asked", mine.Spent)
		}
		outlive(home.renewed)
		lost := a.Release(t.Context(), mine)
		if home.slow(home.renewed / 5) {
			return
		}
		must(t, lost)
		for _, op := range recorded() {
			if op.Return < op.Call || op.Token != history.Hash(mine.Token) {
				t.Errorf("recorded %+v", op)
			}
		}
	})
}
