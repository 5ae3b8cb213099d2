package locks

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

func isRueidislock(s Spec) bool {
	return strings.HasPrefix(s.Name, "rueidislock")
}

// rueidislockSpec is what package known calls rueidislock.
func rueidislockSpec() Spec {
	return every[slices.IndexFunc(every, isRueidislock)]
}

// TestRueidislockRecordsNoExtensionOfWhatItDoesNotHold lets a worker wait in vain while the lock changes hands, so that
// the library tries often, and then hold the lock for some renewals.
func TestRueidislockRecordsNoExtensionOfWhatItDoesNotHold(t *testing.T) {
	home := newBench(t, "single")
	e := home.env()
	recorded := renewals(&e)
	b := open(t, rueidislockSpec(), home.env())
	a, err := rueidislockSpec().Open(e)
	must(t, err)
	must(t, a.Release(t.Context(), grant(t, a, "k", renewed)))
	start := time.Now()
	for range 3 {
		held := grant(t, b, "k", renewed)
		ctx, cancel := context.WithTimeout(t.Context(), renewed)
		if _, err := a.(Waiter).Wait(ctx, "k"); err == nil {
			t.Error("granted what is held")
		}
		cancel()
		must(t, b.Release(t.Context(), held))
	}
	held := grant(t, b, "k", renewed)
	free := time.AfterFunc(2*renewed, func() { must(t, b.Release(t.Context(), held)) })
	defer free.Stop()
	_, err = a.(Waiter).Wait(t.Context(), "k")
	must(t, err)
	mine := grant(t, a, "k", renewed)
	if mine.Spent < 0 || mine.Spent > time.Since(start)/4 {
		t.Errorf("granted %v ago", mine.Spent)
	}
	outlive(2 * renewed)
	must(t, a.Release(t.Context(), mine))
	must(t, a.Close())
	for _, op := range recorded() {
		if op.Return < op.Call || op.Token != history.Hash(mine.Token) {
			t.Errorf("recorded %+v", op)
		}
	}
}
