package cli

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/results"
)

// firstLoads are the loads of a bench that is told of none. The latencies of the first are those of the locks, as a
// machine of two cores has time for it; the second shows locks under contention, with latencies of the machine.
var firstLoads = []func(*harness.Plan){
	func(p *harness.Plan) {
		p.Workload.Workers, p.Workload.Rate, p.Warmup, p.Duration = 8, 100, time.Second, 5*time.Second
	},
	func(p *harness.Plan) {
		p.Workload.Workers, p.Workload.Rate, p.Warmup, p.Duration = 32, 0, time.Second, 5*time.Second
	},
}

// loads are the loads that a job is carried out with, one after the other: the plan's own, if a flag or a file says
// one.
func (o *options) loads() []func(*harness.Plan) {
	p := &o.plan
	own := p.Verify || p.Service != nil || len(p.Services) > 0 || p.Fleet.Agents != "" || o.File != "" || o.count > 1 ||
		len(o.gates) > 0
	o.Flags.VisitAll(func(f *pflag.Flag) {
		v := settings.ValueOf(f)
		own = own || v != nil && f.Changed && v.Part == load
	})
	if own {
		return []func(*harness.Plan){func(*harness.Plan) {}}
	}
	return firstLoads
}

// writeFirst writes the tables of the first loads, and where to go from there.
func writeFirst(w io.Writer, runs []results.Run, report string) error {
	crowd := slices.IndexFunc(runs, func(r results.Run) bool { return r.Rate == 0 })
	if crowd < 0 {
		crowd = len(runs)
	}
	err := results.WriteText(w, runs[:crowd])
	p := &human.Printer{W: w}
	if err != nil || crowd == len(runs) {
		return err
	}
	p.Line("")
	p.Wrapped("", 0, "THE CROWD: as fast as they can. Latencies would be those of this machine.")
	if p.Err == nil {
		p.Err = results.WriteCrowd(w, runs[crowd:])
	}
	p.Line("")
	if page, err := filepath.Abs(report); err == nil && report != "" {
		p.Fact("report", (&url.URL{Scheme: "file", Path: page}).String())
	}
	p.Fact("how locks fail", "verify tour")
	p.Fact("your own server", fmt.Sprintf("bench --addr redis://HOST:PORT --lock %s", runs[0].Lock))
	p.Fact("words", "bench explain WORD, as in SATURATED, Jain, hand-off")
	return p.Err
}
