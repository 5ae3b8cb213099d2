package measure

import (
	"math"
	"slices"
	"time"
)

// Bounds are the upper bounds of buckets of durations. Longer durations have a bucket of their own.
var Bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
	5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Buckets count the durations of a whole run, with its warm-up, in fixed buckets, so that runs and machines can be
// added up.
type Buckets struct {
	In     [len(Bounds) + 1]uint64 // not cumulative
	Native [natives]uint64         // counts for Prometheus native histograms: see NativeSchema
	Sum    time.Duration
}

// Buckets of native histograms as in Prometheus: bucket i ends at 2^(i/2^NativeSchema) seconds, so each is 9 % wider
// than the one before. The first has everything below a microsecond, the last everything above an hour.
const (
	NativeSchema = 3
	NativeFirst  = -160
	natives      = 256
)

// fractions are the ends of the native buckets between half a second and a second.
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

// recentSeconds is how many seconds the recent distribution covers.
const recentSeconds = 10

// recent has the distributions of the last second and of the last ten seconds. It keeps counts for each second and adds
// them up. It also has the Buckets of the whole run.
type recent struct {
	ring   [recentSeconds]*histogram
	second int64
	now    Quantiles // quantiles of the last full second
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

// record adds a duration that ended at the given time.
func (r *recent) record(at, d time.Duration) {
	r.roll(at)
	r.ring[r.second%recentSeconds].record(d)
	r.whole.record(d)
}

// roll begins a new second when the current one is over.
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
