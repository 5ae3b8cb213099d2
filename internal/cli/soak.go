package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/checker"
	"hammerlock/internal/crew"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/results"
	"hammerlock/scenarios"
)

const (
	soakLength = time.Hour
	soakRate   = 200
	soakTold   = time.Minute
	soakKeeps  = 2 << 30 // bytes of histories of rounds that did not pass
	soakBroken = 3       // rounds in a row that cannot be carried out end it
)

// soaking strains one lock for hours, in rounds. No worker does anything between two, so that each round is judged as a
// whole and forgotten.
type soaking struct {
	*series
	length time.Duration
	goOn   bool
	rounds []harness.Plan // what is done in turn
	sum    results.Soak
	now    string // the round that goes on
	begun  time.Time
	told   time.Time
}

func (e Env) soakCommand(p harness.Plan) *cobra.Command {
	c := &cobra.Command{
		Use: "soak", Short: "load, faults and scenarios in turn for hours, one verdict", Args: takes(0, 0),
		Long: "soak strains one lock on one topology until the time is over: a round of --duration at --rate with --fault,\n" +
			"then a scenario, then the load again, and so on, each round with the next seed. Servers stay up from round to\n" +
			"round, but for those that a fault broke. Each round is recorded, judged when its workers are done, and\n" +
			"forgotten, so that memory and disk do not grow with the time. The first round that fails ends it.",
		Example: "  verify soak --topology sentinel --lock lease --for 8h\n" +
			"  verify soak --topology single --lock redsync --for 30m --rate 1000/s --duration 1m --scenario crash,late-holder",
	}
	p.Topologies, p.Attempts, p.Workload.Rate = p.Topologies[:1], 1, soakRate
	o := newOptions(c, p)
	s := &soaking{length: soakLength}
	o.planFlags()
	o.Duration(flag(session, "for", "how long; the round that goes on then is finished"), &s.length)
	o.Toggle(flag(session, "go-on", "go on after a round that failed"), "", &s.goOn)
	o.webFlag()
	o.runFlags()
	return e.command(c, o, interruptible(func(ctx context.Context, sig signals, _ []string) int {
		s.series = newSeries(e, c, o)
		s.root = e.verifyCommand() // each round is a run of verify
		return s.carryOut(ctx, sig.stop)
	}))
}

func (s *soaking) carryOut(ctx, stop context.Context) int {
	err := s.check(stop)
	if err == nil {
		err = os.MkdirAll(s.dir, 0o755)
	}
	s.begun, s.told = time.Now(), time.Now()
	for n, broken := 0, 0; err == nil && stop.Err() == nil && time.Since(s.begun) < s.length; n++ {
		failed, wrong := s.round(ctx, stop, n)
		if broken++; wrong == nil {
			broken = 0
		} else if s.e.complain(wrong); broken == soakBroken {
			err = fmt.Errorf("%d rounds in a row could not be carried out", broken)
		}
		if failed && !s.goOn {
			break
		}
	}
	err = errors.Join(err, s.close(ctx))
	if s.sum.Rounds == 0 {
		return s.e.refuse(stop, s.o, err)
	}
	s.e.complain(err)
	s.sum.Took = int64(time.Since(s.begun))
	whole := results.Weigh(s.sum.Standing, nil, "", scenarios.Classes)
	x := exit(stop, whole, nil, err)
	document := Document{Schema: schema, Exit: x, Saved: s.dir, Verdict: &whole, Soak: &s.sum}
	findings := results.Findings{Judged: s.sum.Standing, Whole: whole}
	text := func(w io.Writer) error {
		p := human.Printer{W: w}
		p.Line("%s", s.line())
		return errors.Join(p.Err, findings.Write(w))
	}
	return s.e.answer(s.o, result{x, document, text, s.save("soak.json", document)})
}

// check finds every mistake, and makes the rounds. It says what memory and disk there may be taken.
func (s *soaking) check(stop context.Context) error {
	o, p := s.o, s.o.plan
	if len(o.plan.Phases) > 0 {
		o.Mistake("", "soak has one load: phases are for verify")
	}
	if s.length <= 0 {
		o.Mistake("for", "%s: more than 0s", s.length)
	}
	p.Scenarios = nil
	s.outputs = s.e.openOutputs(o)
	s.watched = len(s.outputs) > 0
	job, err := p.Check(stop, o.Mistakes)
	if err != nil {
		return err
	}
	if n := len(job.Combinations); n != 1 {
		return usage("soak strains one lock on one topology, and this is %s: name one with --lock and --topology",
			human.Quantity(n, "combination"))
	}
	p.Locks, p.Topologies = job.Plan.Locks, job.Plan.Topologies
	strained, fresh := p, s.e.verifyPlan() // scenarios have loads and faults of their own
	strained.Workload, strained.Faults, strained.Processes = fresh.Workload, fresh.Faults, fresh.Processes
	strained.Duration, strained.Warmup, strained.Workload.Seed = fresh.Duration, fresh.Warmup, p.Workload.Seed
	every := func(x scenarios.Scenario) bool { return x.Name == everyScenario }
	if strained.Scenarios = o.plan.Scenarios; slices.ContainsFunc(strained.Scenarios, every) {
		strained.Scenarios = allStrains
	}
	strained.Scenarios = slices.DeleteFunc(slices.Clone(strained.Scenarios), isExplore)
	all, err := strained.Check(stop, nil)
	if err != nil {
		return err
	}
	for _, x := range all.Combinations {
		one := strained
		one.Scenarios = []scenarios.Scenario{x.Scenario}
		s.rounds = append(s.rounds, p, one)
	}
	if len(s.rounds) == 0 {
		s.rounds = []harness.Plan{p}
	}
	s.e.say(o, "soak: rounds of %s at %s/s, and %s in turn, for %s; saved in %s", p.Duration,
		human.Number(p.Workload.Rate),
		human.Quantity(len(all.Combinations), "scenario"), s.length, s.dir)
	s.e.say(o, "soak: each round is judged and forgotten: memory or disk as for one round, about %s for the load; disk: "+
		"the history of one round, and of those that do not pass up to %d GiB", megabytes(p.Judging()), soakKeeps>>30)
	s.outputs = append(s.outputs, soakLines{s})
	return nil
}

// round carries one round out, and forgets it.
func (s *soaking) round(ctx, stop context.Context, n int) (failed bool, err error) {
	p := s.rounds[n%len(s.rounds)]
	p.Workload.Seed += uint64(n)
	s.now = "load"
	if len(p.Scenarios) > 0 {
		s.now = p.Scenarios[0].Name
	}
	run, err := s.run(ctx, stop, p)
	if err != nil || run == nil || run.Partial != "" && stop.Err() != nil {
		return false, err
	}
	j := run.Judgement()
	j.Saved = filepath.Join(s.dir, run.Name)
	status := s.sum.Take(j)
	if status != checker.Pass {
		_, why := j.Status()
		s.e.say(s.o, "%s: round %d, %s: %s: %s", time.Since(s.begun).Round(time.Second), s.sum.Rounds, s.now, status,
			why)
	}
	size := results.HistorySize(j.Saved)
	if status == checker.Pass || s.sum.Kept+size > soakKeeps {
		return status == checker.Fail, os.RemoveAll(j.Saved)
	}
	s.sum.Kept += size
	return status == checker.Fail, nil
}

// line says how far it has come.
func (s *soaking) line() string {
	return fmt.Sprintf("%s: %s; memory %s, kept on disk %s", time.Since(s.begun).Round(time.Second), s.sum.Text(),
		megabytes(crew.Resident()), megabytes(s.sum.Kept))
}

// soakLines is an output that writes a line a minute.
type soakLines struct{ *soaking }

func (soakLines) close(context.Context, string) error { return nil }

func (s soakLines) tell(harness.Event) {
	if time.Since(s.told) >= soakTold {
		s.told = time.Now()
		s.e.say(s.o, "%s; now %s", s.line(), s.now)
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n/1_000_000) }
