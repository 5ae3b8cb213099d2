package dashboard

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"
	"unicode/utf8"

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

// laneText is the width of the text of a lane, laneName that of its worker's name.
const (
	laneText = 24
	laneName = 4
)

// spans are the lengths of time that lanes can show.
var spans = []time.Duration{500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
	20 * time.Second, 30 * time.Second, time.Minute}

// usualSpan is the place of the one that is shown before a key was pressed.
const usualSpan = 2

// stretch is a part of the last minute that lanes show.
type stretch struct {
	from, cells int // from the oldest cell
	end         time.Duration
}

// stretch is the part that was chosen, for lanes with so many columns.
func (st *state) stretch(s *measure.Snapshot, columns int) stretch {
	n := int(spans[usualSpan+st.zoom] / measure.StripStep)
	if columns > 0 && n > columns { // whole cells a column, so that a picture does not flicker as it moves
		n = (n + columns - 1) / columns * columns
	}
	n = min(n, measure.StripCells)
	back := 0
	if st.until > 0 {
		back = min(max(int((s.LanesEnd-st.until)/measure.StripStep), 0), measure.StripCells-n)
	}
	return stretch{measure.StripCells - n - back, n, s.LanesEnd - time.Duration(back)*measure.StripStep}
}

func (v stretch) begin() time.Duration { return v.end - time.Duration(v.cells)*measure.StripStep }

// of is the part of a lane.
func (v stretch) of(l *measure.Strip) []measure.Cell {
	return l.Cells[min(max(v.from, 0), len(l.Cells)):min(v.from+v.cells, len(l.Cells))]
}

// holders shows who holds the lock: a lane a worker. As a view of its own it has an axis, and can be scrolled and zoomed.
func holders(c canvas, s *measure.Snapshot, st *state) {
	heading, whole := c.part(0, 0, c.w, 1), st.view == holdersView
	c = c.part(0, 1, c.w, c.h-1)
	columns := c.w - laneName - 1 - laneText
	if s.Head.Service || columns < 10 || c.h <= 0 {
		heading.panel("who holds the lock", "")
		if s.Head.Service {
			c.put(0, 0, faint, "a service locks by itself: nobody sees who holds it")
		}
		return
	}
	shown := st.stretch(s, columns)
	lanes, inHeading, below := st.lanes(s), legend(), 0
	switch wide := 26 + utf8.RuneCountInString(inHeading+shownText(s, st, shown, len(lanes)-c.h)); {
	case whole:
		inHeading, below = "z Z zoom  left right scroll", 2
		if st.replay {
			inHeading = "z Z zoom  left right seek"
		}
	case wide > c.w:
		inHeading, below = "", min(1, c.h-1)
	}
	rows := max(c.h-below, 0)
	order(lanes, shown, rows)
	first := 0
	if whole {
		st.top = min(st.top, max(len(lanes)-rows, 0))
		first = st.top
	}
	for y, l := range lanes[first:min(first+rows, len(lanes))] {
		c.put(0, y, plain, fmt.Sprintf("w%02d", l.Worker))
		paintStrip(c.part(laneName, y, columns, 1), shown.of(&l))
		text, t := doing(&l, s.Head.Keys > 1)
		c.put(c.w-laneText, y, t, text)
	}
	if whole {
		c.part(laneName, 0, columns, c.h).timeAxis(c.h-2, shown.begin(), shown.end)
	}
	if below > 0 {
		c.put(0, c.h-1, faint, legend())
	}
	heading.panel("who holds the lock", inHeading)
	heading.right(0, faint, shownText(s, st, shown, len(lanes)-rows))
}

// shownText says which time lanes show, and how many workers have no lane: those that there is no row for, and others.
func shownText(s *measure.Snapshot, st *state, shown stretch, rest int) string {
	text := fmt.Sprintf(" last %.1f s ", (shown.end - shown.begin()).Seconds())
	if st.until > 0 {
		text = fmt.Sprintf(" %.1f to %.1f s ", max(shown.begin(), 0).Seconds(), shown.end.Seconds())
	}
	if rest = max(rest, 0) + s.Hidden; rest > 0 {
		text = fmt.Sprintf(" +%d workers,", rest) + text
	}
	return text
}

// order puts those lanes first that something unusual is seen on, if there is no room for all: where for twice as long, before
// the others, so that rows do not change places all the time.
func order(lanes []measure.Strip, shown stretch, room int) {
	if len(lanes) <= room {
		return
	}
	rank := make(map[int]int, len(lanes))
	for i := range lanes {
		l, unusual, left := &lanes[i], uint(0), 0
		see := func(c measure.Cell) {
			if c&(measure.Overlap|measure.Stopped|measure.Expired) != 0 {
				unusual++
			} else if c&measure.Orphaned != 0 {
				left = 1
			}
		}
		see(l.Mode)
		for _, c := range shown.of(l) {
			see(c)
		}
		rank[l.Worker] = -2*bits.Len(unusual) - left
	}
	slices.SortFunc(lanes, func(a, b measure.Strip) int {
		return cmp.Or(cmp.Compare(rank[a.Worker], rank[b.Worker]), cmp.Compare(a.Worker, b.Worker))
	})
}

// paintStrip paints cells over the whole width; where a column stands for several, the most important mark counts.
func paintStrip(c canvas, cells []measure.Cell) {
	for x := range c.w {
		var sum measure.Cell
		for i := x * len(cells) / c.w; i < max((x+1)*len(cells)/c.w, x*len(cells)/c.w+1) && i < len(cells); i++ {
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
