package dashboard

import (
	"fmt"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
)

// events lists what happened, the newest last.
func events(c canvas, s *measure.Snapshot, st *state) {
	more := "enter opens one"
	if st.filter != "" {
		more = "only those with " + st.filter
	}
	if s.Dropped > 0 {
		more += fmt.Sprintf(", %d older ones dropped", s.Dropped)
	}
	c = c.panel("events", more)
	all := st.events(s)
	if len(all) == 0 {
		c.put(0, 0, faint, "nothing yet")
		return
	}
	at := st.chosen(len(all))
	first := max(len(all)-c.h, 0)
	if at >= 0 {
		first = max(min(first, at), at-c.h+1)
	}
	for y := 0; y < c.h && first+y < len(all); y++ {
		e := &all[first+y]
		t := eventTone(e)
		if first+y == at {
			t = chosen
		}
		c.put(0, y, t, eventText(e))
	}
}

func eventTone(e *measure.Event) tone {
	switch e.Kind {
	case measure.ViolationEvent:
		return bad
	case measure.FaultEvent, measure.UnplannedEvent:
		return warning
	default:
		return plain
	}
}

// eventText is an event in one row.
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

// window shows one event and what the workers did around it.
func window(c canvas, e *measure.Event) {
	body := c.panel(fmt.Sprintf("%s at %.3f s", e.Kind, e.At.Seconds()), "esc closes")
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
	strips := body.part(0, y, body.w, body.h-y).panel("the workers around it", legend())
	width := min(strips.w-5, len(e.Around[0].Cells))
	for i, l := range e.Around {
		strips.put(0, i, plain, fmt.Sprintf("w%02d", l.Worker))
		paintStrip(strips.part(4, i, width, 1), l.Cells, (len(l.Cells)+width-1)/max(width, 1))
	}
	x := 4 + int((e.At-e.Begin)/measure.StripStep)*width/max(len(e.Around[0].Cells), 1)
	strips.put(x, len(e.Around), strong, fmt.Sprintf("▲ %.3f s", e.At.Seconds()))
	strips.put(4, len(e.Around)+1, faint, fmt.Sprintf("from %.3f s to %.3f s", max(e.Begin, 0).Seconds(),
		(e.Begin+measure.StripStep*time.Duration(len(e.Around[0].Cells))).Seconds()))
}
