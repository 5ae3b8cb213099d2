package dashboard

import (
	"strings"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
)

// look says what the terminal can show. Colours only repeat what letters and words say.
type look struct {
	ascii bool
	color bool
}

// tone is the role of a text on the screen, such as a warning. It determines the text's style.
type tone uint8

const (
	plain tone = iota
	faint
	strong
	good
	warning
	bad
	chosen
)

// style returns the style of a tone. It sets no background, so that it suits light and dark terminals.
func (l look) style(t tone) tcell.Style {
	s := tcell.StyleDefault
	switch t {
	case faint:
		s = s.Dim(true)
	case strong:
		s = s.Bold(true)
	case good:
		s = l.tint(s, tcell.ColorGreen)
	case warning:
		s = l.tint(s.Bold(true), tcell.ColorOlive)
	case bad:
		s = l.tint(s.Bold(true).Reverse(true), tcell.ColorMaroon)
	case chosen:
		s = s.Reverse(true)
	}
	return s
}

func (l look) tint(s tcell.Style, c tcell.Color) tcell.Style {
	if l.color {
		return s.Foreground(c)
	}
	return s
}

// asciiLetters maps Unicode characters to their substitutes on a terminal that only shows ASCII.
var asciiLetters = map[rune]rune{
	'µ': 'u', '·': '.', '─': '-', '│': '|', '█': '#', '░': '~', '▒': ':', '▓': '*', '‖': '=',
	'▲': '^', '→': '>', '…': '.', '×': 'x',
	'▁': '_', '▂': '_', '▃': ':', '▄': ':', '▅': '+', '▆': '+', '▇': '#',
}

func (l look) letter(r rune) rune {
	if !l.ascii || r < utf8.RuneSelf {
		return r
	}
	if p, ok := asciiLetters[r]; ok {
		return p
	}
	return '?'
}

// canvas is a rectangle of the screen. Text that does not fit is cut off.
type canvas struct {
	screen     tcell.Screen
	look       look
	x, y, w, h int
}

// part returns a rectangle within the canvas.
func (c canvas) part(x, y, w, h int) canvas {
	w, h = max(min(w, c.w-x), 0), max(min(h, c.h-y), 0)
	return canvas{c.screen, c.look, c.x + x, c.y + y, w, h}
}

// put writes a text, and returns the column after its end.
func (c canvas) put(x, y int, t tone, text string) int {
	style := c.look.style(t)
	for _, r := range text {
		if x >= c.w {
			return x
		}
		if x >= 0 && y >= 0 && y < c.h {
			c.screen.SetContent(c.x+x, c.y+y, c.look.letter(r), nil, style)
		}
		x++
	}
	return x
}

func (c canvas) right(y int, t tone, text string) {
	c.put(max(c.w-utf8.RuneCountInString(text), 0), y, t, text)
}

// row writes a text and fills the rest of the row with spaces.
func (c canvas) row(y int, t tone, text string) {
	c.put(0, y, t, text+strings.Repeat(" ", max(c.w-utf8.RuneCountInString(text), 0)))
}

// panel draws a heading. It returns the rest of the canvas, below the heading.
func (c canvas) panel(title, more string) canvas {
	if c.h == 0 {
		return c
	}
	c.put(0, 0, faint, strings.Repeat("─", c.w))
	x := c.put(1, 0, strong, " "+title+" ")
	if more != "" && x+utf8.RuneCountInString(more)+2 < c.w {
		c.put(x+1, 0, faint, " "+more+" ")
	}
	return c.part(0, 1, c.w, c.h-1)
}

// bars has the characters for a bar, in steps of an eighth of its full height.
var bars = []rune(" ▁▂▃▄▅▆▇█")

// spark draws a column for each value; the last value is at the right edge. A value as large as the argument most
// has the height of the canvas. The result is the x of the first column.
func (c canvas) spark(values []float64, most float64, toneOf func(i int) tone) int {
	values = values[max(len(values)-c.w, 0):]
	left := c.w - len(values)
	for i, v := range values {
		eighths := 0
		if most > 0 {
			eighths = int(v/most*float64(8*c.h) + 0.5)
		}
		if v > 0 {
			eighths = max(eighths, 1)
		}
		for row := range c.h {
			part := min(max(eighths-8*(c.h-1-row), 0), 8)
			if part > 0 {
				c.put(left+i, row, toneOf(i), string(bars[part]))
			}
		}
	}
	return left
}

// bar draws a horizontal bar from x. The share 1 reaches the right edge.
func (c canvas) bar(x, y int, share float64) {
	c.put(x, y, plain, strings.Repeat("█", int(share*float64(max(c.w-x, 0))+0.5)))
}
