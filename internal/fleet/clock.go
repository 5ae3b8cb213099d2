package fleet

import (
	"errors"
	"slices"
	"time"

	"hammerlock/history"
)

// drift is the largest assumed difference between the rates of two machines' clocks. Crystals are within 100 ppm; a
// daemon that adjusts the clock adds at most 500 ppm by default.
const drift = 500e-6

// exchange has the times of a clock message to the coordinator and back. The agent sent it at A0 and received the
// answer at A3, on its own clock. The coordinator received it at C1 and answered at C2, on its clock. Whatever time
// each way took, the offset of the coordinator's clock lies between C2-A3 and C1-A0.
type exchange struct{ A0, C1, C2, A3 int64 }

// track has the knowledge about an agent's clock: bounds of the offset between it and the coordinator's clock, and
// the offsets with which times were converted.
type track struct {
	same      bool  // the agent uses the coordinator's clock
	at        int64 // time on the agent's clock at which the offset was between lo and hi
	lo, hi    int64
	exchanges int
	points    []point
	err       error
}

// point is the offset that was used to convert a time, with the bounds that were known then.
type point struct{ at, used, lo, hi int64 }

var errClock = errors.New("exchanges with it contradict each other: its clock was stepped, or runs apart by more " +
	"than 500 ppm")

func wider(d int64) int64 { return int64(drift*float64(max(d, -d))) + 1 }

func (k *track) add(e exchange) {
	lo, hi := e.C2-e.A3, e.C1-e.A0+wider(e.A3-e.A0)
	if k.same {
		if k.exchanges++; lo > 0 || hi < 0 {
			k.err = errClock
		}
		return
	}
	at := e.A3
	if k.exchanges > 0 { // agents on one machine share its clock, and may report their exchanges in any order
		at = max(at, k.at)
		more, new := wider(at-k.at), wider(at-e.A3)
		lo, hi = max(lo-new, k.lo-more), min(hi+new, k.hi+more)
	}
	k.exchanges++
	if k.at, k.lo, k.hi = at, lo, hi; lo > hi {
		k.err = errClock
	}
}

// bounds returns the bounds of the offset at a time on the agent's clock.
func (k *track) bounds(at int64) (lo, hi int64) {
	if k.same {
		return 0, 0
	}
	more := wider(at - k.at)
	return k.lo - more, k.hi + more
}

// fix chooses the offset that is used at the time `at`. Since the last point, the offset changes by at most twice the
// drift, which is 1 ms for each second. So durations stay nearly exact, and time stamps keep their order.
func (k *track) fix(at int64) {
	if k.same {
		return
	}
	lo, hi := k.bounds(at)
	used := lo + (hi-lo)/2
	if n := len(k.points); n > 0 {
		last := &k.points[n-1]
		if at <= last.at {
			return
		}
		most := 2 * wider(at-last.at)
		used = min(max(used, last.used-most), last.used+most)
	}
	k.points = append(k.points, point{at, used, lo, hi})
}

// doubt returns the largest possible error of the offset at the last point, as known so far.
func (k *track) doubt() time.Duration {
	if len(k.points) == 0 {
		return 0
	}
	p := &k.points[len(k.points)-1]
	return time.Duration(max(p.hi-p.used, p.used-p.lo))
}

// offset returns the offset that is used at a time.
func (k *track) offset(at int64) int64 {
	n := len(k.points)
	if n == 0 {
		return 0
	}
	i, _ := slices.BinarySearchFunc(k.points, at, func(p point, at int64) int { return int(min(max(p.at-at, -1), 1)) })
	switch i {
	case 0:
		return k.points[0].used
	case n:
		return k.points[n-1].used
	}
	a, b := &k.points[i-1], &k.points[i]
	return a.used + int64(float64(b.used-a.used)*float64(at-a.at)/float64(b.at-a.at))
}

// proven returns the largest possible error of all offsets that were used. It uses all exchanges, since later ones
// also narrow the bounds of earlier times. If exchanges contradict each other, it returns history.MaxDoubt.
func (k *track) proven() (worst time.Duration) {
	if k.err != nil {
		return history.MaxDoubt
	}
	next := point{lo: -1 << 62, hi: 1 << 62}
	for i := len(k.points) - 1; i >= 0; i-- {
		p := k.points[i]
		between := int64(0)
		if i < len(k.points)-1 {
			more := wider(next.at - p.at)
			p.lo, p.hi = max(p.lo, next.lo-more), min(p.hi, next.hi+more)
			between = more / 2
		}
		worst = max(worst, time.Duration(max(p.hi-p.used, p.used-p.lo)+between))
		next = p
	}
	return worst
}

// scale converts times of an agent's run to times of the coordinator's run.
type scale struct {
	track *track
	from  int64 // start of the agent's run, on its machine's clock
	to    int64 // start of the coordinator's run, on its machine's clock
}

func (s *scale) time(t time.Duration) time.Duration {
	if t == history.Forever {
		return t
	}
	at := int64(t) + s.from
	return max(time.Duration(at+s.track.offset(at)-s.to), 0)
}

// op converts the times in an operation. A deadline in the future is shortened by the largest drift until then.
func (s *scale) op(op *history.Op) {
	if s.track.same {
		return
	}
	call := s.time(op.Call)
	switch believed := op.Until - op.Call; {
	case op.Until == 0 || op.Until == history.Forever:
	case op.Kind == history.Acquire || op.Kind == history.Extend:
		op.Until = call + believed - time.Duration(wider(int64(believed)))
	default: // the deadline is past
		op.Until = s.time(op.Until)
	}
	for _, t := range []*time.Duration{&op.Due, &op.Released, &op.Began} {
		if *t != 0 {
			*t = s.time(*t)
		}
	}
	op.Call, op.Return = call, s.time(op.Return)
}
