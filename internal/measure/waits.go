package measure

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"hammerlock/results"
)

// waits is the distribution of waiting times within a window of time. A wait that was given up, or was unfinished when
// the window closed, is censored: only a lower bound of its length is known. A wait that began before the window is
// truncated: a shorter one would not have been seen. It is for a single goroutine.
type waits struct {
	from, to time.Duration

	granted  *histogram // lengths of waits that ended with a grant within the window
	censored *histogram // observed lengths of the other waits
	entered  *histogram // ages that truncated waits had when the window opened
	// random has lengths weighted by themselves: each counts once for every microsecond within the window; nil = not
	// kept.
	random *histogram
}

func newWaits(from, to time.Duration) *waits {
	return &waits{from: from, to: to, granted: newFine(), censored: newFine(), entered: newFine()}
}

// record adds a wait from first to last, unless it lies outside the window. It returns the observed length.
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

// longest is the longest observed length of a wait.
func (w *waits) longest() time.Duration { return max(w.granted.max, w.censored.max) }

// quantiles estimates how long a wait takes, for ascending quantiles. It is the product-limit estimator of Kaplan and
// Meier (J. Am. Stat. Assoc. 53, 1958) with delayed entry. At each length, the granted waits reduce the share of those
// that still wait, in proportion to all waits known to have lasted so long. Censored waits only leave; truncated waits
// join at the age that they had when the window opened. A quantile that is not reached, because too many waits had no
// end, is results.Beyond.
func (w *waits) quantiles(qs ...float64) []time.Duration {
	reached := slices.Repeat([]time.Duration{results.Beyond}, len(qs))
	atRisk := float64(w.count() - w.entered.count)
	left, next := 1.0, 0
	// by convention, truncated waits enter a bucket before the grants in it, and censored ones leave after them
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

// walk goes through histograms of the same resolution by ascending length, with the counts of each, until f returns
// false.
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

// randomWaiter returns the quantile q of the length of the wait that a worker is in, if it is picked at a random
// moment. Each wait counts in proportion to its length, because long waits include more moments.
func (w *waits) randomWaiter(q float64) time.Duration { return min(w.random.quantile(q), w.longest()) }

// summary returns the percentiles of all waits, including those without a grant.
func (w *waits) summary() results.Percentiles {
	reached := w.quantiles(percentiles[:]...)
	return w.summarize(func(q float64) time.Duration { return reached[slices.Index(percentiles[:], q)] })
}

// randomSummary returns the percentiles of the waits of a worker picked at a random moment.
func (w *waits) randomSummary() results.Percentiles {
	p := w.summarize(w.randomWaiter)
	if w.random.count > 0 {
		p.Mean = int64(w.random.sum / float64(w.random.count))
	}
	return p
}

func (w *waits) summarize(quantile func(float64) time.Duration) results.Percentiles {
	p := summarize(w.count(), quantile)
	p.Max = int64(w.longest())
	if n := w.count(); n > 0 {
		p.Mean = int64((w.granted.sum + w.censored.sum) / float64(n))
	}
	return p
}
