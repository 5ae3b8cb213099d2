package dashboard

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/internal/measure"
)

// marks are the letters of what a worker did, the most important first.
var marks = []struct {
	cell   measure.Cell
	letter string
	tone   tone
	name   string
}{
	{measure.Overlap, "X", bad, "OVERLAP"},
	{measure.Stopped, "‖", warning, "stopped"},
	{measure.Expired, "!", warning, "too late"},
	{measure.Held, "█", good, "holds"},
	{measure.Orphaned, "░", warning, "lease left"},
	{measure.Waited, "·", plain, "waits"},
	{measure.NotKnown, "?", faint, ""}, // a lane says so in words
}

func legend() (text string) {
	for _, m := range marks {
		if m.name != "" {
			text += m.letter + " " + m.name + " "
		}
	}
	return text[:len(text)-1]
}

// laneText is the width of the text of a lane.
const laneText = 24

// holders shows who holds the lock: a lane a worker.
func holders(c canvas, s *measure.Snapshot, st *state) {
	heading := c.part(0, 0, c.w, 1)
	c = c.part(0, 1, c.w, c.h-1)
	if s.Head.Service {
		heading.panel("who holds the lock", "")
		c.put(0, 0, faint, "a service locks by itself: nobody sees who holds it")
		return
	}
	lanes := pick(st.lanes(s), c.h)
	cells := c.w - 5 - laneText
	if cells < 10 || c.h == 0 {
		heading.panel("who holds the lock", "")
		return
	}
	each := max((2500/int(measure.StripStep/time.Millisecond)+cells-1)/cells, 1)
	for y, l := range lanes {
		c.put(0, y, plain, fmt.Sprintf("w%02d", l.Worker))
		paintStrip(c.part(4, y, cells, 1), l.Cells, each)
		text, t := doing(&l, s.Head.Keys > 1)
		c.put(c.w-laneText, y, t, text)
	}
	seconds := float64(min(cells*each, measure.StripCells)) * measure.StripStep.Seconds()
	text := fmt.Sprintf(" last %.1f s ", seconds)
	if rest := len(st.lanes(s)) - len(lanes) + s.Hidden; rest > 0 {
		text = fmt.Sprintf(" +%d workers,", rest) + text
	}
	marks := legend()
	if 25+len([]rune(marks))+len(text) > c.w {
		marks = ""
	}
	heading.panel("who holds the lock", marks)
	heading.right(0, faint, text)
}

// paintStrip paints the newest cells that fit; each column stands for several.
func paintStrip(c canvas, cells []measure.Cell, each int) {
	for x := range c.w {
		last := len(cells) - (c.w-1-x)*each
		var sum measure.Cell
		for i := max(last-each, 0); i < last; i++ {
			sum |= cells[i]
		}
		for _, m := range marks {
			if sum&m.cell != 0 {
				c.put(x, 0, m.tone, m.letter)
				break
			}
		}
	}
}

// doing says what a worker does now.
func doing(l *measure.Strip, pages bool) (string, tone) {
	page := ""
	if pages {
		page = fmt.Sprintf(" p%d", l.Page)
	}
	lease := ""
	if l.Lease > 0 && l.Lease != forever {
		lease = ", lease " + short(l.Lease)
	}
	switch {
	case l.Mode&measure.Stopped != 0:
		return " STOPPED " + short(l.Since) + lease, warning
	case l.Mode&measure.NotKnown != 0:
		return " not known yet", faint
	case l.Mode&measure.Expired != 0:
		return " LEASE OVER" + page, warning
	case l.Mode&measure.Held != 0:
		return " holds" + page + " " + short(l.Since) + lease, strong
	case l.Mode&measure.Orphaned != 0:
		return " gone" + page + lease, warning
	case l.Mode&measure.Waited != 0:
		return " waits " + short(l.Since), plain
	default:
		return "", plain
	}
}

// short writes a duration in a few letters.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
}

// pick chooses as many lanes as there is room for: those with something unusual, then the others by number.
func pick(lanes []measure.Strip, room int) []measure.Strip {
	if len(lanes) <= room {
		return lanes
	}
	var chosen, others []measure.Strip
	for _, l := range lanes {
		special := l.Mode&measure.Stopped != 0
		for _, c := range l.Cells {
			special = special || c&(measure.Overlap|measure.Stopped|measure.Expired|measure.Orphaned) != 0
		}
		if special && len(chosen) < room {
			chosen = append(chosen, l)
		} else {
			others = append(others, l)
		}
	}
	chosen = append(chosen, others[:max(room-len(chosen), 0)]...)
	slices.SortFunc(chosen, func(a, b measure.Strip) int { return a.Worker - b.Worker })
	return chosen
}
