package cli

import (
	"fmt"
	"io"

	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// writeList prints every catalogue: what there is, and what it is.
func writeList(w io.Writer) error {
	var err error
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format+"\n", args...)
		}
	}
	line("topologies")
	for _, s := range topologies.All {
		line("  %-10s %s", s.Name, s.Doc)
	}
	line("\nlocks")
	for _, s := range locks.All {
		line("  %-10s %s", s.Name, s.Doc)
		line("  %-10s source: %s", "", s.Source)
		if s.Assumes != "" {
			line("  %-10s safe if %s", "", s.Assumes)
		}
		if s.Broken != "" {
			line("  %-10s BROKEN: %s", "", s.Broken)
		}
	}
	line("\ncounters")
	for _, s := range workload.AllCounters {
		line("  %-16s %s", s.Name, s.Doc)
		if s.Broken != "" {
			line("  %-16s BROKEN: %s", "", s.Broken)
		}
	}
	listFaults(line)
	return err
}
