package dashboard

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"
	"unicode/utf8"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
)

// marks has the characters for what a worker does. The most important one comes first: it wins if a column has
// several.
var marks = []struct {
	cell   measure.Cell
	letter string
	tone   tone
	name   string
}{
	{measure.Overlap, "X", bad, "OVERLAP"},
	{measure.Stopped, "‖", warning, "stopped"},
	{measure.Expired, "!", warning, "too late"},
	{measure.Held, "▁-█", good, "holds"}, // height of the bar: share of the time
	{measure.Orphaned, "░", warning, "lease left"},
	{measure.Waited, "·", plain, "waits"},
	{measure.NotKnown, "?", faint, ""}, // the lane has a text about it
}

func legend() (text string) {
	for _, m := range marks {
		if m.name != "" {
			text += m.letter + " " + m.name + " "
		}
	}
	return text[:len(text)-1]
}

// laneText is the width of the text in a lane, and laneName that of the worker's name.
const (
	laneText = 25
	laneName = 4
)

// Times that lanes can show. A run shows usualSpan, unless keys change it, and from leastSpan to mostSpan. A saved
// history can show leastHistory or more.
const (
	usualSpan    = 2500 * time.Millisecond
	leastSpan    = 500 * time.Millisecond
	leastHistory = 100 * time.Microsecond
	mostSpan     = time.Minute
)

// shown returns the length of the time that lanes show. A saved history is shown as a whole until a key changes
// that.
func (st *state) shown(s *measure.Snapshot) time.Duration {
	if s.Lane != nil {
		return min(max(cmp.Or(st.span, s.To), leastHistory), max(s.To, leastHistory))
	}
	return min(max(cmp.Or(st.span, usualSpan), leastSpan), mostSpan)
}

// stretch is the period that lanes show; column is the length of the time in one column.
type stretch struct {
	begin, end, column time.Duration
}

// stretch returns the period that lanes with these columns show. For a run it is the latest time, unless the user
// has scrolled. For a saved history it is the time around the current moment.
func (st *state) stretch(s *measure.Snapshot, columns int) stretch {
	span, columns := st.shown(s), max(columns, 1)
	if s.Lane != nil {
		begin := max(min(s.At-span/2, s.To-span), 0)
		return stretch{begin, begin + span, span / time.Duration(columns)}
	}
	n := int(span / measure.StripStep)
	if n > columns { // a column has a whole number of cells: otherwise the moving lanes flicker
		n = min((n+columns-1)/columns*columns, measure.StripCells/columns*columns)
	}
	span = time.Duration(n) * measure.StripStep
	end := s.LanesEnd
	if st.until > 0 {
		end = max(st.until, s.LanesEnd-mostSpan+span)
	}
	return stretch{end - span, end, max(span/time.Duration(columns), measure.StripStep)}
}

// of returns the cells of a lane in this period.
func (v stretch) of(s *measure.Snapshot, l *measure.Strip, columns int) []measure.Cell {
	if s.Lane != nil {
		return s.Lane(l.Worker, v.begin, v.end, columns)
	}
	last := len(l.Cells) - int((s.LanesEnd-v.end)/measure.StripStep)
	return l.Cells[max(last-int((v.end-v.begin)/measure.StripStep), 0):max(last, 0)]
}

// holders shows who holds the lock: a lane for each worker. If it is the only panel, it has a time axis and can be
// scrolled and zoomed.
func holders(c canvas, s *measure.Snapshot, st *state) {
	heading, whole := c.part(0, 0, c.w, 1), st.view == holdersView
	c = c.part(0, 1, c.w, c.h-1)
	columns := c.w - laneName - 1 - laneText
	if s.Head.Unseen || columns < 10 || c.h <= 0 {
		heading.panel("who holds the lock", "")
		if s.Head.Unseen {
			c.put(0, 0, faint, "a service does its own locking: its holders cannot be seen")
		}
		return
	}
	shown := st.stretch(s, columns)
	lanes, inHeading, below := st.lanes(s), legend(), 0
	for i := range lanes {
		lanes[i].Cells = shown.of(s, &lanes[i], columns)
	}
	switch wide := 26 + utf8.RuneCountInString(inHeading+shownText(s, st, shown, len(lanes)-c.h+1)); {
	case whole:
		inHeading, below = "z Z zoom  left right scroll", 2
		if st.replay {
			inHeading = "z Z zoom  left right seek"
		}
	case wide > c.w:
		inHeading, below = "", min(1, c.h-1)
	case s.Lane != nil:
		below = min(1, c.h-1)
	}
	rows := max(c.h-below, 0)
	order(lanes, rows)
	first := 0
	if whole {
		st.top = min(st.top, max(len(lanes)-rows, 0))
		first = st.top
	}
	for y, l := range lanes[first:min(first+rows, len(lanes))] {
		c.put(0, y, plain, fmt.Sprintf("w%02d", l.Worker))
		paintStrip(c.part(laneName, y, columns, 1), l.Cells)
		text, t := doing(&l, s.Head.Keys > 1)
		c.put(c.w-laneText, y, t, text)
	}
	foot := c.part(0, c.h-below, c.w, below)
	if whole || s.Lane != nil {
		foot.axis(s, shown, columns)
	}
	if below == 2 || s.Lane == nil {
		foot.put(0, below-1, faint, legend())
	}
	heading.panel("who holds the lock", inHeading)
	heading.right(0, faint, shownText(s, st, shown, len(lanes)-rows))
}

// axis draws times below the lanes. In a replay it also marks the current moment.
func (c canvas) axis(s *measure.Snapshot, shown stretch, columns int) {
	c = c.part(laneName, 0, columns, 1)
	c.timeAxis(0, shown.begin, shown.end)
	if s.Lane != nil {
		c.put(min(int(int64(columns)*int64(s.At-shown.begin)/int64(shown.end-shown.begin)), columns-1), 0, strong, "▲")
	}
}

// shownText says which period the lanes show, and for how many workers there is no room.
func shownText(s *measure.Snapshot, st *state, shown stretch, rest int) string {
	span, text := shown.end-shown.begin, ""
	switch {
	case st.view == holdersView: // that view has an axis
	case st.until == 0 && s.Lane == nil:
		text = fmt.Sprintf("last %.1f s, ", span.Seconds())
	default:
		text = decimals(max(shown.begin, 0), span/20) + " to " + decimals(shown.end, span/20) + " s, "
	}
	text = " " + text + human.Duration(shown.column) + " a column "
	if rest = max(rest, 0) + s.Hidden; rest > 0 {
		text = fmt.Sprintf(" +%d workers,", rest) + text
	}
	return text
}

// order sorts the lanes if there is no room for all of them: those with the most unusual cells come first. It
// compares logarithms of the numbers of unusual cells, so that lanes rarely change places.
func order(lanes []measure.Strip, room int) {
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
		for _, c := range l.Cells {
			see(c)
		}
		rank[l.Worker] = -2*bits.Len(unusual) - left
	}
	slices.SortFunc(lanes, func(a, b measure.Strip) int {
		return cmp.Or(cmp.Compare(rank[a.Worker], rank[b.Worker]), cmp.Compare(a.Worker, b.Worker))
	})
}

// paintStrip paints the cells of a lane. If a column has several cells, it shows the most important mark among them.
// For holds the height of its bar is the share of the time.
func paintStrip(c canvas, cells []measure.Cell) {
	for x := range c.w {
		var sum measure.Cell
		held, from := 0.0, x*len(cells)/c.w
		to := min(max((x+1)*len(cells)/c.w, from+1), len(cells))
		for _, cell := range cells[from:to] {
			sum |= cell
			held += cell.Share()
		}
		for _, m := range marks {
			if sum&m.cell == 0 {
				continue
			}
			letter := m.letter
			if m.cell == measure.Held {
				letter = string(bars[human.Shade(held/float64(to-from))])
			}
			c.put(x, 0, m.tone, letter)
			break
		}
	}
}

// doing describes what a worker does now.
func doing(l *measure.Strip, pages bool) (string, tone) {
	page, holds, lease := "", "holds", ""
	if pages {
		page, holds = fmt.Sprintf(" p%d", l.Page), fmt.Sprintf("p%d", l.Page)
	}
	if l.Lease > 0 && l.Lease != forever {
		lease = ", " + short(l.Lease) + " left"
	}
	switch {
	case l.Mode&measure.Stopped != 0:
		return "STOPPED " + short(l.Since) + lease, warning
	case l.Mode&measure.NotKnown != 0:
		return "not known yet", faint
	case l.Mode&measure.Expired != 0:
		return "LEASE OVER" + page, warning
	case l.Mode&measure.Held != 0:
		return holds + " " + short(l.Since) + lease, strong
	case l.Mode&measure.Orphaned != 0:
		return "gone" + page + lease, warning
	case l.Mode&measure.Waited != 0:
		return "waits " + short(l.Since), plain
	default:
		return "", plain
	}
}

// short formats a duration in a few characters.
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
