package checker

import (
	"cmp"
	"fmt"
	"slices"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// blames counts violations by cause and keeps the first witness of each cause. What something unplanned explains is
// counted apart, and is excused. The zero value is ready.
type blames[W any] struct {
	counts  map[string]int64
	first   map[string]W
	excused int64
	excuse  *window // the first that explains one
	spared  W       // what that explains
}

// testimony is a witness in words.
type testimony struct {
	evidence []history.Op
	story    []string
}

// blame counts a violation, unless something unplanned explains it: then it is false.
func (b *blames[W]) blame(cause string, witness W, why *window) bool {
	if why != nil {
		if b.excused++; b.excuse == nil {
			b.excuse, b.spared = why, witness
		}
		return false
	}
	if b.counts == nil {
		b.counts, b.first = map[string]int64{}, map[string]W{}
	}
	if b.counts[cause]++; b.counts[cause] == 1 {
		b.first[cause] = witness
	}
	return true
}

// into writes the counts into a verdict, and fails it if there are violations. It returns the witness of the worst
// cause: the first of the list that occurred.
func (b *blames[W]) into(v *Verdict, causes []string) (worst W) {
	if v.Misses == nil {
		v.Misses = map[string]int64{}
	}
	if b.excused > 0 {
		v.Misses["unplanned"], v.excuse, v.spared = b.excused, b.excuse, b.spared
	}
	for _, cause := range causes {
		n := b.counts[cause]
		if n > 0 && v.Cause == "" {
			v.Status, v.Cause, v.Causes, worst = Fail, cause, b.counts, b.first[cause]
		}
		v.Violations += n
	}
	return worst
}

// excuseText says what is excused, and why.
func (b *blames[W]) excuseText(what string) string {
	return fmt.Sprintf("excused: %s %s: %s", human.Count(b.excused), what, b.excuse)
}

// gravest orders the causes: the errors of the lock before those of the service and of the holder, and of each the
// usual one first, or that which began first.
func (f *findings) gravest(c *Case) []string {
	order := slices.Clone(severity)
	slices.SortStableFunc(order, func(a, b string) int {
		n := cmp.Or(cmp.Compare(partyOf(a), partyOf(b)), cmp.Compare(f.incidents[b], f.incidents[a]))
		if n == 0 && f.incidents[a] > 0 {
			n = cmp.Compare(c.began(f.first[a]), c.began(f.first[b]))
		}
		return n
	})
	if i := slices.Index(order, history.DoubleGrant); f.bare { // a release only may explain others
		order = slices.Insert(slices.Delete(order, i, i+1), 0, history.DoubleGrant)
	}
	return order
}

// partyOf orders causes by who answers for them: the lock, then the service, then the holder.
func partyOf(cause string) int {
	switch cause {
	case history.Overrun:
		return 2
	case history.ServiceLoss, history.PrematureLoss:
		return 1
	}
	return 0
}
