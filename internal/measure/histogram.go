package measure

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// The range of histograms in nanoseconds, and two resolutions, in significant decimal digits. A histogram with the
// fine resolution takes 213 KB; if a run has many of a kind, they have the coarse one.
const (
	lowest       = int64(50)
	highest      = int64(time.Hour)
	fineDigits   = 3
	coarseDigits = 2
)

// histogram counts durations. It adds to HdrHistogram the exact minimum, maximum and sum, which HdrHistogram knows
// only up to the width of a bucket. It is not safe for concurrent use.
type histogram struct {
	hist  *hdrhistogram.Histogram // lacks the durations in buf until buckets is called
	buf   []repeated
	min   time.Duration
	max   time.Duration
	sum   float64
	count int64
}

// repeated is a duration that was recorded n times in a row.
type repeated struct{ duration, n int64 }

// buffered is the number of durations that are collected before they are counted together. Counting in batches causes
// fewer misses of the CPU cache, which is too small for all histograms.
const buffered = 256

func newFine() *histogram { return &histogram{hist: hdrhistogram.New(lowest, highest, fineDigits)} }

func newCoarse() *histogram { return &histogram{hist: hdrhistogram.New(lowest, highest, coarseDigits)} }

// record adds a duration. In percentiles, a duration above one hour counts as one hour. Minimum, maximum and sum are
// exact in any case.
func (h *histogram) record(d time.Duration) { h.recordTimes(d, 1) }

func (h *histogram) recordTimes(d time.Duration, n int64) {
	if n == 0 {
		return
	}
	d = max(d, 0)
	if h.count == 0 || d < h.min {
		h.min = d
	}
	h.max = max(h.max, d)
	h.sum += float64(d) * float64(n)
	h.count += n
	if h.buf == nil {
		h.buf = make([]repeated, 0, buffered)
	}
	if h.buf = append(h.buf, repeated{min(int64(d), highest), n}); len(h.buf) == buffered {
		h.buckets()
	}
}

// buckets counts the durations in buf, and returns the complete HdrHistogram.
func (h *histogram) buckets() *hdrhistogram.Histogram {
	for _, r := range h.buf {
		if err := h.hist.RecordValues(r.duration, r.n); err != nil {
			panic("measure: a clamped value is out of the histogram's range: " + err.Error())
		}
	}
	h.buf = h.buf[:0]
	return h.hist
}

// merge adds all durations of o, which must have the same resolution.
func (h *histogram) merge(o *histogram) {
	if o.count == 0 {
		return
	}
	if h.count == 0 || o.min < h.min {
		h.min = o.min
	}
	h.max, h.sum, h.count = max(h.max, o.max), h.sum+o.sum, h.count+o.count
	h.hist.Merge(o.buckets())
}

func (h *histogram) clear() {
	h.hist.Reset()
	*h = histogram{hist: h.hist, buf: h.buf[:0]}
}

// quantile returns the duration that a share q (0 to 1) of the durations does not exceed; 0 if there are no
// durations.
func (h *histogram) quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	return min(time.Duration(h.buckets().ValueAtQuantile(q*100)), h.max)
}

// percentiles lists the quantiles that results.Percentiles has.
var percentiles = [...]float64{0.5, 0.9, 0.99, 0.999}

func (h *histogram) summary() results.Percentiles {
	p := summarize(h.count, h.quantile)
	p.Min, p.Max = int64(h.min), int64(h.max)
	if h.count > 0 {
		p.Mean = int64(math.Round(h.sum / float64(h.count)))
	}
	return p
}

// summarize returns the percentiles. It leaves out those for which n, the number of observations, is too small.
func summarize(n int64, quantile func(float64) time.Duration) results.Percentiles {
	p := results.Percentiles{Count: n}
	for i, to := range []**int64{&p.P50, &p.P90, &p.P99, &p.P999} {
		if q := percentiles[i]; results.Supports(q, n) {
			v := int64(quantile(q))
			*to = &v
		}
	}
	return p
}

// Quantiles has the number of durations, with their median and p99.
type Quantiles struct {
	Count    int64
	P50, P99 time.Duration
}

// Text formats the p99 if the argument high is true, and the median otherwise. It returns "-" if there are too few
// durations.
func (q Quantiles) Text(high bool) string {
	value, of := q.P50, 0.5
	if high {
		value, of = q.P99, 0.99
	}
	if !results.Supports(of, q.Count) {
		return "-"
	}
	return human.Duration(value)
}

func (h *histogram) quantiles() Quantiles {
	return Quantiles{Count: h.count, P50: h.quantile(0.5), P99: h.quantile(0.99)}
}
