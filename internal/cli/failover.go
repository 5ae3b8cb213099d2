package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/faults"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
)

// The load and the times of a failover. A lease outlasts the time without a server, so that a grant that was lost is seen as
// that, and the run outlasts the leases that could not be given back.
const (
	failoverKills    = 20
	mostKills        = 1000
	failoverBegins   = time.Second // after the warm-up
	failoverDuration = 12 * time.Second
	failoverLease    = 6 * time.Second
	stockTimes       = 10 // how much longer all takes by the servers' own timers
	failoverBroken   = 3  // so many runs in a row that cannot be carried out end a row
)

// failoverFaults are injected unless others are asked for, where they apply.
var failoverFaults = []string{"kill-primary", "pause-primary", "partition-primary", "failover"}

type failovers struct {
	*series
	kills int
	until float64  // goes on until the interval of lost grants is that narrow; 0 = no matter
	left  []string // what does not apply
	all   []results.Failover
	runs  []results.Run
}

// failoverCell is one row of the table.
type failoverCell struct {
	fault string
	plan  harness.Plan
}

func (e Env) failoverCommand(p harness.Plan) *cobra.Command {
	c := &cobra.Command{
		Use: "failover", Short: "break the primary again and again: recovery, lost grants with an interval", Args: takes(0, 0),
		Long: "failover injects a fault into each topology --kills times, each time into servers that were just started and are whole,\n" +
			"and tells how long the lock was gone, and how often a grant was lost, two workers had the lock, or a lock came back that\n" +
			"had been given back, each with a 95 % interval. All runs are recorded and judged.",
		Example: "  bench failover --topology sentinel,cluster --kills 20\n" +
			"  bench failover --topology sentinel --fault lost-grant --pages 2 --rate 40/s   # the counter counts\n" +
			"  bench failover --topology sentinel --lock lease,redisson --until 10%",
	}
	p.Verify, p.Scenarios, p.Attempts, p.Topologies = false, nil, 1, slices.Clone(topologies.All)
	p.Warmup, p.Duration, p.Faults = 500*time.Millisecond, failoverDuration, []string{"none"}
	w := &p.Workload
	w.Workers, w.Keys, w.Rate, w.Hold, w.TTL = 64, 64, 200, 100*time.Millisecond, failoverLease
	o := newOptions(c, p)
	f := &failovers{kills: failoverKills}
	o.planFlags()
	o.integer(flag{session, "kills", "how often each fault is injected"}, &f.kills, mostKills)
	o.share(flag{session, "until", "go on until the interval of lost grants is that narrow"}, "share", &f.until,
		"1% to 100%", func(n float64) bool { return n >= 1 })
	o.fileFlags(fileOutput{"markdown", "write the table as a document to this file", func(w io.Writer, d *Document) error {
		return results.WriteFailoverMarkdown(w, d.Failovers, e.called(typed(c.Root().Name())))
	}})
	o.runFlags()
	return e.command(c, o, interruptible(func(ctx context.Context, s signals, _ []string) int {
		f.series = newSeries(e, c, o)
		f.root = e.verifyCommand() // each run is one of verify
		return f.carryOut(ctx, s.stop)
	}))
}

func (f *failovers) carryOut(ctx, stop context.Context) int {
	cells, err := f.check(stop)
	if err == nil {
		err = os.MkdirAll(f.dir, 0o755)
	}
	for i := 0; i < len(cells) && err == nil && stop.Err() == nil; i++ {
		f.row(ctx, stop, &cells[i])
	}
	err = errors.Join(err, f.close(ctx))
	if len(f.runs) == 0 {
		return f.e.refuse(stop, f.o, err)
	}
	f.e.complain(err)
	x := f.exit(stop, f.runs, nil, err)
	if none := func(r results.Failover) bool { return r.Lost.Of == 0 }; x.Code == Inconclusive && !slices.ContainsFunc(f.all, none) {
		x = Exit{} // what counts is what each row says, with its interval
	}
	document := Document{Schema: schema, Exit: x, Saved: f.dir, Failovers: f.all}
	text := func(w io.Writer) error { return results.WriteFailovers(w, f.all) }
	return f.e.answer(f.o, result{x, document, text, f.save("failover.json", document)})
}

// check finds every mistake, and makes a row of each fault on each topology, for each lock.
func (f *failovers) check(stop context.Context) (cells []failoverCell, err error) {
	o, asked := f.o, f.o.flags.Changed("fault")
	p := o.plan
	f.slower(&p)
	if len(p.Phases)+len(p.Workload.Trace) > 0 {
		o.mistake("failover injects one fault into one load: phases and traces have loads of their own")
	}
	names := failoverFaults
	if asked {
		names = p.Faults
	}
	healed := p.Warmup + failoverBegins + p.Duration/3
	if p.Duration < 3*failoverBegins {
		o.mistake("--duration %s: at least %s, of which the fault is in force for a third", p.Duration, 3*failoverBegins)
	}
	for _, name := range names {
		kind, _, _ := strings.Cut(name, ":")
		if _, known := faults.Find(kind); strings.Contains(name, "@") {
			o.mistake("--fault %s: without a time, failover says when", name)
		} else if !known {
			o.mistake("--fault %s: %s", name, human.Instead(kind, faults.Names()))
		}
	}
	p.Verify, p.Faults = true, nil
	job, err := p.Check(stop, o.mistakes) // which lock runs on which topology
	if err != nil {
		return nil, err
	}
	for _, x := range job.Combinations {
		for _, name := range names {
			cell := failoverCell{name, p}
			cell.plan.Topologies, cell.plan.Locks = []topologies.Spec{x.Topology}, []locks.Spec{x.Lock}
			cell.plan.Faults = []string{fmt.Sprintf("%s@%s", name, p.Warmup+failoverBegins), fmt.Sprintf("heal@%s", healed)}
			_, err := cell.plan.Check(stop, nil)
			usage, invalid := errors.AsType[*harness.UsageError](err)
			switch {
			case err == nil:
				cells = append(cells, cell)
			case invalid && !asked:
				f.left = append(f.left, x.Topology.Name+": "+usage.Mistakes[0])
			case invalid:
				o.mistakes = append(o.mistakes, usage.Mistakes...)
			default:
				return nil, err
			}
		}
	}
	slices.Sort(o.mistakes)
	o.mistakes = slices.Compact(o.mistakes)
	if !o.quiet && len(f.left) > 0 {
		f.e.lines("note:", errors.New(strings.Join(f.left, "\n")))
	}
	f.outputs = f.e.openOutputs(o)
	return cells, o.invalid()
}

// slower gives runs by the servers' own timers the time that these need, where nothing else was asked for.
func (f *failovers) slower(p *harness.Plan) {
	if p.Profile != topologies.Stock {
		return
	}
	for _, x := range []struct {
		flag string
		of   *time.Duration
	}{{"duration", &p.Duration}, {"lease", &p.Workload.TTL}, {"patience", &p.Workload.Wait}} {
		if !f.o.flags.Changed(x.flag) {
			*x.of *= stockTimes
		}
	}
}

// row injects a fault again and again.
func (f *failovers) row(ctx, stop context.Context, c *failoverCell) {
	p := c.plan
	r := results.Failover{Topology: p.Topologies[0].Name, Lock: p.Locks[0].Name, Fault: c.fault, Profile: string(p.Profile)}
	broken := 0
	for n := 0; n < mostKills && (n < f.kills || f.until > 0 && r.Lost.High-r.Lost.Low > f.until); n++ {
		run, err := f.run(ctx, stop, p)
		p.Workload.Seed++
		if stop.Err() != nil {
			break
		}
		if err != nil {
			f.e.complain(err)
			if r.Failed, broken = r.Failed+1, broken+1; broken == failoverBroken {
				break
			}
			continue
		}
		broken = 0
		f.runs = append(f.runs, *run)
		if !r.Take(run) {
			f.e.say(f.o, "%s %s %s: %d of %d  the fault was not injected", r.Topology, r.Lock, r.Fault, n+1, max(f.kills, n+1))
		} else {
			most := r.Recovery[len(r.Recovery)-1]
			f.e.say(f.o, "%s %s %s: %d of %d  recovery %s at most  lost a grant %s", r.Topology, r.Lock, r.Fault, n+1,
				max(f.kills, n+1), human.Duration(time.Duration(most)), r.Lost.Text())
		}
	}
	f.all = append(f.all, r)
}
