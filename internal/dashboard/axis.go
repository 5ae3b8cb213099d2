package dashboard

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// timeAxis draws a row with times of the given period, as many as there is room for.
func (c canvas) timeAxis(y int, from, to time.Duration) {
	c.put(0, y, faint, strings.Repeat("─", c.w))
	if to <= from || c.w < 12 {
		return
	}
	step := tickStep(to-from, c.w/12)
	for at := (max(from, 0) + step - 1) / step * step; at < to; at += step {
		x := int(int64(c.w) * int64(at-from) / int64(to-from))
		text := fmt.Sprintf("│%s s", decimals(at, step))
		if x+utf8.RuneCountInString(text) <= c.w {
			c.put(x, y, plain, text)
		}
	}
}

// tickStep returns the distance of two ticks on an axis of the given length. It is the smallest distance that needs
// at most the given number of ticks: 1, 2 or 5 times a power of ten, and at least 1 µs.
func tickStep(length time.Duration, most int) time.Duration {
	for unit := time.Microsecond; ; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if length/(n*unit) < time.Duration(max(most, 1)) {
				return n * unit
			}
		}
	}
}

// decimals formats a time in seconds, with enough decimals to tell two neighbouring ticks apart.
func decimals(at, step time.Duration) string {
	digits := 0
	for unit := time.Second; unit > step && digits < 6; unit /= 10 {
		digits++
	}
	return fmt.Sprintf("%.*f", digits, at.Seconds())
}

// yAxis labels the left side of a graph: it writes the argument most next to the top row, and 0 next to the bottom
// row. It returns the part of the canvas to the right of the labels.
func (c canvas) yAxis(most string) canvas {
	width := utf8.RuneCountInString(most)
	c.put(0, 0, faint, most)
	c.put(width-1, c.h-1, faint, "0")
	return c.part(width, 0, c.w-width, c.h)
}
