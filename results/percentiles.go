package results

import (
	"math"
	"time"

	"hammerlock/internal/human"
)

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

// Beyond marks a percentile that was not reached: it is longer than the longest observed wait.
const Beyond = time.Duration(-1)

// beyond is the number of observations above a quantile that support it.
const beyond = 5

// Supports tells whether n observations support the quantile q.
func Supports(q float64, n int64) bool { return float64(n)*(1-q) >= beyond-1e-6 }

// Needs is the number of observations that support the quantile q.
func Needs(q float64) int64 { return int64(math.Ceil(beyond/(1-q) - 1e-6)) }

// Text writes a percentile: "-" if the count does not support it, ">" and the maximum if it is Beyond.
func (p *Percentiles) Text(v *int64) string {
	switch {
	case v == nil, p.Count == 0:
		return "-"
	case *v == int64(Beyond):
		return ">" + human.Duration(time.Duration(p.Max))
	default:
		return human.Duration(time.Duration(*v))
	}
}
