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

// Width is the largest number of columns of a table or wrapped text; narrowest is the smallest number that is assumed.
const (
	Width     = 100
	narrowest = 80
)

// Columns returns the number of columns for tables and text on w: that of the terminal, but at least 80 and at most
// Width. It returns Width if w is neither a terminal nor has a method Columns.
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

// Printer writes lines to W and keeps the first error.
type Printer struct {
	W   io.Writer
	Err error
}

// Line writes a line without trailing blanks.
func (p *Printer) Line(format string, args ...any) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintln(p.W, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

// Wrapped writes a head and a text. Rows after the first are indented. Rows end at Columns if head is as wide as the
// indent.
func (p *Printer) Wrapped(head string, indent int, text string) {
	for i, row := range Wrap(text, Columns(p.W)-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		p.Line("%s%s", head, row)
	}
}

// Fact writes a label, and a text in the next column.
func (p *Printer) Fact(label, text string) { p.Wrapped(fmt.Sprintf("%-13s ", label), 14, text) }

// Maybe writes a fact unless its text is empty.
func (p *Printer) Maybe(label, text string) {
	if text != "" {
		p.Fact(label, text)
	}
}

// inNumber is a blank between digits or before a unit.
var inNumber = regexp.MustCompile(`(\d) (\d{3}\b|ns\b|µs\b|ms\b|s\b|%)`)

const noBreak = "\u00a0"

// Unbroken makes the blanks in numbers, and before their units, non-breaking.
func Unbroken(text string) string {
	for range 2 { // twice, because matches do not overlap, and a group of digits may have a blank on both sides
		text = inNumber.ReplaceAllString(text, "$1"+noBreak+"$2")
	}
	return text
}

// lineEnd is a line break inside a text, as in some errors.
var lineEnd = regexp.MustCompile(` *\n *`)

// Wrap breaks a text into rows of at most columns, never within a number or before its unit.
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
