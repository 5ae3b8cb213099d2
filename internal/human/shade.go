package human

import "math"

// Shades is the number of shades of a cell in a strip. A terminal can draw bars with the same number of steps.
const Shades = 8

// Shade returns the shade of a cell, from 0 to Shades. The argument share is the part of the cell's time in which the
// lock was held. Any hold gives at least 1. The script of the report has the same rule.
func Shade(share float64) int {
	if share <= 0 {
		return 0
	}
	return min(max(int(math.Round(Shades*share)), 1), Shades)
}
