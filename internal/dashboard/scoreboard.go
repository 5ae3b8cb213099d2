package dashboard

import (
	"fmt"
	"time"
	"unicode/utf8"

	"hammerlock/internal/measure"
)

// Widths of columns in a scoreboard: the name of a run, which may be cut off, and its state.
const (
	scoreName  = 30
	scoreState = 13
)

// lanesBelow is the number of rows for the lanes of the chosen run and their heading.
const lanesBelow = 9

// scoreboard shows a job that runs several runs at the same time: a row for each run, and the lanes of the chosen
// run.
func scoreboard(c canvas, s *measure.Snapshot, st *state) {
	b := s.Board
	more := fmt.Sprintf("%d of %d done", b.Ended, len(b.Rows))
	for _, state := range []string{"FAIL", "INCONCLUSIVE", "running"} {
		n := 0
		for i := range b.Rows {
			if b.Rows[i].State == state {
				n++
			}
		}
		if n > 0 {
			more += fmt.Sprintf(", %d %s", n, state)
		}
	}
	if b.Left >= time.Second {
		more += fmt.Sprintf(", about %v left", b.Left.Round(time.Second))
	}
	rows := c.part(0, 0, c.w, c.h-lanesBelow).panel("runs", more)
	name, at := 0, 0
	for i := range b.Rows {
		name = min(max(name, utf8.RuneCountInString(b.Rows[i].Name)), scoreName)
		if b.Rows[i].Number == b.Chosen {
			at = i
		}
	}
	first := min(max(at+1-rows.h, 0), max(len(b.Rows)-rows.h, 0)) // keeps the chosen run visible
	for y, r := range b.Rows[first:min(first+rows.h, len(b.Rows))] {
		mark := " "
		if r.Number == b.Chosen {
			mark = ">"
		}
		rows.put(0, y, strong, mark)
		rows.put(1, y, plain, cut(r.Name, name))
		rows.put(name+2, y, stateTones[r.State], r.State)
		rows.put(name+2+scoreState, y, plain, cut(r.Text, rows.w-name-2-scoreState))
	}
	holders(c.part(0, c.h-lanesBelow, c.w, lanesBelow), s, st)
}

// stateTones has the tone of each state of a run.
var stateTones = map[string]tone{
	"FAIL": bad, "INCONCLUSIVE": warning, "PASS": good, "running": strong, "waiting": faint,
}
