package results

import (
	"fmt"
	"strings"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// StreamText describes what the servers' replication streams show about the locks. It is empty if they show nothing,
// or if no stream was read.
func (r *Run) StreamText() string {
	s := r.Stream
	if s == nil || s.Compared == 0 && len(s.Forgot) == 0 && !s.Overflow {
		return ""
	}
	parts := []string{fmt.Sprintf("%s compared", human.Quantity(s.Compared, "operation"))}
	if s.Overflow {
		parts = []string{"more grants than are compared"}
	}
	settled := func(what string, n history.Settled) {
		switch {
		case n.Executed+n.Without > 0:
			parts = append(parts, fmt.Sprintf("of %s without an answer %s had an effect, %s had none",
				human.Quantity(n.Unknown, what),
				human.Count(n.Executed), human.Count(n.Without)))
		case n.Unknown > 0:
			parts = append(parts, human.Quantity(n.Unknown, what)+" without an answer, of which no stream can tell")
		}
	}
	settled("acquire", s.Grants)
	settled("release", s.Releases)
	for _, t := range s.Forgot {
		parts = append(parts, fmt.Sprintf("%s took over from %s at its offset %d", t.Node, t.Before,
			t.Upto)+forgotten(&t))
	}
	if len(s.Against) > 0 {
		parts = append(parts,
			fmt.Sprintf("AGAINST IT, which is a mistake of the suite or of the lock's answers: %s, the first: %s",
				human.Quantity(int64(len(s.Against)), "operation"), s.Against[0]))
	}
	return strings.Join(parts, "; ")
}

// forgotten describes the grants and releases that were missing on the replica when it became the primary.
func forgotten(t *history.Takeover) string {
	if t.Grants+t.Released == 0 {
		return " and knew all"
	}
	return fmt.Sprintf(" and did not know %s and %s, the last at %d", human.Quantity(int64(t.Grants), "grant"),
		human.Quantity(int64(t.Released), "release"), t.Last)
}
