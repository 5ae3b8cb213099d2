// Package human formats durations, numbers and counts for people, and wraps lines. It knows nothing of runs or
// verdicts, and writes no markup.
package human

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// digits is the usual number of significant digits.
const digits = 3

// Duration formats a duration with three significant digits and a unit.
func Duration(d time.Duration) string { return duration(d, digits) }

// DurationBeside formats d like Duration, but with more digits if d and other would look the same.
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

// roundsUp returns the shortest duration that three digits would round up to one whole unit.
func roundsUp(unit time.Duration) time.Duration { return unit - unit/2000 }

// Number formats a number with three significant digits. It prints all digits before the decimal point in any case, in
// groups of three like Count.
func Number(x float64) string { return grouped(x, digits) }

// NumberBeside formats x like Number, but with more digits if x and other would look the same. For example, beside 2
// it formats 1.9998 as "1.9998" instead of "2.00".
func NumberBeside(x, other float64) string { return beside(x, other, grouped) }

// beside formats x with the smallest number of digits that makes its text differ from the text of other.
func beside[T comparable](x, other T, format func(x T, digits int) string) string {
	const most = 17 // enough to distinguish any two numbers
	text := format(x, digits)
	for n := digits; n < most && x != other && text == format(other, n); n++ {
		text = format(x, n+1)
	}
	return text
}

func grouped(x float64, digits int) string {
	whole, rest, point := strings.Cut(number(x, digits), ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && (n <= -1000 || n >= 1000) {
		whole = Count(n)
	}
	if point {
		whole += "." + rest
	}
	return whole
}

func number(x float64, digits int) string {
	if x == 0 {
		return "0"
	}
	// Take the exponent after rounding: 0.9996 becomes 1.00, and needs two decimals.
	_, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', digits-1, 64), "e")
	e, _ := strconv.Atoi(exponent)
	return strconv.FormatFloat(x, 'f', min(max(digits-1-e, 0), digits+3), 64)
}

// Percent formats a share (0 to 1) as a percentage.
func Percent(share float64) string { return Number(100*share) + " %" }

// Count formats an integer with spaces between groups of three digits: "12 345".
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

// Quantity formats a number of things, with the plural if needed: "1 page", "3 pages".
func Quantity[N ~int | ~int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%s %ss", Count(int64(n)), one)
}

// List joins names with commas. An empty list is "none".
func List(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
