package human

import "math"

// Shades is how many shades a cell of a strip can have: as many as a bar has steps in a terminal.
const Shades = 8

// Shade is how dark a cell of a strip is of which a share was held: in eighths, and at least one if it was held at all.
// The script of a report draws by the same rule.
func Shade(share float64) int {
	if share <= 0 {
		return 0
	}
	return min(max(int(math.Round(Shades*share)), 1), Shades)
}
