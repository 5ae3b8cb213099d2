package human

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Table writes rows of cells; the first row is the heading. If the table is wider than Columns, it is split into
// several tables. The argument names is the number of columns, from the left, with the names of the rows: each of
// these tables begins with them.
func (p *Printer) Table(rows [][]string, names int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell)+len(gap))
		}
	}
	sum := func(widths []int) (n int) {
		for _, w := range widths {
			n += w
		}
		return n
	}
	room := Columns(p.W) + len(gap) - sum(widths[:names])
	for from := names; from < len(widths); {
		to := from + 1
		for to < len(widths) && sum(widths[from:to+1]) <= room {
			to++
		}
		if from > names {
			p.Line("")
		}
		for _, row := range rows {
			line := ""
			for i, cell := range row {
				if i < names || from <= i && i < to {
					line += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
				}
			}
			p.Line("%s", line)
		}
		from = to
	}
}

// gap is the space between two columns.
const gap = "  "

// FlushRight aligns the cells of some columns to the right, which suits numbers.
func FlushRight(rows [][]string, columns ...int) {
	for _, i := range columns {
		widest := 0
		for _, row := range rows {
			widest = max(widest, utf8.RuneCountInString(row[i]))
		}
		for n, row := range rows {
			rows[n] = slices.Clone(row)
			rows[n][i] = strings.Repeat(" ", widest-utf8.RuneCountInString(row[i])) + row[i]
		}
	}
}
