package results

import (
	"math"
	"time"

	"hammerlock/internal/human"
)

// Percentiles summarizes a distribution of durations, in nanoseconds. A percentile is null if there are too few
// observations.
type Percentiles struct {
	Count int64  `json:"count"`
	P50   *int64 `json:"p50_ns"`
	P90   *int64 `json:"p90_ns"`
	P99   *int64 `json:"p99_ns"`
	P999  *int64 `json:"p999_ns"`
	Min   int64  `json:"min_ns"`
	Max   int64  `json:"max_ns"`
	Mean  int64  `json:"mean_ns"`
	// For waits with unfinished ones: of Censored durations only a lower bound is known, and Max is one of them if Open
	// is true. Entered durations began before the measurement.
	Censored int64 `json:"censored,omitempty"`
	Entered  int64 `json:"entered,omitempty"`
	Open     bool  `json:"max_open,omitempty"`
}

// Beyond stands for a percentile that is greater than the longest observed wait.
const Beyond = time.Duration(-1)

// beyond is the number of observations that must lie above a percentile.
const beyond = 5

// Supports tells whether n observations are enough for the quantile q.
func Supports(q float64, n int64) bool { return float64(n)*(1-q) >= beyond-1e-6 }

// Needs returns the number of observations that the quantile q needs.
func Needs(q float64) int64 { return int64(math.Ceil(beyond/(1-q) - 1e-6)) }

// Text formats a percentile: "-" if there are too few observations, ">" and the maximum if it is Beyond. It formats
// &p.Max, too, with ">" if that is a lower bound.
func (p *Percentiles) Text(v *int64) string {
	switch {
	case v == nil, p.Count == 0:
		return "-"
	case *v == int64(Beyond), v == &p.Max && p.Open:
		return ">" + human.Duration(time.Duration(p.Max))
	default:
		return human.Duration(time.Duration(*v))
	}
}
