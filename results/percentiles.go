package results

import (
	"math"
	"time"

	"hammerlock/internal/human"
)

// Percentiles summarizes durations, in nanoseconds. A percentile is null if there are too few of them.
type Percentiles struct {
	Count int64  `json:"count"`
	P50   *int64 `json:"p50_ns"`
	P90   *int64 `json:"p90_ns"`
	P99   *int64 `json:"p99_ns"`
	P999  *int64 `json:"p999_ns"`
	Min   int64  `json:"min_ns"`
	Max   int64  `json:"max_ns"`
	Mean  int64  `json:"mean_ns"`
	// For waits that may be unfinished: Censored counts those of which only a lower bound is known, because no grant
	// ended them. Open means that Max is such a bound. Entered counts waits that had begun before the measurement.
	Censored int64 `json:"censored,omitempty"`
	Entered  int64 `json:"entered,omitempty"`
	Open     bool  `json:"max_open,omitempty"`
}

// Beyond is the value of a percentile that is greater than every observed wait. How much greater is unknown.
const Beyond = time.Duration(-1)

// beyond is the number of observations above a percentile that make it reliable.
const beyond = 5

// Supports reports whether n observations are enough for the quantile q.
func Supports(q float64, n int64) bool { return float64(n)*(1-q) >= beyond-1e-6 }

// Needs returns the number of observations that are enough for the quantile q.
func Needs(q float64) int64 { return int64(math.Ceil(beyond/(1-q) - 1e-6)) }

// Text formats a percentile; the argument can also be &p.Max. "-" = there are too few observations; ">" = the value
// is only a lower bound.
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
