package dashboard

import (
	"fmt"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
)

// Size of the smallest screen that has room for panels.
const (
	minWidth  = 80
	minHeight = 24
)

// fewestHeat is the smallest number of rows of a heat map next to other panels.
const fewestHeat = 10

func draw(c canvas, s *measure.Snapshot, st *state, now time.Time) {
	if c.w < minWidth || c.h < minHeight {
		drawLines(c, s)
		return
	}
	header(c.part(0, 0, c.w, 2), s, st)
	footer(c.part(0, c.h-1, c.w, 1), s, st, now)
	body := c.part(0, 2, c.w, c.h-3)
	switch {
	case st.view == boardView && s.Board != nil:
		scoreboard(body, s, st)
	case s.At == 0 && !st.replay:
		starting(body, s)
	case st.view == holdersView:
		holders(body, s, st)
	case st.view == latencyView:
		latency(body.part(0, 0, body.w, 7), s)
		heat(body.part(0, 7, body.w, body.h-7), s, st)
	case st.view == fairnessView:
		sharing(body, s, st)
	case st.view == nodesView:
		deployment(body.part(0, 0, body.w, body.h-4), s, st)
		cost(body.part(0, body.h-4, body.w, 4), s)
	case st.view == eventsView:
		eventsInFull(body, s, st)
	default:
		overview(body, s, st)
	}
}

// overview draws all panels: in two columns on a large screen, otherwise in one.
func overview(c canvas, s *measure.Snapshot, st *state) {
	top := 7
	if c.h >= 28 {
		top = 8
	}
	if c.w >= 140 && c.h >= 40 {
		left := c.w * 3 / 5
		right := c.w - left - 1
		eventRows := max(c.h/4, 6)
		latency(c.part(left+1, 0, right, 8), s)
		fairness(c.part(left+1, 8, right, 6), s)
		cost(c.part(left+1, 14, right, 6), s)
		machines(c.part(left+1, 20, right, c.h-20-eventRows), s, st)
		throughput(c.part(0, 0, left, 12), s)
		lanes := c.h - 12 - eventRows
		if spare := lanes - len(s.Lanes) - 2; spare >= fewestHeat && !s.Head.Unseen { // room for a heat map
			lanes -= spare
			heat(c.part(0, 12+lanes, left, spare), s, st)
		}
		holders(c.part(0, 12, left, lanes), s, st)
		events(c.part(0, c.h-eventRows, c.w, eventRows), s, st)
		return
	}
	half := c.w / 2
	low, eventRows := 4, 4 // one row is for the legend of the lanes
	if c.h >= 28 {
		low = 8
		eventRows = max((c.h-top-low)*2/5, 4)
	}
	throughput(c.part(0, 0, half-1, top), s)
	latency(c.part(half, 0, c.w-half, top), s)
	holders(c.part(0, top, c.w, c.h-top-low-eventRows), s, st)
	y := c.h - low - eventRows
	fairness(c.part(0, y, half-1, min(low, 5)), s)
	if low > 5 {
		cost(c.part(0, y+5, half-1, low-5), s)
	}
	machines(c.part(half, y, c.w-half, low), s, st)
	events(c.part(0, c.h-eventRows, c.w, eventRows), s, st)
}

func footer(c canvas, s *measure.Snapshot, st *state, now time.Time) {
	if st.message != "" && now.Sub(st.said) < messageFor {
		c.row(0, strong, " "+st.message)
		return
	}
	keys := "1 all 2 locks 3 latency 4 fairness 5 nodes 6 events  ? help  / filter  p freeze  f fault  q end"
	if st.replay {
		keys = "1-6 views left right seek z Z zoom n violation + - speed space stop ? help q end"
	}
	if c.w < 100 && !st.replay {
		keys = "1 all 2 locks 3 latency 4 fair 5 nodes 6 events ? help / p freeze f fault q end"
	}
	if s.Board != nil {
		keys = "0 runs  up down choose one  1-6 views of it  ? help  / filter  p freeze  q end"
	}
	if st.filter != "" {
		keys = "filter " + st.filter + "  " + keys
	}
	c.row(0, faint, keys)
}

// drawLines draws only a few lines of text, on a screen that is too small for panels.
func drawLines(c canvas, s *measure.Snapshot) {
	safety, safetyTone := safetyText(s)
	generator, generatorTone := generatorText(s)
	c.put(0, 0, plain, fmt.Sprintf("%s: %s %.1f s", s.Head.Name(), s.Stage, s.At.Seconds()))
	c.put(0, 1, plain, fmt.Sprintf("%s visits, acquire p50 %s p99 %s, %d waiting, %d errors", human.Count(s.Done),
		s.Acquire.Text(false), s.Acquire.Text(true), s.Waiting, s.Errors))
	c.put(0, 2, safetyTone, safety)
	c.put(0, 3, generatorTone, generator)
	for i, f := range s.Active {
		c.put(0, 4+i, bad, "FAULT "+f)
	}
	c.put(0, c.h-1, faint, fmt.Sprintf("%d x %d; panels need %d x %d", c.w, c.h, minWidth, minHeight))
}
