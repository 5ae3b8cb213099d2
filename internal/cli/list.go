package cli

import (
	"io"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/internal/crew"
	"hammerlock/internal/human"
)

func writeList(w io.Writer, k crew.Catalogue) error {
	p := &human.Printer{W: w}
	p.Line("topologies")
	for _, s := range k.Topologies {
		p.Line("  %-10s %s", s.Name, s.Doc)
	}
	p.Line("\nlocks")
	for _, s := range k.Locks {
		p.Line("  %-10s %s", s.Name, s.Doc)
		p.Line("  %-10s source: %s", "", s.Source)
		if s.Assumes != "" {
			p.Line("  %-10s safe if %s", "", s.Assumes)
		}
		if s.Broken != "" {
			p.Line("  %-10s BROKEN: %s", "", s.Broken)
		}
	}
	p.Line("\ncounters")
	for _, s := range k.Counters {
		p.Line("  %-16s %s", s.Name, s.Doc)
		if s.Broken != "" {
			p.Line("  %-16s BROKEN: %s", "", s.Broken)
		}
	}
	p.Line("\nfaults")
	for _, f := range faults.All {
		p.Line("  %-18s %s", f.Name, f.Doc)
	}
	p.Line("  points: %v; %s: those that a right lock survives there; %s", faults.Points, faults.Auto, faults.None)
	p.Line("\nscenarios")
	for _, s := range allStrains {
		p.Line("  %-18s %s", s.Name, s.Doc)
	}
	p.Line("\nchecks")
	for _, c := range checker.All {
		p.Line("  %-18s %s", c.Name, c.Doc)
	}
	return p.Err
}
