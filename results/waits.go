package results

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Waits is the distribution of waits within a window of time, the ones that came to nothing included. A wait that
// was given up, or still went on when the window closed, is censored: its length is known to be at least so much.
// A wait that began before the window opened is truncated: had it been shorter, it would not have been seen. It
// is used by one goroutine.
type Waits struct {
	from, to time.Duration

	granted  *Latency // lengths of the waits that were granted within the window
	censored *Latency // lengths seen of the others
	entered  *Latency // ages of the truncated ones when the window opened
	random   *Latency // lengths, each counted once for every microsecond of it within the window; nil if nobody asks
}

func newWaits(from, to time.Duration) *Waits {
	return &Waits{from: from, to: to, granted: newFine(), censored: newFine(), entered: newFine(), random: newFine()}
}

// newAnswers makes Waits that nobody asks for the random waiter.
func newAnswers(from, to time.Duration) *Waits {
	return &Waits{from: from, to: to, granted: newFine(), censored: newFine(), entered: newFine()}
}

// record adds a wait from first to last, unless it lies outside the window. Its length as far as it was seen is
// returned.
func (w *Waits) record(first, last time.Duration, granted bool) (seen time.Duration, in bool) {
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

// count is the number of waits.
func (w *Waits) count() int64 { return w.granted.count + w.censored.count }

// longest is the longest that was seen of a wait.
func (w *Waits) longest() time.Duration { return max(w.granted.max, w.censored.max) }

// mean is the mean of what was seen of the waits.
func (w *Waits) mean() time.Duration {
	if w.count() == 0 {
		return 0
	}
	return time.Duration((w.granted.sum + w.censored.sum) / float64(w.count()))
}

// Beyond marks a quantile that was not reached: more than the longest wait that was seen.
const Beyond = time.Duration(-1)

// Quantiles estimates, for ascending quantiles, how long a wait takes, by the product-limit estimator of Kaplan
// and Meier (J. Am. Stat. Assoc. 53, 1958) with delayed entry: at each length the granted waits lower the share
// that still waits by their part of those that are known to have waited as long; censored ones only leave, and
// truncated ones join at the age at which they came into sight. A quantile that is not reached, because too many
// waits had no end, is Beyond.
func (w *Waits) Quantiles(qs ...float64) []time.Duration {
	result := make([]time.Duration, len(qs))
	for i := range result {
		result[i] = Beyond
	}
	atRisk := float64(w.count() - w.entered.count)
	left, next := 1.0, 0
	// Within a bucket truncated waits enter first and censored ones leave last, by convention.
	walk(func(length time.Duration, n []int64) bool {
		granted, censored, entered := float64(n[0]), float64(n[1]), float64(n[2])
		atRisk += entered
		if granted > 0 && atRisk > 0 {
			left *= max(1-granted/atRisk, 0)
			for next < len(qs) && 1-left >= qs[next]-1e-12 {
				result[next] = min(length, w.granted.max)
				next++
			}
		}
		atRisk -= granted + censored
		return next < len(qs)
	}, w.granted, w.censored, w.entered)
	return result
}

// RandomWaiter is the quantile q of the lengths of the waits that somebody is in who waits at a random instant of
// the window: each wait counts as often as it is long. A short wait is met by nobody; most of those who wait are
// in long ones.
func (w *Waits) RandomWaiter(q float64) time.Duration { return min(w.random.Quantile(q), w.longest()) }

// unfinished summarizes the estimate with the waits that came to nothing.
func (w *Waits) unfinished() Percentiles {
	reached := w.Quantiles(quantiles[:]...)
	next := 0
	p := summarize(w.count(), func(float64) time.Duration { next++; return reached[next-1] })
	p.Max, p.Mean = int64(w.longest()), int64(w.mean())
	return p
}

// randomWaiter summarizes what a random waiter is in.
func (w *Waits) randomWaiter() Percentiles {
	p := summarize(w.count(), w.RandomWaiter)
	p.Max, p.Mean = int64(w.longest()), int64(w.mean())
	if w.random.count > 0 {
		p.Mean = int64(w.random.sum / float64(w.random.count))
	}
	return p
}

// walk goes through distributions of one geometry by ascending length, with the counts of each, until f returns
// false.
func walk(f func(length time.Duration, counts []int64) bool, all ...*Latency) {
	bars := make([][]hdrhistogram.Bar, len(all))
	longest := 0
	for i, l := range all {
		bars[i] = l.histogram().Distribution()
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
