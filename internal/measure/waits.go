package measure

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"hammerlock/results"
)

// waits is the distribution of waits within a window of time, including those without a grant. A wait that was given
// up, or that was still going on when the window closed, is censored: only a lower bound of its length is known. A wait
// that began before the window opened is truncated: a shorter one would not have been seen. A single goroutine uses it.
type waits struct {
	from, to time.Duration

	granted  *histogram // lengths of waits that were granted within the window
	censored *histogram // observed lengths of the other waits
	entered  *histogram // ages of truncated waits when the window opened
	// lengths weighted by themselves: each counts once for every microsecond within the window; nil = not kept
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
// that still wait, by their part of all waits known to have lasted so long. Censored waits only leave, and truncated
// waits join at the age at which they came into sight. A quantile that is not reached, because too many waits had no
// end, is results.Beyond.
func (w *waits) quantiles(qs ...float64) []time.Duration {
	reached := slices.Repeat([]time.Duration{results.Beyond}, len(qs))
	atRisk := float64(w.count() - w.entered.count)
	left, next := 1.0, 0
	// By convention, truncated waits enter a bucket first and censored ones leave it last.
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

// walk visits distributions of one resolution by ascending length, with the counts of each, until f returns false.
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

// randomWaiter is the quantile q of the wait that a worker picked at a random moment is in: each wait counts in
// proportion to its length. Short waits rarely include the moment; most waiting workers are in long ones.
func (w *waits) randomWaiter(q float64) time.Duration { return min(w.random.quantile(q), w.longest()) }

// summary summarizes all waits, including those without a grant.
func (w *waits) summary() results.Percentiles {
	reached := w.quantiles(percentiles[:]...)
	return w.summarize(func(q float64) time.Duration { return reached[slices.Index(percentiles[:], q)] })
}

// randomSummary summarizes the waits of a random waiter.
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
