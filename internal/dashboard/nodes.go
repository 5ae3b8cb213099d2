package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/measure"
)

// nodes shows the servers. Above them it lists the network links that are cut.
func nodes(c canvas, s *measure.Snapshot, st *state) {
	c = c.panel("topology", "")
	y := c.cuts(s)
	all := st.nodes(s)
	if y+len(all) > c.h {
		c.part(0, y, c.w, c.h-y).briefly(all)
		return
	}
	text := nodeTexts(all)
	for i, n := range all {
		c.put(0, y+i, nodeTone(&n), text(&n))
	}
	if y+len(all) > 0 {
		return
	}
	for i, r := range s.Roles {
		last := r.Spans[len(r.Spans)-1]
		c.put(0, i, plain, fmt.Sprintf("%s %s since %.3f s", r.Node, last.What, last.From.Seconds()))
	}
	if len(s.Roles) == 0 {
		c.put(0, 0, faint, nodesUnknown(s, st))
	}
}

// briefly shows several nodes in a row. Nodes that are not up come first, then primaries.
func (c canvas) briefly(all []measure.NodeState) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b measure.NodeState) int { return cmp.Compare(concern(&a), concern(&b)) })
	x, y := 0, 0
	for i, n := range all {
		text := n.Name + " " + n.Role
		if n.State != "up" {
			text = n.Name + " " + n.State
		}
		if x > 0 && x+len(text) > c.w {
			x, y = 0, y+1
		}
		if y >= c.h {
			c.right(c.h-1, faint, fmt.Sprintf(" %d more: 5", len(all)-i))
			return
		}
		x = c.put(x, y, nodeTone(&n), text) + 2
	}
}

// cuts lists the network links that are cut, and returns their number.
func (c canvas) cuts(s *measure.Snapshot) int {
	for y, rule := range s.Cuts {
		c.put(0, y, bad, "LINK "+rule)
	}
	return len(s.Cuts)
}

// concern returns a sort key: 0 for a node that is not up, 1 for a primary, 2 for others.
func concern(n *measure.NodeState) int {
	switch {
	case n.State != "up":
		return 0
	case n.Role == "primary":
		return 1
	default:
		return 2
	}
}

func nodeTone(n *measure.NodeState) tone { return []tone{bad, strong, plain}[concern(n)] }

// nodesUnknown says why there are no nodes to show.
func nodesUnknown(s *measure.Snapshot, st *state) string {
	switch {
	case s.Head.Unseen && !st.replay && s.At > 0:
		return "the suite has not started the service"
	case st.replay:
		return "no node took another role"
	default:
		return "not looked at yet"
	}
}

func nodeTexts(all []measure.NodeState) func(*measure.NodeState) string {
	var name, role, condition int
	for _, n := range all {
		name, role, condition = max(name, len(n.Name)), max(role, len(roleText(&n))), max(condition, len(n.State))
	}
	return func(n *measure.NodeState) string {
		text := fmt.Sprintf("%-*s %-*s %-*s", name, n.Name, role, roleText(n), condition, n.State)
		if n.Role == "replica" {
			link := "link DOWN"
			if n.Linked {
				link = "lag " + size(n.Lag)
			}
			text += fmt.Sprintf(" of %s, %s", n.Of, link)
		} else if n.State == "up" && n.Role != "program" {
			text += fmt.Sprintf(" %d clients", n.Clients)
		}
		return text
	}
}

// roleText returns the role of a node. If it is unknown now, it returns the role at the start of the run with a "?".
func roleText(n *measure.NodeState) string {
	if n.Role == "?" {
		return n.Made + "?"
	}
	return n.Role
}

// roleMarks has the characters for roles and states of nodes.
var roleMarks = []struct {
	what, letter string
	tone         tone
}{
	{"primary", "P", good}, {"replica", "r", plain}, {"sentinel", "s", plain}, {"program", "p", plain},
	{"down", "x", bad}, {"paused", "‖", warning}, {"no answer", "?", warning},
}

func roleLegend() string {
	text := ""
	for _, m := range roleMarks {
		text += m.letter + " " + m.what + " "
	}
	return text[:len(text)-1]
}

// deployment draws the view of nodes: for each node the state, and the roles since the start of the run.
func deployment(c canvas, s *measure.Snapshot, st *state) {
	rows := agentRows(c, s)
	agents(c.part(0, c.h-rows, c.w, rows), s)
	more := "roles since the run began; k kills the chosen node, or starts it"
	if st.replay {
		more = "roles as the history tells them; deaths stand in the events"
	}
	c = c.part(0, 0, c.w, c.h-rows).panel("topology", more)
	y := c.cuts(s)
	list := st.nodes(s)
	names := human.Names(list, func(n measure.NodeState) string { return n.Name })
	if len(list) == 0 {
		names = human.Names(s.Roles, func(r measure.Roles) string { return r.Node })
	}
	if len(names) == 0 {
		c.put(0, y, faint, nodesUnknown(s, st))
		return
	}
	text := nodeTexts(list)
	left := min(max(c.w*11/20, 40), 60)
	first := max(min(st.node-(c.h-y-3), len(names)-(c.h-y-2)), 0) // keeps the chosen node visible
	room := max(c.h-y-2, 0)
	for i, name := range names[first:min(first+room, len(names))] {
		if at := first + i; at < len(list) {
			t := nodeTone(&list[at])
			if at == st.node {
				t = chosen
			}
			c.put(0, y+i, t, cut(text(&list[at]), left-1))
		} else {
			c.put(0, y+i, plain, name)
		}
		if n := slices.IndexFunc(s.Roles, func(r measure.Roles) bool { return r.Node == name }); n >= 0 {
			c.part(left, y+i, c.w-left, 1).roles(&s.Roles[n], s.At)
		}
	}
	c.part(left, 0, c.w-left, c.h).timeAxis(c.h-2, 0, s.At)
	c.put(0, c.h-1, faint, roleLegend())
}

// roles paints the roles of a node from the start of the run until now. If a column covers several roles, it shows
// the last one. A time in which the node was not up is more important, and is always shown.
func (c canvas) roles(r *measure.Roles, now time.Duration) {
	for x := range c.w {
		from := now * time.Duration(x) / time.Duration(c.w)
		to := now * time.Duration(x+1) / time.Duration(c.w)
		best, letter, t := -1, "", plain
		for i, span := range r.Spans {
			end := now
			if i+1 < len(r.Spans) {
				end = r.Spans[i+1].From
			}
			if span.From >= to || end <= from && end < now {
				continue
			}
			for k, m := range roleMarks {
				if m.what == span.What && (k >= best || best < 4) {
					best, letter, t = k, m.letter, m.tone
				}
			}
		}
		c.put(x, 0, t, letter)
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

func starting(c canvas, s *measure.Snapshot) {
	c = c.panel(strings.TrimSpace("starting "+s.Head.Name()), "")
	steps := s.Steps[max(len(s.Steps)-c.h/2, 0):]
	for y, step := range steps {
		x := c.put(1, y, faint, fmt.Sprintf("%6.2f s  ", step.At.Seconds()))
		doing := strings.ReplaceAll(step.Doing, "\n", "; ")
		if y < len(steps)-1 {
			c.put(x, y, plain, cut(doing, c.w-x))
			continue
		}
		for i, row := range human.Wrap(doing, c.w-x) { // all of the text, because the start waits for this step
			c.put(x, y+i, strong, row)
		}
	}
	if len(steps) == 0 {
		c.put(1, 0, faint, "nothing is started yet")
	}
	if foot := human.Wrap(plannedFaults, c.w-2); c.h > 2*len(foot)+len(steps) {
		for y, row := range foot {
			c.put(1, c.h-len(foot)+y, faint, row)
		}
	}
}

// plannedFaults says, before the servers are up, which faults the key f will not be able to inject.
const plannedFaults = "f injects faults while it runs. Those of messages (delay, cut-holder, partition, " +
	"drop-reply), of clocks and of " +
	"power need servers that are prepared for them: plan one of the kind, as in --fault delay@2s."
