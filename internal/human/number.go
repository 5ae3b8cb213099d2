// Package human formats durations, numbers and counts for people, and wraps lines. It knows nothing of runs or
// verdicts, and writes no markup.
package human

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// digits is the number of significant digits of a number.
const digits = 3

// Duration formats a duration with its unit and three significant digits.
func Duration(d time.Duration) string { return duration(d, digits) }

// DurationBeside formats a duration with as many digits as tell it from another one.
func DurationBeside(d, other time.Duration) string { return beside(d, other, duration) }

func duration(d time.Duration, digits int) string {
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
	return number(float64(d)/float64(unit), digits) + name
}

// roundsUp returns the shortest duration that becomes one unit when it is rounded to three digits.
func roundsUp(unit time.Duration) time.Duration { return unit - unit/2000 }

// Number formats a number with three significant digits, or with all digits before the point if these are more.
func Number(x float64) string { return number(x, digits) }

// NumberBeside formats a number with as many digits as tell it from another one. Beside 2, that is 1.9998 for a number
// of which Number makes 2.00.
func NumberBeside(x, other float64) string { return beside(x, other, number) }

// beside formats x with the fewest digits that make its text differ from the other's.
func beside[T comparable](x, other T, format func(x T, digits int) string) string {
	const most = 17 // they tell any two numbers apart
	text := format(x, digits)
	for n := digits; n < most && x != other && text == format(other, n); n++ {
		text = format(x, n+1)
	}
	return text
}

func number(x float64, digits int) string {
	if x == 0 {
		return "0"
	}
	// Take the exponent after rounding: 0.9996 needs the decimals of 1.00.
	_, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', digits-1, 64), "e")
	e, _ := strconv.Atoi(exponent)
	return strconv.FormatFloat(x, 'f', min(max(digits-1-e, 0), digits+3), 64)
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
