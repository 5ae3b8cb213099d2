package explore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/locks"
)

// search runs all schedules, those with fewer deviations first.
type search struct {
	t      *testing.T
	spec   locks.Spec
	o      Options
	begun  time.Time
	kits   []*kit // one for each job
	report Report
	length int // number of decisions of the longest schedule
	widest int // largest number of options of a decision
	single int // number of schedules with one deviation
	told   time.Time
	// number of the schedule with which the search ends after a counterexample; 0 = no counterexample yet
	last   int
	states states

	key    func(*schedule) uint64                 // identifies a state; nil = no schedule is left out
	branch func(n *node, run *schedule) []*node   // returns the schedules that follow from one
	judged func(*schedule, *checker.Verdict) bool // tells whether a verdict ends the search
}

// node is a schedule to run: the schedule of its parent with one more deviation.
type node struct {
	parent *node
	choice Choice
	way    uint64 // the state to which the deviation leads
}

func (n *node) path() []Choice {
	var list []Choice
	for ; n.parent != nil; n = n.parent {
		list = append(list, n.choice)
	}
	slices.Reverse(list)
	return list
}

// Run explores a lock until it finds a violation, has run every schedule, or the budget ends. It is inconclusive if
// the lock needs something that the server in memory does not support. It returns an error if the lock could not be
// opened, or if checkers contradict each other.
func Run(t *testing.T, spec locks.Spec, o Options) (Report, error) {
	t.Helper()
	s := newSearch(t, spec, o)
	err := Excluded(spec, o)
	if err == nil {
		end := roomy()
		err = s.levels()
		end()
	}
	switch {
	case errors.Is(err, errLeft) && o.jobs() > 1:
		o.Jobs = 1 // with one job, the schedule that left goroutines is known
		return Run(t, spec, o)
	case errors.Is(err, locks.ErrServer), errors.Is(err, errLeft), errors.Is(err, errElsewhere),
		errors.Is(err, errLacks), errors.Is(err, errUnrecorded):
		s.report.Status, s.report.Reason, s.report.Excluded, err = checker.Inconclusive, err.Error(), true, nil
	}
	s.report.Took = time.Since(s.begun)
	return s.report, err
}

func newSearch(t *testing.T, spec locks.Spec, o Options) *search {
	s := &search{
		t: t, spec: spec, o: o, begun: time.Now(), report: Report{Lock: spec.Name, Options: o},
		states: states{known: map[uint64]bool{}}, branch: (*node).children,
		judged: func(_ *schedule, v *checker.Verdict) bool { return v != nil },
	}
	for range o.jobs() {
		s.kits = append(s.kits, newKit())
	}
	if !o.Unreduced {
		s.key = (*schedule).key
	}
	return s
}

// levels runs one level after another. A level has the schedules with the same number of deviations.
func (s *search) levels() error {
	level, most := []*node{{}}, s.o.Deviations
	if s.o.Schedules > 0 {
		most = 0 // the plain schedule alone: random ones need its number of decisions
	}
	for d := 0; d <= most; d++ {
		s.report.Levels = append(s.report.Levels, Level{Deviations: d})
		next, err := s.level(&s.report.Levels[d], level)
		if err != nil || s.report.Found != nil {
			return err
		}
		level = next
	}
	if s.report.conclude(); s.report.Status == checker.Pass && (s.o.Random || s.o.Schedules > 0) {
		return s.random(most)
	}
	return nil
}

type done struct {
	run   *schedule
	again bool // the schedule was run more than once
	v     *checker.Verdict
	err   error
	n     int // number of the schedule, from 1
}

// further is the number of schedules to run after the first counterexample, to find a better one: 10 % of the
// schedules before it, but at least 100.
func further(before int) int { return max(100, before/10) }

// shorter tells whether f is better evidence than another counterexample. Two holders at the same time are better
// evidence than a wrong reply. If that is equal, fewer steps are better. If that is equal too, a known cause is
// better than two grants that nothing explains.
func (f *Found) shorter(than *Found) bool {
	shown := func(f *Found) int {
		if f.Checker != checker.Exclusion.Name || f.Cause == history.Phantom || f.Cause == history.PartKept {
			return 1
		}
		return 0
	}
	unexplained := func(f *Found) int {
		if f.Cause == history.DoubleGrant {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(shown(f), shown(than)), cmp.Compare(f.steps, than.steps),
		cmp.Compare(unexplained(f), unexplained(than))) < 0
}

// level runs the schedules of a level. It returns those of the next level.
func (s *search) level(l *Level, nodes []*node) (next []*node, err error) {
	if l.Deviations == 1 {
		s.single = len(nodes)
	}
	over := func(i int) bool { return i == len(nodes) || s.o.Budget > 0 && time.Since(s.begun) > s.o.Budget }
	s.inOrder(over, func(worker *kit, i int) done {
		if s.spares(nodes[i]) {
			return done{}
		}
		return s.play(worker, nodes[i].path())
	}, func(i int, d done) bool {
		n := nodes[i]
		nodes[i] = nil
		if s.spares(n) {
			l.Spared++
			return true
		}
		if err = d.err; err != nil {
			return false
		}
		l.Schedules++
		if d.again {
			l.Again++
		}
		if n.parent == nil && s.spec.Sites != locks.NoSite && !d.run.w.wasDialled() {
			err = errElsewhere
			return false
		}
		if s.key != nil {
			s.states.join(d.run, n.way)
		}
		s.length = max(s.length, len(d.run.options))
		for _, options := range d.run.options {
			s.widest = max(s.widest, options)
		}
		s.tell(Progress{Deviations: l.Deviations, Run: l.Schedules, Of: len(nodes) - l.Spared})
		if !s.count(l, &d, &err) {
			return false
		}
		if d.run.wrong == nil && s.report.Found == nil && l.Deviations < s.o.Deviations && s.o.Schedules == 0 {
			next = append(next, s.branch(n, d.run)...)
		}
		return true
	})
	if err == nil && s.report.Found == nil {
		l.Left = len(nodes) - l.Schedules - l.Spared
		l.Complete = l.Left == 0 && l.Diverged == 0 && l.Cut == 0
	}
	return next, err
}

// count adds a schedule to the report. It returns false if the search ends with this schedule.
func (s *search) count(l *Level, d *done, err *error) bool {
	switch {
	case errors.Is(d.run.wrong, errDiverged):
		l.Diverged++
	case d.run.wrong != nil:
		l.Cut++
	case d.run.merged:
		l.Merged++
	case s.judged(d.run, d.v):
		d.n = s.report.Schedules()
		// the counterexample may depend on chance, such as the order of random tokens
		if *err = s.found(d); errors.Is(*err, errDiverged) {
			l.Diverged++
			*err = nil
		}
	}
	return *err == nil && (s.report.Found == nil || s.report.Schedules() < s.last)
}

// mostTries is the largest number of times that a schedule is run until a replay does not diverge. A lock may choose at
// random, like select with two events at the same instant. Then the same deviations can lead to different schedules.
const mostTries = 30

// spares tells whether a schedule need not be run: its last deviation leads to a state of another schedule.
func (s *search) spares(n *node) bool { return n.way != 0 && s.states.has(n.way) }

// untilSame repeats a replay until it does not diverge. It returns the number of tries, and the error of the last one.
func untilSame(try func() error) (tries int, err error) {
	for tries < mostTries {
		tries++
		if err = try(); !errors.Is(err, errDiverged) {
			break
		}
	}
	return tries, err
}

// play runs a schedule with the given deviations, repeats it while it diverges, and judges it.
func (s *search) play(k *kit, given []Choice) (d done) {
	var joins func(*schedule) bool
	if s.key != nil {
		joins = func(run *schedule) bool {
			if len(given) == s.o.Deviations && run.w.clock.Now() > run.deviated {
				return false // nothing branches any more, so later states would only fill the memory
			}
			state := s.key(run)
			// keep only new states: waiting alone does not change the state
			if n := len(run.states); n == 0 || run.states[n-1].state != state {
				run.states = append(run.states, passed{state, len(run.options)})
			}
			return s.states.has(state)
		}
	}
	tries, wrong := untilSame(func() error {
		if d.run, d.err = play(s.t, s.spec, &s.o, k, given, joins, false, nil); d.err != nil {
			return nil
		}
		return d.run.wrong
	})
	d.again = tries > 1 && wrong == nil
	if d.err == nil && d.run.wrong == nil && !d.run.merged {
		_, d.v, d.err = judge(d.run)
	}
	return d
}

// children returns the schedules with one more deviation, after the last one.
func (n *node) children(run *schedule) (list []*node) {
	for at, i := run.first(), 0; at < len(run.options); at++ {
		for option := 1; option < run.options[at]; option++ {
			child := &node{parent: n, choice: Choice{At: at, Option: option, of: run.options[at]}}
			if run.ways != nil {
				child.way = run.ways[i]
			}
			list = append(list, child)
			i++
		}
	}
	return list
}

// first returns the number of the first decision after the last given deviation.
func (s *schedule) first() int {
	if n := len(s.given); n > 0 {
		return s.given[n-1].At + 1
	}
	return 0
}

// judge returns all verdicts, and the first failure for which the lock is to blame; nil = none.
func judge(run *schedule) (all []checker.Verdict, failed *checker.Verdict, err error) {
	if err = run.w.lacking(false); err != nil {
		return nil, nil, err
	}
	if what := run.panicked(); what != "" {
		all = append(all, checker.BrokeDown(&history.Breakdown{Text: what}, run.history.Ops))
	} else if run.w.hung != nil {
		all = append(all, checker.NeverReturned(run.w.hung, run.history.Ops))
	}
	if len(all) > 0 {
		return all, &all[0], nil
	}
	if err := run.history.Validate(); err != nil {
		return nil, nil, fmt.Errorf("the history of an exploration: %w", err)
	}
	c, err := checker.Prepare(run.history)
	if err != nil {
		return nil, nil, err
	}
	all, err = checker.Judge(c)
	for i := range all { // after a misplaced grant (see world) failures do not count
		if all[i].Status == checker.Fail && !run.w.early && all[i].Holds(run.history) {
			return all, &all[i], cmp.Or(err, run.w.lacking(all[i].Cause == history.Unanswered))
		}
	}
	return all, nil, cmp.Or(err, unrecorded(c))
}

// found replays a counterexample to record its trace. It puts the result into the report, unless the report already has
// a counterexample that is at least as good.
func (s *search) found(d *done) error {
	after := time.Since(s.begun)
	var f *Found
	_, err := untilSame(func() (err error) {
		f, err = replay(s.t, s.spec, &s.o, newKit(), d.run.taken)
		if err == nil && f == nil {
			err = fmt.Errorf("%w: a violation was not there again: %s", errDiverged, d.v.Summary)
		}
		return err
	})
	if err != nil {
		return err
	}
	f.Number, f.After = d.n, after
	if s.report.Found == nil {
		s.last = d.n + further(d.n)
	} else if !f.shorter(s.report.Found) {
		return nil
	}
	s.report.Found, s.report.Status = f, checker.Fail
	return nil
}

// Replay runs a single schedule. It returns nil if nothing was violated, and an error if each run
// diverged from the schedule.
func Replay(t *testing.T, spec locks.Spec, o Options, given []Choice) (f *Found, err error) {
	t.Helper()
	if err = Excluded(spec, o); err != nil {
		return nil, err
	}
	_, err = untilSame(func() (err error) {
		f, err = replay(t, spec, &o, newKit(), given)
		return err
	})
	return f, err
}

func replay(t *testing.T, spec locks.Spec, o *Options, known *kit, given []Choice) (*Found, error) {
	run, err := play(t, spec, o, known, given, nil, true, nil)
	if err == nil {
		err = run.wrong
	}
	if err == nil && len(run.taken) < len(given) {
		err = fmt.Errorf("%w: it ended before decision %d", errDiverged, given[len(run.taken)].At)
	}
	if err != nil {
		return nil, err
	}
	verdicts, v, err := judge(run)
	if err != nil || v == nil {
		return nil, err
	}
	told := run.w.trace
	checker.Advise(verdicts) // before they are saved: a saved verdict does not say whether it has advice of its own
	f := &Found{Verdicts: verdicts, Checker: v.Checker, Cause: v.Cause, Summary: v.Summary, Schedule: run.taken,
		steps: told.tell(run.history, v), Messages: told.messages(), Picture: told.picture(o.Clients),
		History: run.history}
	for _, l := range told.lines {
		f.Trace = append(f.Trace, l.String())
	}
	return f, nil
}

func (r *Report) replayed(deviations int) {
	r.Levels = []Level{{Deviations: deviations, Schedules: 1}}
	if r.Status = checker.Fail; r.Found == nil {
		r.Status, r.Reason = checker.Pass, "the schedule violates nothing any more"
	}
}

func (r *Report) conclude() {
	r.Status = checker.Pass
	for _, l := range r.Levels {
		if l.Complete {
			continue
		}
		r.Status = checker.Inconclusive
		r.Reason = fmt.Sprintf("with %d deviations %d schedules were not run, %d were cut and %d diverged",
			l.Deviations, l.Left, l.Cut, l.Diverged)
		return
	}
}
