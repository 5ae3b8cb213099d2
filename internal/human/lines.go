package human

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Width is the largest number of columns of tables and text. narrowest is the number of columns that is used on
// narrower terminals.
const (
	Width     = 100
	narrowest = 80
)

// Columns returns how many columns a table or text on w may have: those of the terminal, at least 80 and at most
// Width. If the argument w is not a terminal, it asks the method w.Columns; without this method, it returns Width.
func Columns(w io.Writer) int {
	switch w := w.(type) {
	case interface{ Columns() int }:
		return min(max(w.Columns(), narrowest), Width)
	case *os.File:
		if size, err := unix.IoctlGetWinsize(int(w.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			return min(max(int(size.Col), narrowest), Width)
		}
	}
	return Width
}

// Printer writes lines to W. After the first error, which it keeps in Err, it writes nothing more.
type Printer struct {
	W   io.Writer
	Err error
}

// Line writes a line, without spaces at its end.
func (p *Printer) Line(format string, args ...any) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintln(p.W, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

// Wrapped writes head and then text, in rows of at most Columns. All rows of the text except for the first are
// indented. head should be as wide as the indent.
func (p *Printer) Wrapped(head string, indent int, text string) {
	for i, row := range Wrap(text, Columns(p.W)-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		p.Line("%s%s", head, row)
	}
}

// Fact writes a label in a narrow column, and a text beside it.
func (p *Printer) Fact(label, text string) { p.Wrapped(fmt.Sprintf("%-13s ", label), 14, text) }

// Maybe writes a fact, but nothing if the text is empty.
func (p *Printer) Maybe(label, text string) {
	if text != "" {
		p.Fact(label, text)
	}
}

// inNumber matches a space inside a number, as in "12 345", or before its unit.
var inNumber = regexp.MustCompile(`(\d) (\d{3}\b|ns\b|µs\b|ms\b|s\b|%)`)

const noBreak = "\u00a0"

// Unbroken makes spaces inside numbers, and before their units, non-breaking.
func Unbroken(text string) string {
	for range 2 { // twice, because matches do not overlap, and a group of digits may have a blank on both sides
		text = inNumber.ReplaceAllString(text, "$1"+noBreak+"$2")
	}
	return text
}

// lineEnd matches a line break, as in the text of some errors.
var lineEnd = regexp.MustCompile(` *\n *`)

// Wrap breaks a text into rows of at most the given number of columns. It never breaks within a number or before a
// unit.
func Wrap(text string, columns int) []string {
	rows := []string{""}
	for word := range strings.SplitSeq(Unbroken(lineEnd.ReplaceAllString(text, " ")), " ") {
		word = strings.ReplaceAll(word, noBreak, " ")
		last := &rows[len(rows)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) > columns:
			rows = append(rows, word)
		default:
			*last += " " + word
		}
	}
	return rows
}
