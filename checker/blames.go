package checker

import (
	"fmt"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// blames counts violations by cause and keeps the first witness of each cause. Violations that an unplanned event
// explains are counted separately, as excused. The zero value is ready to use.
type blames[W any] struct {
	counts  map[string]int64
	first   map[string]W
	excused int64
	excuse  *window // the first unplanned event that explains a violation
	spared  W       // witness of that violation
}

// testimony is a witness with operations and a text.
type testimony struct {
	evidence []history.Op
	story    []string
}

// blame counts a violation. If why is not nil, that unplanned event excuses the violation, and blame returns false.
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

// into writes the counts into a verdict, which fails if there are violations. It returns the witness of the worst
// cause that occurred: the first one in the given list.
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

func (b *blames[W]) excuseText(what string) string {
	return fmt.Sprintf("excused: %s %s: %s", human.Count(b.excused), what, b.excuse)
}

// partyOf says who is to blame for a cause: 0 = the lock, 1 = the service, 2 = the holder.
func partyOf(cause string) int {
	switch cause {
	case history.Overrun:
		return 2
	case history.ServiceLoss, history.PrematureLoss:
		return 1
	}
	return 0
}
