package results

import (
	"io"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// Unseen reports whether the run called a service that does its own locking. The suite does not see holders, waiters
// or costs of that lock.
func (r *Run) Unseen() bool { return r.Service != "" }

// visitsToService describes the calls of the service; empty = the run called no service.
func (r *Run) visitsToService() string {
	if !r.Unseen() {
		return ""
	}
	load := []string{human.Quantity(r.Workers, "worker"), r.Loop(), human.Duration(time.Duration(r.Duration)) + " each"}
	if r.Burst > 0 {
		load = []string{human.Quantity(r.Burst, "visit") + " at once"}
	}
	return strings.Join(append([]string{r.Service, human.Quantity(r.Keys, "page")}, load...), " · ")
}

func WriteService(w io.Writer, runs []Run) error {
	p := &human.Printer{W: w}
	for i := range runs {
		r := &runs[i]
		if !r.Unseen() {
			continue
		}
		p.Line("")
		if len(runs) > 1 {
			p.Line("%s", r.Combination())
		}
		r.writeLatency(p)
		writePhases(p, runs[i:i+1])
		p.Line("")
		rate, ended := r.ThroughputText()
		p.Fact("throughput", rate+" visits/s: "+ended)
		p.Fact("visits", r.VisitsText())
		p.Fact("GENERATOR", string(r.Generator.State)+"  "+strings.Join(r.Generator.Reasons, "; "))
		p.Maybe("NOTE", r.Label)
		p.Maybe("errors", r.errorsText())
	}
	return p.Err
}
