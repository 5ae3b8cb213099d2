package results

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The two geometries of all histograms, in nanoseconds: fine ones for a whole run (three significant digits,
// 213 KB each), coarse ones where there are many (two digits).
const (
	lowest       = int64(50)
	highest      = int64(time.Hour)
	fineDigits   = 3
	coarseDigits = 2
)

// Latency is a distribution of durations with its exact extremes and sum, which a histogram only has to within
// its buckets. It is used by one goroutine.
type Latency struct {
	hist  *hdrhistogram.Histogram // without what is still noted; histogram has all
	noted []note
	min   time.Duration
	max   time.Duration
	sum   float64
	count int64
}

// note is a duration that was recorded n times.
type note struct{ duration, times int64 }

// mostNotes is how many durations are noted before they are counted in the histogram. A histogram is large, and a meter
// has a dozen of them: counted one by one, each finds the histogram out of the cache; counted together, they do not wait
// for one another.
const mostNotes = 256

func newFine() *Latency { return &Latency{hist: hdrhistogram.New(lowest, highest, fineDigits)} }

func newCoarse() *Latency { return &Latency{hist: hdrhistogram.New(lowest, highest, coarseDigits)} }

// record adds one duration. What lies beyond an hour counts as an hour in the percentiles and as itself in the
// extremes and the sum.
func (l *Latency) record(d time.Duration) { l.recordTimes(d, 1) }

// recordTimes adds one duration n times.
func (l *Latency) recordTimes(d time.Duration, n int64) {
	if n == 0 {
		return
	}
	d = max(d, 0)
	if l.count == 0 || d < l.min {
		l.min = d
	}
	l.max = max(l.max, d)
	l.sum += float64(d) * float64(n)
	l.count += n
	if l.noted == nil {
		l.noted = make([]note, 0, mostNotes)
	}
	if l.noted = append(l.noted, note{min(int64(d), highest), n}); len(l.noted) == mostNotes {
		l.histogram()
	}
}

// histogram counts what was noted.
func (l *Latency) histogram() *hdrhistogram.Histogram {
	for _, n := range l.noted {
		if err := l.hist.RecordValues(n.duration, n.times); err != nil {
			panic("results: a clamped value is out of the histogram's range: " + err.Error())
		}
	}
	l.noted = l.noted[:0]
	return l.hist
}

// clear forgets everything.
func (l *Latency) clear() {
	l.hist.Reset()
	*l = Latency{hist: l.hist, noted: l.noted[:0]}
}

// Count is the number of durations.
func (l *Latency) Count() int64 { return l.count }

// Max is the longest duration, exactly.
func (l *Latency) Max() time.Duration { return l.max }

// Quantile is the duration that a share q of all does not exceed.
func (l *Latency) Quantile(q float64) time.Duration {
	if l.count == 0 {
		return 0
	}
	return min(time.Duration(l.histogram().ValueAtQuantile(q*100)), l.max)
}

// minBeyond is how many observations must lie beyond a percentile for it to be more than an anecdote.
const minBeyond = 5

// supported tells whether n observations carry the quantile q.
func supported(q float64, n int64) bool { return float64(n)*(1-q) >= minBeyond-1e-6 }

// Percentiles summarizes a distribution; all durations are in nanoseconds. A percentile that the count does not
// support is null.
type Percentiles struct {
	Count int64  `json:"count"`
	P50   *int64 `json:"p50_ns"`
	P90   *int64 `json:"p90_ns"`
	P99   *int64 `json:"p99_ns"`
	P999  *int64 `json:"p999_ns"`
	Min   int64  `json:"min_ns"`
	Max   int64  `json:"max_ns"`
	Mean  int64  `json:"mean_ns"`
}

var quantiles = [...]float64{0.5, 0.9, 0.99, 0.999}

// Summary is the distribution's percentiles.
func (l *Latency) Summary() Percentiles {
	p := summarize(l.count, l.Quantile)
	p.Min, p.Max = int64(l.min), int64(l.max)
	if l.count > 0 {
		p.Mean = int64(math.Round(l.sum / float64(l.count)))
	}
	return p
}

// summarize fills in the percentiles that n observations support.
func summarize(n int64, quantile func(float64) time.Duration) Percentiles {
	p := Percentiles{Count: n}
	for i, to := range []**int64{&p.P50, &p.P90, &p.P99, &p.P999} {
		if q := quantiles[i]; supported(q, n) {
			v := int64(quantile(q))
			*to = &v
		}
	}
	return p
}
