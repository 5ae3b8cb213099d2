package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// forever stands for no time.
const forever = time.Duration(1<<63 - 1)

// header shows the run, its progress, its safety, and whether its generator can be trusted.
func header(c canvas, s *measure.Snapshot, st *state) {
	h := &s.Head
	loop := "closed loop"
	if h.Rate > 0 {
		loop = human.Number(h.Rate) + "/s"
	}
	if i := phaseAt(s, s.At); i >= 0 {
		loop += fmt.Sprintf("  phase %d of %d: %s", i+1, len(h.Phases), h.Phases[i].Name)
	}
	title := fmt.Sprintf("%s  %s  %s  %s", h.Name(), human.Quantity(h.Workers, "worker"), human.Quantity(h.Keys, "page"), loop)
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
	default:
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
	case s.Head.Service:
		return "SAFETY judged at the end", plain
	case !s.Safety.Excludes:
		return fmt.Sprintf("SAFETY no update lost up to %.1f s", s.Safety.SafeUpTo.Seconds()), good
	default:
		return fmt.Sprintf("SAFETY proved up to %.1f s", s.Safety.SafeUpTo.Seconds()), good
	}
}

func generatorText(s *measure.Snapshot) (string, tone) {
	switch s.Generator.State {
	case "":
		return "GENERATOR ?", plain
	case results.GeneratorOK:
		return "GENERATOR OK", good
	case results.Suspect:
		return "GENERATOR SUSPECT", warning
	default:
		return "GENERATOR SATURATED", bad
	}
}

// throughput is the last minute, second by second.
func throughput(c canvas, s *measure.Snapshot) {
	seconds := s.Seconds[:max(len(s.Seconds)-1, 0)] // the last one is not over
	c = c.panel("throughput", "visits a second, ▲ fault at work")
	var values []float64
	var most, now float64
	for _, x := range seconds {
		now = float64(x.Done)
		values, most = append(values, now), max(most, now)
	}
	text := fmt.Sprintf("now %s/s  peak %s/s  errors %s", human.Count(int64(now)), human.Count(int64(most)), human.Count(s.Errors))
	if c.w >= 56 {
		text += "  done " + human.Count(s.Done)
	}
	c.put(0, 0, plain, text)
	if c.h < 3 {
		return
	}
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
	graph := c.part(0, 1, c.w, c.h-2)
	left := graph.spark(wide, most, func(i int) tone {
		switch {
		case marks[i].Fault:
			return warning
		case phaseAt(s, marks[i].At)%2 == 1:
			return faint
		}
		return plain
	})
	c.put(0, c.h-1, faint, strings.Repeat("─", c.w))
	for i, second := range marks {
		if second.Fault {
			c.put(left+i, c.h-1, warning, "▲")
		}
	}
	c.phases(s, marks, left)
}

// phases names the phases of the load at the foot of a graph of seconds, as far as there is room: each where it begins.
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

// phaseAt is the number of the phase that goes on at a time; -1 = none.
func phaseAt(s *measure.Snapshot, at time.Duration) int {
	return slices.IndexFunc(s.Head.Phases, func(p measure.Span) bool { return at < p.To })
}

// latency is the table of percentiles, with the random waiter and the longest wait, which percentiles hide.
func latency(c canvas, s *measure.Snapshot) {
	c = c.panel("latency", "")
	column := max(min((c.w-12)/3, 12), 8)
	for i, head := range []string{"now", "10 s", "run"} {
		c.put(12+(i+1)*column-len(head), 0, faint, head)
	}
	y := 1
	for _, r := range s.Latency {
		for i, p := range []string{"p50", "p99"} {
			name := ""
			if i == 0 {
				name = r.Name
			}
			c.put(0, y, plain, fmt.Sprintf("%-8s %s", name, p))
			for k, q := range []measure.Quantiles{r.Now, r.Ten, r.Run} {
				text := q.Text(i == 1)
				c.put(12+(k+1)*column-len([]rune(text)), y, plain, text)
			}
			y++
		}
	}
	longest, t := "longest now -", plain
	if s.LongestBy >= 0 {
		longest = fmt.Sprintf("longest now %s by w%02d", human.Duration(s.Longest), s.LongestBy)
	}
	if s.Longest > 10*max(s.Random.P50, time.Millisecond) && s.Random.Count > 0 {
		t = warning
	}
	if s.Head.Service {
		return
	}
	random := "random waiter " + s.Random.Text(false)
	if c.h > y+1 {
		c.put(0, y, plain, random+"  p99 "+s.Random.Text(true))
		c.put(0, y+1, t, longest)
		return
	}
	c.put(c.put(0, y, plain, random)+2, y, t, longest)
}

// fairness shows the workers' shares of the visits.
func fairness(c canvas, s *measure.Snapshot, long bool) {
	c = c.panel("fairness", "visits by worker")
	f := &s.Fairness
	t := plain
	if f.Starving > 0 {
		t = warning
	}
	x := c.put(0, 0, plain, fmt.Sprintf("Jain %.3f  ", f.Jain))
	x = c.put(x, 0, t, fmt.Sprintf("starving %d  ", f.Starving))
	worst := fmt.Sprintf("worst w%02d %s", f.Worst.Worker, human.Count(f.Worst.Visits))
	if !s.Head.Service {
		worst += ", " + human.Duration(time.Duration(f.Worst.Longest))
	}
	c.put(x, 0, plain, cut(worst, c.w-x))
	most := int64(0)
	for _, w := range f.Workers {
		most = max(most, w.Visits)
	}
	if !long {
		var values []float64
		for _, w := range f.Workers[:min(len(f.Workers), max(c.w, 0))] {
			values = append(values, float64(w.Visits))
		}
		graph := c.part(0, 1, min(c.w, len(values)), min(c.h-1, 3))
		graph.spark(values, float64(most), func(int) tone { return plain })
		return
	}
	columns := max(min(c.w/40, (len(f.Workers)+c.h-2)/max(c.h-1, 1)), 1)
	for i, w := range f.Workers {
		column := c.part(i/max(c.h-1, 1)*(c.w/columns), 1, c.w/columns-1, c.h-1)
		if i/max(c.h-1, 1) >= columns {
			c.right(0, faint, fmt.Sprintf("%d workers more", len(f.Workers)-i))
			break
		}
		share := 0.0
		if most > 0 {
			share = float64(w.Visits) / float64(most)
		}
		y := i % max(c.h-1, 1)
		x := column.put(0, y, plain, fmt.Sprintf("w%02d %9s ", i, human.Count(w.Visits)))
		column.put(x, y, plain, strings.Repeat("█", int(share*float64(max(column.w-x, 0))+0.5)))
	}
}

// nodes shows the servers and the links that are cut.
func nodes(c canvas, s *measure.Snapshot, st *state) {
	c = c.panel("topology", "")
	y := 0
	for _, rule := range s.Cuts {
		c.put(0, y, bad, "LINK "+rule)
		y++
	}
	all := st.nodes(s)
	var name, role, condition int
	for _, n := range all {
		name, role, condition = max(name, len(n.Name)), max(role, len(roleText(&n))), max(condition, len(n.State))
	}
	for i, n := range all {
		text := fmt.Sprintf("%-*s %-*s %-*s", name, n.Name, role, roleText(&n), condition, n.State)
		if n.Role == "replica" {
			link := "link DOWN"
			if n.Linked {
				link = "lag " + size(n.Lag)
			}
			text += fmt.Sprintf(" of %s, %s", n.Of, link)
		} else if n.State == "up" && n.Role != programRole {
			text += fmt.Sprintf(" %d clients", n.Clients)
		}
		t := plain
		switch {
		case st.view == nodesView && i == st.node:
			t = chosen
		case n.State != "up":
			t = bad
		case n.Role == "primary":
			t = strong
		}
		c.put(0, y, t, text)
		y++
	}
	if y > c.h {
		c.right(c.h-1, faint, fmt.Sprintf(" %d more: 5", y-c.h+1))
	}
	switch {
	case y > 0:
	case s.Head.Service && !st.replay && s.At > 0:
		c.put(0, 0, faint, "the suite has not started the service")
	case st.replay:
		c.put(0, 0, faint, "a history does not tell: see its events")
	default:
		c.put(0, 0, faint, "not looked at yet")
	}
}

// programRole is the role of what a service is made of.
const programRole = "program"

// roleText is the role of a node; of one that does not answer, the role that it was made for.
func roleText(n *measure.NodeState) string {
	if n.Role == "?" {
		return n.Made + "?"
	}
	return n.Role
}

// cost is what a visit costs clients and servers.
func cost(c canvas, s *measure.Snapshot) {
	c = c.panel("cost a visit", "of the last seconds")
	if s.Head.Service {
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
	c.put(0, 0, plain, fmt.Sprintf("%s round trips  %s commands  %s CPU", number(s.Cost.RoundTrips, "%.1f"),
		number(s.Cost.Commands, "%.1f"), cpu))
	c.reasons(s)
}

// reasons says why the generator is not to be believed.
func (c canvas) reasons(s *measure.Snapshot) {
	for i, reason := range s.Generator.Reasons {
		c.put(0, 1+i, faint, "generator: "+reason)
	}
}

// cut shortens a text to a width.
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

func size(bytes int64) string {
	switch {
	case bytes < 0:
		return "?"
	case bytes < 10_000:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 10_000_000:
		return fmt.Sprintf("%d kB", bytes/1000)
	default:
		return fmt.Sprintf("%d MB", bytes/1_000_000)
	}
}

// span writes the length of a run.
func span(d time.Duration) string {
	if d == forever {
		return "?"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
