package cli

import (
	"io"
	"strings"

	"hammerlock/internal/human"
	"hammerlock/internal/witness"
)

// limits names the limits of the watching.
func (w *watch) limits(t *witness.Tallies) string {
	by := "the server's replication stream told what commands did"
	if len(w.deaf) > 0 {
		by = "only requests and answers told what commands did, not the server: " + strings.Join(w.deaf, "; ")
	}
	if t.TapsLost > 0 {
		by += "; the stream broke " + human.Quantity(t.TapsLost, "time")
	}
	return by + "; what holders believe, and what they do without a command, cannot be seen"
}

// text is the counts.
func (w *watch) text(t *witness.Tallies) string {
	parts := []string{human.Quantity(t.Requests, "request") + " about locks", human.Quantity(t.Effects, "effect"),
		human.Quantity(t.Grants, "grant"), human.Quantity(t.Releases, "release"), human.Count(t.Expiries) + " expired",
		human.Count(t.Refused) + " refused"}
	if t.Grants > 0 {
		parts = append(parts, human.Number(float64(t.Refused+t.Grants)/float64(t.Grants))+" tries a grant")
	}
	return strings.Join(parts, " · ")
}

// write tells of ambiguities, and of other things that are no violation.
func (w *watch) write(out io.Writer) error {
	p := &human.Printer{W: out}
	t, _ := w.reader.Sums()
	count := func(n int64, what string) {
		if n > 0 {
			p.Fact("seen", human.Count(n)+" "+what)
		}
	}
	count(t.Ambiguous, "releases or extensions of which it cannot be told whose they were; they are judged as unknown")
	count(t.Guesses,
		"answers that only the connection can attribute, where connections serve several holders at a time; they are judged as unknown: "+
			"--holder connection says that each serves one")
	count(t.Outsiders, "changes of locks by an unseen client: something else writes these keys, past the proxy")
	count(t.Unreleased, "grants that were never given back")
	count(t.Strange, "keys or scripts with commands that are not understood")
	count(t.Passed, "connections that were passed on unseen")
	loose := "commands on data that belong to no visit, or cannot be attributed: lost updates are not judged there"
	if t.Improper > 0 {
		loose += "; --holder connection says that each connection serves one holder at a time"
	}
	count(t.DataLoose, loose)
	count(t.DataUnsure, "keys with data whose reads can have seen several writes: lost updates are not judged there")
	for _, note := range w.notes {
		p.Fact("program", note)
	}
	if w.over != "" && len(w.o.given) == 0 {
		p.Fact("ended", w.over)
	}
	return p.Err
}
