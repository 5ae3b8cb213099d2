// Package human formats durations, numbers and counts for people, and wraps lines. It knows nothing of runs or
// verdicts, and writes no markup.
package human

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration formats a duration with its unit and three significant digits.
func Duration(d time.Duration) string {
	if d < time.Microsecond {
		return strconv.FormatInt(int64(d), 10) + " ns"
	}
	unit, name := time.Microsecond, " µs"
	if d >= roundsUp(time.Millisecond) {
		unit, name = time.Millisecond, " ms"
	}
	if d >= roundsUp(time.Second) {
		unit, name = time.Second, " s"
	}
	return Number(float64(d)/float64(unit)) + name
}

// roundsUp returns the shortest duration that becomes one unit when it is rounded to three digits.
func roundsUp(unit time.Duration) time.Duration { return unit - unit/2000 }

// Number formats a number with three significant digits, or with all digits before the point if these are more.
func Number(x float64) string {
	if x == 0 {
		return "0"
	}
	// Take the exponent after rounding: 0.9996 needs the decimals of 1.00.
	_, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', 2, 64), "e")
	e, _ := strconv.Atoi(exponent)
	return strconv.FormatFloat(x, 'f', min(max(2-e, 0), 6), 64)
}

// Percent formats a fraction as a percentage.
func Percent(share float64) string { return Number(100*share) + " %" }

// Count groups digits by three: "12 345".
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return sign + s
}

// Quantity counts things: "1 page", "3 pages".
func Quantity[N ~int | ~int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%s %ss", Count(int64(n)), one)
}

// List joins names with commas; no names are "none".
func List(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
