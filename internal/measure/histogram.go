package measure

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// The range of histograms in nanoseconds, and two resolutions in significant digits. A fine histogram takes 213 KB.
// If a run has many histograms of a kind, they are coarse.
const (
	lowest       = int64(50)
	highest      = int64(time.Hour)
	fineDigits   = 3
	coarseDigits = 2
)

// histogram is a distribution of durations. An HdrHistogram knows its minimum, maximum and sum only up to the width of
// a bucket; this type has the exact values. It is not safe for concurrent use.
type histogram struct {
	hist  *hdrhistogram.Histogram // lacks the buffered durations until the method buckets adds them
	buf   []repeated
	min   time.Duration
	max   time.Duration
	sum   float64
	count int64
}

// repeated is a duration that was recorded n times.
type repeated struct{ duration, n int64 }

// buffered is the number of durations that are collected before they are counted. A dozen large histograms do not fit
// the CPU cache, and batches reduce the cache misses.
const buffered = 256

func newFine() *histogram { return &histogram{hist: hdrhistogram.New(lowest, highest, fineDigits)} }

func newCoarse() *histogram { return &histogram{hist: hdrhistogram.New(lowest, highest, coarseDigits)} }

// record adds a duration. For percentiles, a duration beyond an hour counts as an hour. Minimum, maximum and sum are
// exact.
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

// buckets adds the buffered durations to the HdrHistogram and returns it.
func (h *histogram) buckets() *hdrhistogram.Histogram {
	for _, r := range h.buf {
		if err := h.hist.RecordValues(r.duration, r.n); err != nil {
			panic("measure: a clamped value is out of the histogram's range: " + err.Error())
		}
	}
	h.buf = h.buf[:0]
	return h.hist
}

// merge adds the durations of a histogram with the same resolution.
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

// quantile returns the duration that a share q (0 to 1) of all durations does not exceed; 0 if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	return min(time.Duration(h.buckets().ValueAtQuantile(q*100)), h.max)
}

// percentiles lists the quantiles in results.Percentiles.
var percentiles = [...]float64{0.5, 0.9, 0.99, 0.999}

func (h *histogram) summary() results.Percentiles {
	p := summarize(h.count, h.quantile)
	p.Min, p.Max = int64(h.min), int64(h.max)
	if h.count > 0 {
		p.Mean = int64(math.Round(h.sum / float64(h.count)))
	}
	return p
}

// summarize fills in the percentiles that n observations support.
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

// Quantiles has the median and p99 of a distribution, and its number of observations.
type Quantiles struct {
	Count    int64
	P50, P99 time.Duration
}

// Text formats p99 if high is true, else the median. It returns "-" if there are too few observations.
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
