package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// forever is the time of an event that never happens.
const forever = time.Duration(1<<63 - 1)

// header shows the run, its progress, whether the lock is safe so far, and whether the load generator can be
// trusted.
func header(c canvas, s *measure.Snapshot, st *state) {
	h := &s.Head
	loop := "closed loop"
	if h.Rate > 0 {
		loop = human.Number(h.Rate) + "/s"
	}
	if i := phaseAt(s, s.At); i >= 0 {
		loop += fmt.Sprintf("  phase %d of %d: %s", i+1, len(h.Phases), h.Phases[i].Name)
	}
	title := fmt.Sprintf("%s  %s  %s  %s", h.Name(), human.Quantity(h.Workers, "worker"),
		human.Quantity(h.Keys, "page"), loop)
	if h.Of > 1 {
		title = fmt.Sprintf("[%d/%d] ", h.Number, h.Of) + title
	}
	if h.Interactive {
		title += "  INTERACTIVE"
	}
	x := c.put(0, 0, strong, title)
	switch {
	case len(s.Active) > 0:
		text := "FAULT " + s.Active[len(s.Active)-1]
		if n := len(s.Active); n > 1 {
			text = fmt.Sprintf("%d FAULTS, last %s", n, s.Active[n-1])
		}
		text = cut(" "+text+" ", c.w-x-1)
		c.right(0, bad, text)
	case h.Label != "":
		c.right(0, faint, cut(h.Label, c.w-x-2))
	case x < c.w-17:
		c.right(0, faint, "no fault at work")
	}
	safety, tone := safetyText(s)
	generator, generatorTone := generatorText(s)
	stage := s.Stage
	if st.frozen {
		stage = "FROZEN"
	} else if s.Paused {
		stage = "PAUSED"
	}
	if s.Speed > 0 && s.Speed != 1 {
		stage += " x" + strconv.FormatFloat(s.Speed, 'g', -1, 64)
	}
	left := stage
	if s.At > 0 {
		left += fmt.Sprintf(" %.1f of %s", s.At.Seconds(), span(s.To))
	}
	x = c.put(0, 1, strong, left) + 1
	tail := c.w - len(safety) - len(generator) - 4
	if s.To > 0 && s.At > 0 && tail-x >= 4 {
		width := min(tail-x-1, 40)
		done := min(int(float64(s.At)/float64(s.To)*float64(width)), width)
		c.put(x, 1, plain, strings.Repeat("█", done)+strings.Repeat("░", width-done))
	}
	x = c.put(max(tail+1, x), 1, tone, " "+safety+" ")
	c.put(x, 1, generatorTone, " "+generator)
}

func safetyText(s *measure.Snapshot) (string, tone) {
	switch {
	case s.Safety.Violations > 0:
		return fmt.Sprintf("SAFETY VIOLATED %sx", human.Count(s.Safety.Violations)), bad
	case s.At == 0:
		return "SAFETY not tried yet", plain
	case s.Head.Unseen, s.Head.Watched:
		return "SAFETY judged at the end", plain
	case !s.Safety.Excludes:
		return fmt.Sprintf("SAFETY no update lost up to %.1f s", s.Safety.SafeUpTo.Seconds()), good
	default:
		return fmt.Sprintf("SAFETY proved up to %.1f s", s.Safety.SafeUpTo.Seconds()), good
	}
}

func generatorText(s *measure.Snapshot) (string, tone) {
	state := s.Generator.State
	return "GENERATOR " + cmp.Or(string(state), "not judged"), map[results.GeneratorState]tone{
		results.GeneratorOK: good, results.Suspect: warning, results.Saturated: bad, results.Disturbed: bad}[state]
}

// throughput shows the visits in each second of the last minute.
func throughput(c canvas, s *measure.Snapshot) {
	seconds := s.Seconds[:max(len(s.Seconds)-1, 0)] // without the last second, which is incomplete
	c = c.panel("throughput", "visits a second, ▲ fault at work")
	var values []float64
	var most, now float64
	for _, x := range seconds {
		now = float64(x.Done)
		values, most = append(values, now), max(most, now)
	}
	text := fmt.Sprintf("now %s/s  peak %s/s  errors %s", human.Count(int64(now)), human.Count(int64(most)),
		human.Count(s.Errors))
	if c.w >= 56 {
		text += "  done " + human.Count(s.Done)
	}
	c.put(0, 0, plain, text)
	if c.h < 3 {
		return
	}
	c.put(0, c.h-1, faint, strings.Repeat("─", c.w))
	c = c.part(0, 1, c.w, c.h-1)
	high := c.part(0, 0, c.w, c.h-1).yAxis(human.Count(int64(most)))
	c = c.part(c.w-high.w, 0, high.w, c.h)
	width := 1
	if c.w >= 2*60 {
		width = 2
	}
	wide, marks := make([]float64, 0, len(values)*width), make([]measure.Second, 0, len(values)*width)
	for i, v := range values {
		for range width {
			wide, marks = append(wide, v), append(marks, seconds[i])
		}
	}
	marks = marks[max(len(marks)-c.w, 0):]
	left := high.spark(wide, most, func(i int) tone {
		switch {
		case marks[i].Fault:
			return warning
		case phaseAt(s, marks[i].At)%2 == 1:
			return faint
		}
		return plain
	})
	if len(seconds) > 0 && len(s.Head.Phases) == 0 {
		end := marks[len(marks)-1].At + time.Second
		c.timeAxis(c.h-1, end-time.Duration(c.w)*time.Second/time.Duration(width), end)
	}
	c.phases(s, marks, left)
	for i, second := range marks {
		if second.Fault {
			c.mark(left+i, c.h-1, "─", warning, "▲")
		}
	}
}

// phases writes the names of the phases below a graph, each at its first second, if there is room.
func (c canvas) phases(s *measure.Snapshot, seconds []measure.Second, left int) {
	for from := 0; from < len(seconds); {
		phase, to := phaseAt(s, seconds[from].At), from+1
		for to < len(seconds) && phaseAt(s, seconds[to].At) == phase {
			to++
		}
		if phase >= 0 {
			c.put(left+from, c.h-1, plain, cut("│"+s.Head.Phases[phase].Name, to-from))
		}
		from = to
	}
}

// phaseAt returns the index of the phase at this time of the run; -1 = none.
func phaseAt(s *measure.Snapshot, at time.Duration) int {
	return slices.IndexFunc(s.Head.Phases, func(p measure.Span) bool { return at < p.To })
}

// cost shows what a visit costs the clients and the servers.
func cost(c canvas, s *measure.Snapshot) {
	c = c.panel("cost a visit", "of the last seconds")
	if s.Head.Unseen {
		c.put(0, 0, faint, "it is not seen from outside what a service does")
		c.reasons(s)
		return
	}
	number := func(x *float64, format string) string {
		if x == nil {
			return "-"
		}
		return fmt.Sprintf(format, *x)
	}
	cpu := "-"
	if s.Cost.ServerCPU != nil {
		cpu = human.Duration(time.Duration(*s.Cost.ServerCPU))
	}
	text := fmt.Sprintf("%s round trips  %s commands  %s CPU", number(s.Cost.RoundTrips, "%.1f"),
		number(s.Cost.Commands, "%.1f"), cpu)
	if s.Cost == (results.Cost{}) {
		text = "not measured: " + costUnknown(s)
	} else if strings.HasPrefix(text, "-") || strings.Contains(text, " - ") {
		text += "  (-: " + costUnknown(s) + ")"
	}
	c.put(0, 0, plain, cut(text, c.w))
	c.reasons(s)
}

// costUnknown says why a cost is not known.
func costUnknown(s *measure.Snapshot) string {
	switch {
	case s.Stage == "replay":
		return "the record lacks it"
	case s.At < s.From+4*time.Second:
		return "it takes some seconds"
	case slices.ContainsFunc(s.Nodes, func(n measure.NodeState) bool { return n.State != "up" }):
		return "a server is down"
	default:
		return "not counted"
	}
}

// reasons says why the load generator cannot be trusted.
func (c canvas) reasons(s *measure.Snapshot) {
	for i, reason := range s.Generator.Reasons {
		c.put(0, 1+i, faint, "generator: "+reason)
	}
}

func cut(text string, width int) string {
	r := []rune(text)
	switch {
	case width <= 0:
		return ""
	case len(r) <= width:
		return text
	default:
		return string(r[:width-1]) + "…"
	}
}

func span(d time.Duration) string {
	if d == forever {
		return "?"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
