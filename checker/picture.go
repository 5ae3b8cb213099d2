package checker

import (
	"fmt"
	"io"
	"time"

	"github.com/anishathalye/porcupine"

	"hammerlock/history"
)

// WriteVisualization writes porcupine's picture, a page of HTML, of the window around a verdict's evidence: the
// history that porcupine judges, what was guaranteed and believed, and the faults.
func WriteVisualization(w io.Writer, c *Case, v Verdict) error {
	holds, err := c.window(v)
	if err != nil {
		return err
	}
	s := newSweeper(c)
	_, info := porcupine.CheckOperationsVerbose(leaseModel, s.encode(s.certain(holds)), secondOpinion)
	from, to := c.Holds[holds[0]].Call, c.Holds[holds[len(holds)-1]].Return
	for _, n := range holds {
		h := &c.Holds[n]
		if h.Outcome != history.OK {
			continue
		}
		for kind, interval := range map[string]func(*Hold) (time.Duration, time.Duration){"guaranteed": s.guaranteed, "believed": (*Hold).believed} {
			if a, b := interval(h); a < b {
				info.AddAnnotations([]porcupine.Annotation{{Tag: who(h.Worker) + " " + kind, Start: int64(a), End: int64(b),
					Description: h.name(), Details: fmt.Sprintf("%s %s from %s to %s", h.name(), kind, clock(a), clock(b))}})
			}
		}
	}
	for _, f := range c.windows() {
		if f.from <= to && f.to >= from {
			info.AddAnnotations([]porcupine.Annotation{{Tag: "faults", Start: int64(f.from), End: int64(f.to),
				Description: f.name, Details: f.String(), BackgroundColor: "#fee2e2"}})
		}
	}
	if err := porcupine.Visualize(leaseModel, info, w); err != nil {
		return fmt.Errorf("draw the window of %s: %w", v.Checker, err)
	}
	return nil
}

const pictured = 20 // holds on either side of a witness in its picture

// window finds the holds around the evidence of a verdict.
func (c *Case) window(v Verdict) ([]int32, error) {
	for _, op := range v.Evidence {
		n := c.index.hold(op.Hold)
		if n < 0 {
			n = c.index.hold(op.ID)
		}
		if n < 0 {
			continue
		}
		holds := c.around(n)
		for at, m := range holds {
			if m == n {
				return holds[max(at-pictured, 0):min(at+pictured, len(holds))], nil
			}
		}
	}
	return nil, fmt.Errorf("the verdict of %s shows no hold of this history", v.Checker)
}
