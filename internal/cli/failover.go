package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/faults"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
)

// Load and times of a failover measurement. The lease is longer than a failover, so that a grant which the failover
// loses would still be valid. The run is longer than the lease, so that a lock which was never released expires
// within it.
const (
	failoverKills    = 20
	mostKills        = 1000
	mostSides        = 100
	failoverBegins   = time.Second // after the warm-up
	failoverDuration = 12 * time.Second
	failoverLease    = 6 * time.Second
	stockTimes       = 10 // all times are multiplied by this if servers have the default timers of Redis
)

// failoverFaults are injected if the user names no fault. Faults that do not apply to a topology are left out.
var failoverFaults = []string{"kill-primary", "pause-primary", "partition-primary", "failover"}

type failovers struct {
	*series
	kills int
	until float64  // repeat until the confidence interval of lost grants is this narrow; 0 = any width
	gone  []string // notes about faults, locks and topologies that were left out, because they do not apply
	cells []failoverCell
	all   []results.Failover
	done  []results.Run
}

// failoverCell is a row of the table, with the plan of its runs.
type failoverCell struct {
	fault    string
	settings string
	plan     harness.Plan
	kills    int
}

func (e Env) failoverCommand(p harness.Plan) *cobra.Command {
	c := &cobra.Command{
		Use:   "failover ['SETTINGS']...",
		Short: "break the primary again and again: recovery, lost grants with an interval", Args: e.takes(0, mostSides),
		ValidArgsFunction: completeSettings,
		Long: "failover injects a fault into each topology --kills times, each time into servers that were just\n" +
			"started and are whole, and tells how long the lock was gone, and how often a grant was lost, two\n" +
			"workers had the lock, or a lock came back that had been given back, each with a 95 % interval. All\n" +
			"runs are recorded and judged. Each argument makes rows of its own: settings are flags without their\n" +
			"dashes, with commas in between; flags that are given as such hold for all.",
		Example: "  bench failover --topology sentinel,cluster --kills 20\n" +
			"  bench failover --topology sentinel lock=lease,wait-one,wait min-replicas=1 aof=always\n" +
			"  bench failover --topology sentinel profile=fast profile=stock,kills=3         # real timers\n" +
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
	killsFlag(o, &f.kills)
	o.Share(flag(session, "until", "go on until the interval of lost grants is that narrow"), "share", &f.until,
		"1% to 100%", func(n float64) bool { return n >= 1 })
	o.planned(output{name: "markdown", what: "write the table as a document to this file",
		write: func(w io.Writer, d *Document) error {
			return results.WriteFailoverMarkdown(w, d.Failovers, e.called(typed(c.Root().Name())))
		}}, webOutput, metricsOutput, jsonOutput, quietOutput)
	return e.command(c, o, interruptible(func(ctx context.Context, s signals, args []string) int {
		f.series = newSeries(e, c, o)
		f.root, f.tolerant = e.verifyFlags(), true // each run is like a run of verify
		err := f.carryOut(ctx, s, func(stop context.Context) error { return f.check(stop, args) }, f.steps)
		return f.answer(s.stop, err)
	}))
}

func killsFlag(o *options, kills *int) string {
	o.Integer(flag(session, "kills", "how often each fault is injected"), kills, mostKills)
	return "kills"
}

func (f *failovers) answer(stop context.Context, err error) int {
	if len(f.done) == 0 {
		return f.e.refuse(stop, f.o, err)
	}
	f.e.complain(err)
	x := f.exit(stop, f.done, nil, err)
	if none := func(r results.Failover) bool { return r.Lost.Of == 0 }; x.Code == Inconclusive &&
		!slices.ContainsFunc(f.all, none) {
		x = Exit{} // runs that fail are counted in the rows, and do not affect the exit code
	}
	document := Document{Schema: schema, Exit: x, Saved: f.dir, Failovers: f.all}
	text := func(w io.Writer) error { return results.WriteFailovers(w, f.all) }
	return f.e.answer(f.o, result{x, document, text, f.dir, "failover.json", judgements(f.dir, f.done), nil})
}

// check collects all mistakes, and makes the rows. There is one for each combination of topology, lock, fault and
// argument; an argument is one side of a comparison.
func (f *failovers) check(stop context.Context, args []string) (err error) {
	o := f.o
	var cells []failoverCell
	if len(args) == 0 {
		cells, err = f.rows(stop, &side{o: o}, f.kills)
	}
	for i := 0; i < len(args) && err == nil; i++ {
		kills := f.kills
		s := newSide(o, args[i], func(o *options) string { return killsFlag(o, &kills) })
		var some []failoverCell
		some, err = f.rows(stop, s, kills)
		cells = append(cells, some...)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(o.Mistakes, func(a, b human.Mistake) int { return strings.Compare(a.Text, b.Text) })
	slices.Sort(f.gone)
	f.gone = slices.Compact(f.gone)
	if !o.quiet && len(f.gone) > 0 {
		f.e.lines("note:", lines(f.gone))
	}
	// sort the rows so that those of the same topology and fault are adjacent, since readers compare these
	var topologies, names []string
	for _, c := range cells {
		topologies, names = append(topologies, c.plan.Topologies[0].Name), append(names, c.fault)
	}
	slices.SortStableFunc(cells, func(a, b failoverCell) int {
		return cmp.Or(slices.Index(topologies, a.plan.Topologies[0].Name)-slices.Index(topologies,
			b.plan.Topologies[0].Name),
			slices.Index(names, a.fault)-slices.Index(names, b.fault))
	})
	for i := range cells {
		c := &cells[i]
		f.runs += c.kills
		f.about += time.Duration(c.kills) * (c.plan.Warmup + c.plan.Duration)
	}
	f.cells = cells
	return o.invalid()
}

// rows returns the rows of one side. It adds mistakes in the settings of the side to those of the command line.
func (f *failovers) rows(stop context.Context, s *side, kills int) (cells []failoverCell, err error) {
	o, p, asked := f.o, s.o.plan, f.changed(s, "fault")
	f.slower(s, &p)
	if s.program != "" {
		s.o.Mistake("", "%s: failover runs this build only", s.name)
	}
	if len(p.Phases)+len(p.Workload.Trace) > 0 {
		o.Mistake("", "failover injects one fault into one load: phases and traces have loads of their own")
	}
	names := failoverFaults
	if asked {
		names = p.Faults
	}
	healed := p.Warmup + failoverBegins + p.Duration/3
	if p.Duration < 3*failoverBegins {
		o.Mistake("duration", "%s: at least %s, of which the fault is in force for a third", p.Duration,
			3*failoverBegins)
	}
	for _, name := range names {
		kind, _, _ := strings.Cut(name, ":")
		if _, known := faults.Find(kind); strings.Contains(name, "@") {
			o.Mistake("fault", "%s: without a time, failover says when", name)
		} else if !known {
			o.Mistake("fault", "%s: %s", name, human.Instead(kind, faults.Names()))
		}
	}
	p.Verify, p.Faults = true, nil
	job, err := p.Check(stop, s.o.Mistakes) // this checks which locks run on which topologies
	if usage, invalid := errors.AsType[*harness.UsageError](err); invalid {
		o.Mistakes.Add(usage.Mistakes...)
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	f.gone = append(f.gone, job.LeftOut...)
	for _, x := range job.Combinations {
		for _, name := range names {
			cell := failoverCell{name, f.settings(s), p, kills}
			cell.plan.Topologies, cell.plan.Locks = []topologies.Spec{x.Topology}, []locks.Spec{x.Lock}
			cell.plan.Faults = []string{fmt.Sprintf("%s@%s", name, p.Warmup+failoverBegins),
				fmt.Sprintf("heal@%s", healed)}
			_, err := cell.plan.Check(stop, nil)
			usage, invalid := errors.AsType[*harness.UsageError](err)
			switch {
			case err == nil:
				cells = append(cells, cell)
			case invalid && !asked:
				f.gone = append(f.gone, x.Topology.Name+": "+usage.Mistakes[0].Text)
			case invalid:
				o.Mistakes.Add(usage.Mistakes...)
			default:
				return nil, err
			}
		}
	}
	return cells, nil
}

// changed tells whether the user set a flag, either for all sides or for the side s.
func (f *failovers) changed(s *side, name string) bool {
	return f.o.Flags.Changed(name) || s.o.Flags.Changed(name)
}

// settings returns a text for a row: the settings that only this side has, and unusual settings of the servers. It
// leaves out settings that have a column.
func (f *failovers) settings(s *side) string {
	var all []string
	s.o.Flags.VisitAll(func(x *pflag.Flag) {
		common := f.o.Flags.Lookup(x.Name)
		servers := slices.Contains([]string{"profile", "aof", "min-replicas"}, x.Name) &&
			x.Value.String() != common.DefValue
		own := s.o != f.o && x.Changed && !slices.Contains([]string{"topology", "lock", "fault", "kills"}, x.Name)
		if servers || own {
			all = append(all, x.Name+"="+x.Value.String())
		}
	})
	return strings.Join(all, ",")
}

// slower multiplies by stockTimes the times that the user did not set. It does so only if the servers have the
// default timers of Redis, with which a failover takes longer.
func (f *failovers) slower(s *side, p *harness.Plan) {
	if p.Profile != topologies.Stock {
		return
	}
	for _, x := range []struct {
		flag string
		of   *time.Duration
	}{{"duration", &p.Duration}, {"lease", &p.Workload.TTL}, {"patience", &p.Workload.Wait}} {
		if !f.changed(s, x.flag) {
			*x.of *= stockTimes
		}
	}
}

// steps injects the fault of each row, once a run. After inARow consecutive runs that could not be made, it continues
// with the next row.
func (f *failovers) steps(yield func(*step) bool) {
	for _, c := range f.cells {
		p := c.plan
		r := results.Failover{Topology: p.Topologies[0].Name, Lock: p.Locks[0].Name, Fault: c.fault,
			Settings: c.settings, Profile: string(p.Profile)}
		goesOn, broken := true, 0
		for n := 0; goesOn && n < mostKills && broken < inARow; n++ {
			if enough := f.until == 0 || r.Lost.High-r.Lost.Low <= f.until; n >= c.kills && enough {
				break
			}
			st := &step{plan: p}
			goesOn = yield(st)
			p.Workload.Seed++
			switch {
			case st.err != nil:
				r.Failed, broken = r.Failed+1, broken+1
			case len(st.runs) > 0 && (goesOn || st.runs[0].Partial == ""):
				broken = 0
				f.take(&r, &st.runs[0], n+1, max(c.kills, n+1))
			}
		}
		if broken == min(inARow, c.kills) && broken > 0 {
			f.failure = fmt.Errorf("%s: %s in a row could not be carried out", r.Name(), human.Quantity(broken, "run"))
		}
		if f.all = append(f.all, r); !goesOn {
			return
		}
	}
}

// take adds the run with the number n to a row, and prints the row's result so far. The argument of is the planned
// number of runs.
func (f *failovers) take(r *results.Failover, run *results.Run, n, of int) {
	if f.done = append(f.done, *run); !r.Take(run) {
		f.e.say(f.o, "%s: %d of %d  the fault was not injected", r.Name(), n, of)
		return
	}
	most := time.Duration(r.Recovery[len(r.Recovery)-1])
	f.e.say(f.o, "%s: %d of %d  recovery %s at most  lost a grant %s%s", r.Name(), n, of, human.Duration(most),
		r.Lost.Text(), left(f.left()))
}
