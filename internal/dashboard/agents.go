package dashboard

import (
	"fmt"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// machines shows the servers. If workers run on several machines, it also shows their agents, in the rows below.
func machines(c canvas, s *measure.Snapshot, st *state) {
	rows := agentRows(c, s)
	nodes(c.part(0, 0, c.w, c.h-rows), s, st)
	agents(c.part(0, c.h-rows, c.w, rows), s)
}

// agentRows returns the number of rows for agents, at most half of the canvas.
func agentRows(c canvas, s *measure.Snapshot) int {
	if len(s.Agents) == 0 {
		return 0
	}
	return min(len(s.Agents)+1, c.h/2)
}

// agents lists the agents. Those that were lost come first.
func agents(c canvas, s *measure.Snapshot) {
	lost := 0
	for _, a := range s.Agents {
		if a.Lost != "" {
			lost++
		}
	}
	c = c.panel("agents", fmt.Sprintf("%d, %d lost", len(s.Agents), lost))
	y := 0
	for _, gone := range []bool{true, false} {
		for _, a := range s.Agents {
			if (a.Lost != "") == gone {
				agent(c, y, &a, s.At)
				y++
			}
		}
	}
	if y > c.h {
		c.right(c.h-1, faint, fmt.Sprintf(" %d more: 5", y-c.h+1))
	}
}

// agent shows an agent in a row: its rate and how late its history arrives. The row also has the number of bytes of
// history that the agent still keeps, and the largest possible error of its clock.
func agent(c canvas, y int, a *results.LiveAgent, now time.Duration) {
	if a.Lost != "" {
		c.put(0, y, bad, cut(fmt.Sprintf("%s on %s LOST at %.1f s", a.Name, a.Host, a.UpTo.Seconds()), c.w))
		return
	}
	x := c.put(0, y, strong, a.Name)
	t, lag := plain, max(now-a.UpTo, 0)
	if lag > 2*time.Second {
		t = warning
	}
	x = c.put(x, y, plain, fmt.Sprintf(" %s op/s ", human.Count(int64(a.Rate))))
	x = c.put(x, y, t, fmt.Sprintf("lag %.1f s ", lag.Seconds()))
	c.put(x, y, plain, cut(fmt.Sprintf("spool %s clock %s on %s", size(a.Spool), human.Duration(time.Duration(a.Doubt)),
		a.Host), c.w-x))
}
