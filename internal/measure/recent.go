package measure

import (
	"math"
	"slices"
	"time"
)

// Bounds has the upper bounds of buckets of durations. A last bucket has all longer durations.
var Bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
	5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Buckets counts durations in fixed buckets, so that the counts of several runs and machines can be added.
type Buckets struct {
	In     [len(Bounds) + 1]uint64 // not cumulative
	Native [natives]uint64         // buckets of a Prometheus native histogram: see NativeSchema
	Sum    time.Duration
}

// Parameters of Prometheus native histograms. Bucket i ends at 2^(i/2^NativeSchema) seconds, so that each is 9 %
// wider than the one before. The first bucket also has all durations below 1 µs, and the last one those above 1 h.
const (
	NativeSchema = 3
	NativeFirst  = -160
	natives      = 256
)

// fractions has the ends of the native buckets from 0.5 s up to 1 s.
var fractions = func() (ends [1 << NativeSchema]float64) {
	for i := range ends {
		ends[i] = math.Exp2(float64(i)/(1<<NativeSchema) - 1)
	}
	return ends
}()

func (b *Buckets) record(d time.Duration) {
	at, _ := slices.BinarySearch(Bounds[:], d)
	b.In[at]++
	fraction, exponent := math.Frexp(max(d, 1).Seconds())
	at, _ = slices.BinarySearch(fractions[:], fraction)
	b.Native[min(max((exponent-1)<<NativeSchema+at-NativeFirst, 0), natives-1)]++
	b.Sum += d
}

const recentSeconds = 10

// recent has the distribution of durations in the last second, and in the last ten seconds. For the latter, it adds
// up one histogram for each second. It also has the Buckets of the whole measurement.
type recent struct {
	ring   [recentSeconds]*histogram
	second int64
	now    Quantiles // of the last full second
	ten    Quantiles
	sum    *histogram
	whole  Buckets
}

func newRecent() recent {
	r := recent{sum: newCoarse()}
	for i := range r.ring {
		r.ring[i] = newCoarse()
	}
	return r
}

// record adds a duration that ended at the given time. The argument measured is true if its visit belongs to the
// measurement.
func (r *recent) record(at, d time.Duration, measured bool) {
	r.roll(at)
	r.ring[r.second%recentSeconds].record(d)
	if measured {
		r.whole.record(d)
	}
}

func (r *recent) roll(at time.Duration) {
	n := int64(at / time.Second)
	if n <= r.second {
		return
	}
	r.now = r.ring[r.second%recentSeconds].quantiles()
	if n > r.second+1 {
		r.now = Quantiles{}
	}
	r.sum.clear()
	for _, h := range r.ring {
		r.sum.merge(h)
	}
	r.ten = r.sum.quantiles()
	for ; r.second < n; r.second++ {
		r.ring[(r.second+1)%recentSeconds].clear()
		if n-r.second > recentSeconds {
			r.second = n - recentSeconds - 1
		}
	}
}
