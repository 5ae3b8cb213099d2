package dashboard

import (
	"fmt"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
)

// eventsInFull draws the view of events: the list, and below it the details of the chosen event. If none is chosen,
// it shows the details of the newest.
func eventsInFull(c canvas, s *measure.Snapshot, st *state) {
	all := st.events(s)
	if len(all) == 0 {
		events(c, s, st)
		return
	}
	rows := min(max(c.h/2-1, c.h-24), len(all)+1)
	events(c.part(0, 0, c.w, rows), s, st)
	window(c.part(0, rows, c.w, c.h-rows), st.chosenEvent(s), "")
}

// events lists the events in the order of time.
func events(c canvas, s *measure.Snapshot, st *state) {
	all, more := st.events(s), "enter opens one"
	if st.filter != "" {
		more = fmt.Sprintf("%d of %d have %q in them", len(all), len(s.Events), st.filter)
	}
	if s.Dropped > 0 {
		more += fmt.Sprintf(", %d older ones dropped", s.Dropped)
	}
	c = c.panel("events", more)
	if len(all) == 0 {
		c.put(0, 0, faint, map[bool]string{true: "nothing happened yet",
			false: "no event has that in it; esc forgets the filter"}[len(s.Events) == 0])
		return
	}
	at := st.chosen(len(all))
	first := max(len(all)-c.h, 0)
	if at >= 0 {
		first = max(min(first, at), at-c.h+1)
	}
	for y := 0; y < c.h && first+y < len(all); y++ {
		e := &all[first+y]
		t := eventTones[e.Kind]
		if first+y == at {
			t = chosen
		}
		c.put(0, y, t, cut(eventText(e), c.w))
	}
}

// eventTones has the tones of kinds of events that are not plain.
var eventTones = map[measure.EventKind]tone{
	measure.ViolationEvent: bad, measure.FaultEvent: warning, measure.UnplannedEvent: warning,
}

func eventText(e *measure.Event) string {
	text := fmt.Sprintf("%8.3f %-9s ", e.At.Seconds(), e.Kind)
	if e.Count > 1 {
		text += human.Count(e.Count) + "x "
	}
	text += e.Text
	if e.Kind == measure.FaultEvent {
		if e.To == 0 {
			text += "  AT WORK"
		} else {
			text += fmt.Sprintf("  until %.3f", e.To.Seconds())
		}
	}
	return text
}

// window shows an event, and what the workers did around its time.
func window(c canvas, e *measure.Event, keys string) {
	body := c.panel(fmt.Sprintf("%s at %.3f s", e.Kind, e.At.Seconds()), keys)
	y := 0
	for _, text := range append([]string{e.Text}, e.Detail...) {
		for _, row := range human.Wrap(text, body.w) {
			body.put(0, y, plain, row)
			y++
		}
	}
	y++
	if e.Around == nil {
		body.put(0, y, faint, "what the workers did around it is not known yet")
		return
	}
	strips := body.part(0, y, body.w, body.h-y).panel("around it, "+human.Duration(measure.StripStep)+" a column",
		legend())
	width := min(strips.w-5, len(e.Around[0].Cells))
	for i, l := range e.Around {
		strips.put(0, i, plain, fmt.Sprintf("w%02d", l.Worker))
		paintStrip(strips.part(4, i, width, 1), l.Cells)
	}
	x := 4 + int((e.At-e.Begin)/measure.StripStep)*width/max(len(e.Around[0].Cells), 1)
	rows := min(len(e.Around), max(strips.h-2, 1)) // keep a row for the axis
	if rows < len(e.Around) {
		strips.row(rows, plain, "")
		strips.row(rows+1, plain, "")
	}
	strips.put(x, rows, strong, fmt.Sprintf("▲ %.3f s", e.At.Seconds()))
	strips.part(4, 0, width, strips.h).timeAxis(rows+1, e.Begin,
		e.Begin+measure.StripStep*time.Duration(len(e.Around[0].Cells)))
}
