package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/checker"
	"hammerlock/internal/crew"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
)

const (
	soakLength = time.Hour
	soakRate   = 200
	soakTold   = time.Minute
	soakKeeps  = 2 << 30 // limit in bytes of the saved histories of rounds that did not pass
)

// soaking is a test of locks that runs for hours, in rounds. No worker runs between two rounds, so that each round
// can be judged separately. A round that passed is then deleted.
type soaking struct {
	*series
	length  time.Duration
	disturb bool
	rounds  []harness.Plan // plans of the rounds; the last is followed by the first again
	sum     results.Soak
	now     string // name of the current round
	told    time.Time
}

func (e Env) soakCommand(p harness.Plan) *cobra.Command {
	c := &cobra.Command{
		Use: "soak", Short: "load, faults and scenarios in turn for hours, one verdict", Args: e.takes(0, 0),
		Long: "soak strains locks until the time is over: a round of --duration at --rate with --fault on each,\n" +
			"then a scenario, then the load again, and so on, each round with the next seed. Servers stay up from\n" +
			"round to round, but for those that a fault broke. Each round is recorded, judged when its workers are\n" +
			"done, and forgotten, so that memory and disk do not grow with the time. The first round that fails\n" +
			"ends it, unless --fail-fast=false says otherwise.",
		Example: "  verify soak --topology sentinel --lock lease --for 8h\n" +
			"  verify soak --topology single --lock redsync --for 30m --rate 1000/s --duration 1m " +
			"--scenario crash,late-holder\n" +
			"  verify soak --topology all --lock right --for 90m --disturb  # as make soak does",
	}
	p.Topologies, p.Attempts, p.Workload.Rate, p.FailFast = p.Topologies[:1], 1, soakRate, true
	o := newOptions(c, p)
	s := &soaking{length: soakLength}
	o.planFlags()
	o.Duration(flag(session, "for", "how long; the round that goes on then is finished"), &s.length)
	o.Toggle(flag(session, "disturb",
		"every third round goes on beside busy loops, and of every seventh the suite is stopped "+
			"for a while (SIGSTOP),\n"+
			"alone or with its servers"), "", &s.disturb)
	o.planned(webOutput, metricsOutput, jsonOutput, quietOutput)
	return e.command(c, o, interruptible(func(ctx context.Context, sig signals, _ []string) int {
		s.series = newSeries(e, c, o)
		s.root, s.tolerant = e.verifyFlags(), true // each round is like a run of verify
		err := s.carryOut(ctx, sig, s.check, s.steps)
		return s.answer(sig.stop, err)
	}))
}

func (s *soaking) answer(stop context.Context, err error) int {
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
	return s.e.answer(s.o, result{x, document, text, s.dir, "soak.json", s.sum.Standing, nil})
}

// check collects all mistakes, and makes the rounds. If there are several locks, it drops those that the version of
// the server cannot run. It prints how much memory and disk space is needed.
func (s *soaking) check(stop context.Context) error {
	o, p := s.o, s.o.plan
	if len(o.plan.Phases) > 0 {
		o.Mistake("", "soak has one load: phases are for verify")
	}
	if s.length <= 0 {
		o.Mistake("for", "%s: more than 0s", s.length)
	}
	p.Scenarios = nil
	if server, err := topologies.FindServer(stop, p.RedisServer); err == nil && len(p.Locks) > 1 {
		p.Locks = slices.DeleteFunc(slices.Clone(p.Locks), func(l locks.Spec) bool { return l.Runs(server) != nil })
	}
	job, err := p.Check(stop, o.Mistakes)
	if err != nil {
		return err
	}
	p = job.Plan
	strained, fresh := p, s.e.verifyPlan() // scenarios have their own loads and faults
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
	if len(p.Locks) > 1 { // with several locks, a correct lock skips the scenarios that it is expected to fail
		all.Combinations = slices.DeleteFunc(all.Combinations, func(c harness.Combination) bool {
			return c.Lock.Broken == "" && c.Lock.Shows(c.Scenario.Name)
		})
	}
	s.inTurn(job, all)
	s.e.say(o, "soak: rounds of %s at %s/s, and %s in turn, for %s; saved in %s", p.Duration,
		human.Number(p.Workload.Rate), human.Quantity(len(all.Combinations), "scenario"), s.length, s.dir)
	s.e.say(o, "soak: each round is judged and forgotten: memory or disk as for one round, "+
		"about %s for the load; disk: the history of one round, and of those that do not pass up to %d GiB",
		megabytes(p.Judging()), soakKeeps>>30)
	s.minutes, s.told = shows{soakLines{s}}, time.Now()
	return nil
}

// inTurn makes the rounds. The order is: the load on each lock, the first scenario on each lock, the load on each
// lock again, the second scenario, and so on. A scenario is left out for locks to which it does not apply.
func (s *soaking) inTurn(load, strained *harness.Job) {
	one := func(job *harness.Job, c *harness.Combination) harness.Plan {
		p := job.Plan
		p.Topologies, p.Locks = []topologies.Spec{c.Topology}, []locks.Spec{c.Lock}
		if c.Scenario.Name != "" {
			p.Scenarios = []scenarios.Scenario{c.Scenario}
		}
		return p
	}
	loads := func() {
		for i := range load.Combinations {
			s.rounds = append(s.rounds, one(load, &load.Combinations[i]))
		}
	}
	for _, x := range strained.Plan.Scenarios {
		loads()
		for i := range strained.Combinations {
			if c := &strained.Combinations[i]; c.Scenario.Name == x.Name {
				s.rounds = append(s.rounds, one(strained, c))
			}
		}
	}
	if len(s.rounds) == 0 {
		loads()
	}
}

// steps yields rounds until the time is over, or until inARow consecutive rounds could not be run. If no round could
// be run, the soak has failed, however short its time was.
func (s *soaking) steps(yield func(*step) bool) {
	broken := 0
	for n := 0; time.Since(s.begun) < s.length && broken < inARow; n++ {
		st := &step{plan: s.rounds[n%len(s.rounds)]}
		st.plan.Workload.Seed += uint64(n)
		s.now = "load"
		if len(st.plan.Scenarios) > 0 {
			s.now = st.plan.Scenarios[0].Name
		}
		end := s.disturbed(n)
		goesOn := yield(st)
		end()
		if broken++; st.err == nil {
			broken = 0
		}
		if len(st.runs) > 0 && st.err == nil && (goesOn || st.runs[0].Partial == "") {
			s.e.complain(s.take(&st.runs[0]))
		}
		if !goesOn {
			return
		}
	}
	if broken == inARow || broken > 0 && s.sum.Rounds == 0 {
		s.failure = fmt.Errorf("%s in a row could not be carried out", human.Quantity(broken, "round"))
	}
}

// take counts a round. It deletes the round's files if the round passed, or if saved rounds take too much space.
func (s *soaking) take(run *results.Run) error {
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
		return os.RemoveAll(j.Saved)
	}
	s.sum.Kept += size
	return nil
}

func (s *soaking) line() string {
	return fmt.Sprintf("%s: %s; memory %s, kept on disk %s", time.Since(s.begun).Round(time.Second), s.sum.Text(),
		megabytes(crew.Resident()), megabytes(s.sum.Kept))
}

// soakLines is an output that prints a summary of the rounds every minute.
type soakLines struct{ *soaking }

func (soakLines) close(context.Context, string) error { return nil }

func (s soakLines) tell(harness.Event) {
	if time.Since(s.told) >= soakTold {
		s.told = time.Now()
		s.e.say(s.o, "%s; now %s", s.line(), s.now)
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n/1_000_000) }

// disturbed disturbs the machine during a round, if --disturb is set. In every third round, busy loops run. In every
// seventh round, the suite is stopped for a few seconds (SIGSTOP). The caller calls the result after the round.
func (s *soaking) disturbed(round int) (end func()) {
	switch {
	case s.disturb && round%7 == 3:
		return s.e.stopped(rand.New(rand.NewPCG(s.o.plan.Workload.Seed, uint64(round))))
	case s.disturb && round%3 == 1:
		return s.e.hogs()
	}
	return func() {}
}
