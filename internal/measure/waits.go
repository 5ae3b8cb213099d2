package measure

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"hammerlock/results"
)

// waits is the distribution of waiting times within a window of time. A wait without a grant, or one that was
// unfinished when the window closed, is censored: only a lower bound of its length is known. A wait that began before
// the window is truncated: a shorter one would not have been seen. It is not safe for concurrent use.
type waits struct {
	from, to time.Duration

	granted  *histogram // lengths of waits that ended with a grant within the window
	censored *histogram // observed lengths of the other waits
	entered  *histogram // ages of the truncated waits when the window opened
	// random has the same lengths, each counted once for every microsecond within the window; nil = not kept.
	random *histogram
}

func newWaits(from, to time.Duration) *waits {
	return &waits{from: from, to: to, granted: newFine(), censored: newFine(), entered: newFine()}
}

// record adds a wait from first to last. It returns the observed length, and true. If the wait lies outside the window,
// it adds nothing and returns false.
func (w *waits) record(first, last time.Duration, granted bool) (seen time.Duration, in bool) {
	if last < w.from || first >= w.to {
		return 0, false
	}
	if last > w.to {
		last, granted = w.to, false
	}
	seen = last - first
	if granted {
		w.granted.record(seen)
	} else {
		w.censored.record(seen)
	}
	if first < w.from {
		w.entered.record(w.from - first)
	}
	if w.random != nil {
		w.random.recordTimes(seen, int64((last-max(first, w.from))/time.Microsecond))
	}
	return seen, true
}

func (w *waits) count() int64 { return w.granted.count + w.censored.count }

func (w *waits) longest() time.Duration { return max(w.granted.max, w.censored.max) }

// quantiles estimates the quantiles qs (ascending) of the length of a wait. It is the product-limit estimator of Kaplan
// and Meier (J. Am. Stat. Assoc. 53, 1958) with delayed entry. At each length, granted waits reduce the share of waits
// that continue, in proportion to all waits known to have reached that length. Censored waits only leave; truncated
// waits join at their age when the window opened. If a quantile is not reached, because too many waits were censored,
// the result is results.Beyond.
func (w *waits) quantiles(qs ...float64) []time.Duration {
	reached := slices.Repeat([]time.Duration{results.Beyond}, len(qs))
	atRisk := float64(w.count() - w.entered.count)
	left, next := 1.0, 0
	// by convention, truncated waits enter a bucket before its grants, and censored waits leave after them
	walk(func(length time.Duration, n []int64) bool {
		granted, censored, entered := float64(n[0]), float64(n[1]), float64(n[2])
		atRisk += entered
		if granted > 0 && atRisk > 0 {
			left *= max(1-granted/atRisk, 0)
			for next < len(qs) && 1-left >= qs[next]-1e-12 {
				reached[next] = min(length, w.granted.max)
				next++
			}
		}
		atRisk -= granted + censored
		return next < len(qs)
	}, w.granted, w.censored, w.entered)
	return reached
}

// walk visits the buckets of several histograms of the same resolution, in ascending order of length. It calls f with
// the count that each histogram has in a bucket, until f returns false.
func walk(f func(length time.Duration, counts []int64) bool, all ...*histogram) {
	bars := make([][]hdrhistogram.Bar, len(all))
	longest := 0
	for i, h := range all {
		bars[i] = h.buckets().Distribution()
		longest = max(longest, len(bars[i]))
	}
	counts := make([]int64, len(all))
	for k := range longest {
		var length int64
		for i, b := range bars {
			counts[i] = 0
			if k < len(b) {
				length, counts[i] = b[k].To, b[k].Count
			}
		}
		if !f(time.Duration(length), counts) {
			return
		}
	}
}

// randomWaiter returns the quantile q of the length of a wait that is in progress at a random moment. Each wait counts
// in proportion to its length, because a long wait includes more moments.
func (w *waits) randomWaiter(q float64) time.Duration { return min(w.random.quantile(q), w.longest()) }

// summary returns the percentiles of all waits, including those without a grant.
func (w *waits) summary() results.Percentiles {
	reached := w.quantiles(percentiles[:]...)
	return w.summarize(func(q float64) time.Duration { return reached[slices.Index(percentiles[:], q)] })
}

// randomSummary returns the percentiles of waits that are in progress at a random moment.
func (w *waits) randomSummary() results.Percentiles {
	p := w.summarize(w.randomWaiter)
	if w.random.count > 0 {
		p.Mean = int64(w.random.sum / float64(w.random.count))
	}
	return p
}

func (w *waits) summarize(quantile func(float64) time.Duration) results.Percentiles {
	p := summarize(w.count(), quantile)
	p.Max, p.Censored, p.Entered = int64(w.longest()), w.censored.count, w.entered.count
	p.Open = w.censored.count > 0 && w.censored.max >= w.granted.max
	if n := w.count(); n > 0 {
		p.Mean = int64((w.granted.sum + w.censored.sum) / float64(n))
	}
	return p
}
