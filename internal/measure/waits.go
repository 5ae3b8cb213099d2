package measure

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"hammerlock/results"
)

// waits is the distribution of the lengths of waits within a window of time. It is not safe for concurrent use. There
// are two special kinds, in the terms of statistics:
//
//   - A wait is censored if it ended without a grant, or after the window. Its length is only a lower bound.
//   - A wait is truncated if it began before the window. A shorter one would not have been seen at all.
type waits struct {
	from, to time.Duration

	granted  *histogram // lengths of waits that ended with a grant within the window
	censored *histogram // lengths of the other waits, as far as they were observed
	entered  *histogram // ages of the truncated waits at the start of the window
	// random has each length once for each microsecond that the wait lasted within the window; nil = it is not
	// needed.
	random *histogram
}

func newWaits(from, to time.Duration) *waits {
	return &waits{from: from, to: to, granted: newFine(), censored: newFine(), entered: newFine()}
}

// record adds a wait that lasted from the time first to the time last. It returns the length that counts, and true.
// If the wait lies outside of the window, it adds nothing and returns false.
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

// quantiles estimates quantiles of the length of waits. The argument qs must ascend. The method is the product-limit
// estimator of Kaplan and Meier (J. Am. Stat. Assoc. 53, 1958) with delayed entry.
//
// At each length, some waits end with a grant. The share of waits that last longer falls in proportion to the number
// of waits known to have reached that length. A censored wait leaves that number at its length. A truncated wait
// joins it at the age that the wait had when the window began. If too many waits are censored to reach a quantile,
// the result for it is results.Beyond.
func (w *waits) quantiles(qs ...float64) []time.Duration {
	reached := slices.Repeat([]time.Duration{results.Beyond}, len(qs))
	atRisk := float64(w.count() - w.entered.count)
	left, next := 1.0, 0
	// by convention, truncated waits join before the grants of the same bucket, and censored waits leave after them
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

// walk goes through the buckets of several histograms with the same resolution, in ascending order of length. It
// calls f with the counts of all histograms in the bucket. It stops when f returns false.
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

// randomWaiter returns the quantile q of the lengths of waits, as seen at a random moment. A long wait is more likely
// to be in progress then, so each wait counts in proportion to its length.
func (w *waits) randomWaiter(q float64) time.Duration { return min(w.random.quantile(q), w.longest()) }

// summary returns the percentiles of the lengths of all waits, with or without a grant.
func (w *waits) summary() results.Percentiles {
	reached := w.quantiles(percentiles[:]...)
	return w.summarize(func(q float64) time.Duration { return reached[slices.Index(percentiles[:], q)] })
}

// randomSummary returns the percentiles of the lengths of waits that are in progress at a random moment.
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
