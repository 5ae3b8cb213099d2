package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Size of one character of the terminal, in pixels.
const (
	cellWide = 8
	cellHigh = 17
)

// look is the style of a text in the terminal.
type look struct {
	fore                   string // a class of the style sheet
	bold, faint, turned, u bool
}

// span is a piece of a terminal row that has one style.
type span struct {
	look look
	text string
}

// spans splits a terminal row into spans. The row has the styles as escape sequences of tmux (ECMA-48, select
// graphic rendition). The argument now is the style at the start of the row; spans changes it to the style at the
// end.
func spans(row string, now *look) (all []span) {
	for row != "" {
		if codes, ok := strings.CutPrefix(row, "\x1b["); ok {
			end := strings.IndexByte(codes, 'm')
			for code := range strings.SplitSeq(codes[:end], ";") {
				now.set(code)
			}
			row = codes[end+1:]
			continue
		}
		text, _, more := strings.Cut(row, "\x1b")
		all = append(all, span{*now, text})
		row = row[len(text):]
		if !more {
			return all
		}
	}
	return all
}

func (l *look) set(code string) {
	n, _ := strconv.Atoi(code) // an empty code means 0
	switch {
	case n == 0:
		*l = look{}
	case n == 1:
		l.bold = true
	case n == 2:
		l.faint = true
	case n == 4:
		l.u = true
	case n == 7:
		l.turned = true
	case n >= 31 && n <= 36:
		l.fore = []string{"red", "green", "yellow", "blue", "magenta", "cyan"}[n-31]
	case n == 39:
		l.fore = ""
	}
}

// blocks has the characters that are drawn as rectangles, and how many eighths of their height are filled from
// below.
var blocks = map[rune]float64{'▁': 1, '▂': 2, '▃': 3, '▄': 4, '▅': 5, '▆': 6, '▇': 7,
	'█': 8, '░': 8, '▒': 8, '▓': 8}

// terminalSVG draws the screen of a terminal. It has light or dark colours, as the reader's system prefers.
func terminalSVG(title, screen string) string {
	rows := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	var out strings.Builder
	wide, now := 0, look{}
	var drawn []string
	for y, row := range rows {
		x := 0
		for _, s := range spans(row, &now) {
			drawn = append(drawn, s.draw(x, y))
			x += utf8.RuneCountInString(s.text)
		}
		wide = max(wide, x)
	}
	w, h := wide*cellWide+24, len(rows)*cellHigh+24
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+
		"<title>%s</title>\n", w, h, w, h, html.EscapeString(title))
	out.WriteString(`<style>
svg{--back:#fff;--fore:#1f2328;--red:#b3261e;--green:#1a7f37;
--yellow:#8a5a00;--blue:#0550ae;--magenta:#8250df;--cyan:#1b7c83}
@media(prefers-color-scheme:dark){svg{--back:#0e1319;--fore:#d7dde4;--red:#ff6b60;--green:#4fc163;
--yellow:#e0b03c;--blue:#79b8ff;--magenta:#c297ff;--cyan:#56d4dd}}
text{font:13.3px "DejaVu Sans Mono","Menlo","Consolas",monospace;white-space:pre;fill:var(--fore)}
.red{fill:var(--red)}.green{fill:var(--green)}.yellow{fill:var(--yellow)}
.blue{fill:var(--blue)}.magenta{fill:var(--magenta)}.cyan{fill:var(--cyan)}
.fore{fill:var(--fore)}.back{fill:var(--back)}.bold{font-weight:bold}.faint{opacity:.62}
.shade{opacity:.35}.u{text-decoration:underline}
</style>
`)
	fmt.Fprintf(&out, `<rect class="back" width="%d" height="%d" rx="8"/><g transform="translate(12 12)">`+"\n", w, h)
	out.WriteString(strings.Join(drawn, ""))
	out.WriteString("</g></svg>\n")
	return out.String()
}

// draw draws a span: block characters as rectangles, other text word by word. If the colours are swapped, it also
// draws the background.
func (s span) draw(x, y int) string {
	var out strings.Builder
	paint := s.look.fore
	if paint == "" {
		paint = "fore"
	}
	letters := []rune(s.text)
	if s.look.turned {
		fmt.Fprintf(&out, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`+"\n", paint, x*cellWide, y*cellHigh,
			len(letters)*cellWide, cellHigh)
		paint = "back"
	}
	class := paint
	for i, is := range []bool{s.look.bold, s.look.faint, s.look.u} {
		if is {
			class += []string{" bold", " faint", " u"}[i]
		}
	}
	for i := 0; i < len(letters); {
		from, first := i, letters[i]
		eighths, block := blocks[first]
		switch {
		case block:
			for i < len(letters) && letters[i] == first {
				i++
			}
			class := class
			if strings.ContainsRune("░▒▓", first) {
				class = paint + " shade"
			}
			high := eighths * cellHigh / 8
			fmt.Fprintf(&out, `<rect class="%s" x="%d" y="%.4g" width="%d" height="%.3g"/>`+"\n", class,
				(x+from)*cellWide,
				float64((y+1)*cellHigh)-high, (i-from)*cellWide, high)
		case first == ' ':
			i++
		default:
			for i < len(letters) && letters[i] != ' ' && blocks[letters[i]] == 0 {
				i++
			}
			fmt.Fprintf(&out, `<text class="%s" x="%d" y="%d" textLength="%d">%s</text>`+"\n", class, (x+from)*cellWide,
				y*cellHigh+13, (i-from)*cellWide, html.EscapeString(string(letters[from:i])))
		}
	}
	return out.String()
}
