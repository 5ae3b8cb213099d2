package measure

import (
	"slices"
	"strings"
	"time"

	"hammerlock/history"
)

// Roles lists the roles that a node has had, the oldest first.
type Roles struct {
	Node  string
	Spans []Role
}

// Role is the role of a node from the time From.
type Role struct {
	From time.Duration
	What string // primary, replica, sentinel, program, or the state of a node that is down
}

// keptRoles limits the number of role changes that are kept for each node.
const keptRoles = 64

// The method saw adds the present role of a node to the list, if it is another one than before.
func (r *Roles) saw(now time.Duration, n *NodeState) {
	what := n.State
	if n.State == "up" {
		what = n.Role
	}
	if last := len(r.Spans) - 1; last >= 0 && r.Spans[last].What == what {
		return
	}
	// copy the list on each change, because published snapshots share its elements
	r.Spans = append(r.Spans[max(len(r.Spans)+1-keptRoles, 0):], Role{now, what})
}

// rolesOf returns the role changes in a history. Nodes without a change are left out. Before its first change, a
// primary is assumed to have been a replica, and a replica a primary.
func rolesOf(h *history.History) (all []Roles) {
	for i := range h.Ops {
		node, what, ok := strings.Cut(h.Notes[h.Ops[i].ID], " became ")
		if h.Ops[i].Kind != history.Role || !ok {
			continue
		}
		before := "replica"
		if what != "primary" {
			what, before = "replica", "primary"
		}
		n := slices.IndexFunc(all, func(r Roles) bool { return r.Node == node })
		if n < 0 {
			n, all = len(all), append(all, Roles{node, []Role{{0, before}}})
		}
		all[n].Spans = append(all[n].Spans, Role{h.Ops[i].Return, what})
	}
	slices.SortFunc(all, func(a, b Roles) int { return strings.Compare(a.Node, b.Node) })
	return all
}

func rolesUpTo(all []Roles, now time.Duration) []Roles {
	all = slices.Clone(all)
	for i := range all {
		later := slices.IndexFunc(all[i].Spans, func(s Role) bool { return s.From > now })
		if later >= 0 {
			all[i].Spans = all[i].Spans[:later]
		}
		all[i].Spans = all[i].Spans[max(len(all[i].Spans)-keptRoles, 0):]
	}
	return all
}
