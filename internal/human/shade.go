package human

import "math"

// Shades is the number of shades of a strip's cell, as many as a bar has steps in a terminal.
const Shades = 8

// Shade returns how dark a cell is, from 0 to Shades, if the lock was held for this share of the cell's time. It is at
// least 1 if the lock was held at all. The script of a report uses the same rule.
func Shade(share float64) int {
	if share <= 0 {
		return 0
	}
	return min(max(int(math.Round(Shades*share)), 1), Shades)
}
