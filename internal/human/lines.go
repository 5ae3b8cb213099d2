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

// Width is how many columns a table or a wrapped text takes at most, and narrowest how many it may always take.
const (
	Width     = 100
	narrowest = 80
)

// Columns is how many columns a table or a wrapped text may take on w: as many as the terminal has, from 80 to Width.
// If w is no terminal, and has no method Columns that says it, they are Width.
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

// Line writes one line, without blanks at its end.
func (p *Printer) Line(format string, args ...any) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintln(p.W, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

// Wrapped writes a text after a head. Its rows end at Columns if the head has as many columns as the further rows are
// indented by.
func (p *Printer) Wrapped(head string, indent int, text string) {
	for i, row := range Wrap(text, Columns(p.W)-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		p.Line("%s%s", head, row)
	}
}

// Fact writes a text with a label in a column of its own.
func (p *Printer) Fact(label, text string) { p.Wrapped(fmt.Sprintf("%-13s ", label), 14, text) }

// Maybe writes a fact, unless its text is empty.
func (p *Printer) Maybe(label, text string) {
	if text != "" {
		p.Fact(label, text)
	}
}

// inNumber is a blank between the digits of a number, or before its unit.
var inNumber = regexp.MustCompile(`(\d) (\d{3}\b|ns\b|µs\b|ms\b|s\b|%)`)

const noBreak = "\u00a0"

// Unbroken writes numbers and their units with spaces at which no line ends.
func Unbroken(text string) string {
	for range 2 { // the digits between two blanks belong to both
		text = inNumber.ReplaceAllString(text, "$1"+noBreak+"$2")
	}
	return text
}

// lineEnd is where a text, such as that of an error, has lines of its own.
var lineEnd = regexp.MustCompile(` *\n *`)

// Wrap breaks a text into rows of at most so many columns, between words, but never within a number or before its unit.
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
