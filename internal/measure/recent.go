package measure

import "time"

// recentSeconds is how far back a recent distribution reaches.
const recentSeconds = 10

// recent is a distribution of the last second and of the last ten, kept by second so that percentiles are always
// taken of sums of counts.
type recent struct {
	ring   [recentSeconds]*histogram
	second int64
	now    Quantiles // of the last full second
	ten    Quantiles
	sum    *histogram
}

func newRecent() recent {
	r := recent{sum: newCoarse()}
	for i := range r.ring {
		r.ring[i] = newCoarse()
	}
	return r
}

// record adds a duration that came to its end at the given time.
func (r *recent) record(at, d time.Duration) {
	r.roll(at)
	r.ring[r.second%recentSeconds].record(d)
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
