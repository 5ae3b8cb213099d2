package explore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/locks/known"
)

// TestMain shows goroutines that are left after a violation, a crash, a lost reply or a cut schedule.
func TestMain(m *testing.M) {
	if os.Args[len(os.Args)-1] == Command {
		Child(os.Stdin, os.Stdout, append(fragileLocks(), known.Locks...))
	}
	// one goroutine of an exploration runs at a time
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("testing/synctest.testingSynctestTest"), // of what follows
		goleak.IgnoreAnyFunction("hammerlock/locks/catalogue.(*turnKeptLock).Acquire"),
		goleak.IgnoreAnyFunction("hammerlock/locks/catalogue.(*stopByMessageLock).Release"))
}

func find(t testing.TB, name string) locks.Spec {
	t.Helper()
	spec, ok := known.Find(name)
	if !ok {
		t.Fatalf("no lock %q", name)
	}
	return spec
}

// bounded returns the defaults without a time limit, so that the findings do not depend on the machine.
func bounded(deviations int) Options {
	o := Defaults
	o.Deviations, o.Budget = deviations, 0
	return o
}

func run(t *testing.T, spec locks.Spec, o Options) Report {
	t.Helper()
	r, err := Run(t, spec, o)
	if err != nil {
		t.Fatalf("%s: %v", spec.Name, err)
	}
	return r
}

// TestALockWhoseOwnerCheckIsNoStepIsFound: a lock that checks the owner and then deletes the key in a second command
// may delete another client's key. The smallest counterexample is one pause between the two commands.
func TestALockWhoseOwnerCheckIsNoStepIsFound(t *testing.T) {
	r := run(t, find(t, "get-del"), bounded(2))
	if r.Status != checker.Fail || r.Found == nil {
		t.Fatalf("got %v, want a violation", r.Status)
	}
	if f := r.Found; f.Checker != "exclusion" || f.Cause != "foreign-release" || len(f.Schedule) != 1 {
		t.Errorf("got %s, %s with %d deviations, want exclusion, foreign-release with 1", f.Checker, f.Cause,
			len(f.Schedule))
	}
	text := strings.Join(r.Found.Trace, "\n")
	for _, want := range []string{
		"* w00 is paused", "w00 GET p -> t1", "w01 SET p t2 NX PX 300 -> OK, holds the lock until",
		"VIOLATION of exclusion",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the trace lacks %q:\n%s", want, text)
		}
	}
}

// TestAReplayIsTheSame: the same schedule gives the same trace. A schedule with an impossible choice is an error.
func TestAReplayIsTheSame(t *testing.T) {
	spec, o := find(t, "watch-lax"), bounded(1)
	found := run(t, spec, o).Found
	for range 5 {
		again, err := Replay(t, spec, o, found.Schedule)
		if err != nil {
			t.Fatal(err)
		}
		if again == nil || !slices.Equal(again.Trace, found.Trace) {
			t.Fatalf("got %v, want\n%s", again, strings.Join(found.Trace, "\n"))
		}
	}
	for name, change := range map[string]func(*Choice){
		"another event":    func(c *Choice) { c.What = "w01 request set: is paused" },
		"no such option":   func(c *Choice) { c.Option = 99 },
		"no such decision": func(c *Choice) { c.At = 1 << 20 },
	} {
		given := slices.Clone(found.Schedule)
		change(&given[0])
		if _, err := Replay(t, spec, o, given); !errors.Is(err, errDiverged) {
			t.Errorf("%s: got %v, want that it diverged", name, err)
		}
	}
}

// TestServersFail: a lock is blamed after a server's failure only if the lock could have done better.
func TestServersFail(t *testing.T) {
	for name, tt := range map[string]struct {
		lock  string
		act   act
		cause string
	}{
		"any lock loses what a server forgets":               {"lease", forgets, ""},
		"an extension must not take a lock that was lost":    {"extend-overwrites", forgets, "silent-reacquire"},
		"any lock loses what a clock ends early":             {"lease", leaps, ""},
		"fences do without a clock":                          {"fenced", leaps, ""},
		"a hung server ends a lease":                         {"lease", hangs, ""},
		"a refused command has had no effect":                {"reentrant", refuses, ""},
		"a release that is refused must not leave it locked": {"setnx", refuses, "leak"},
	} {
		t.Run(name, func(t *testing.T) {
			o := bounded(1)
			o.Visits = 1
			s, causes, seen := newSearch(t, find(t, tt.lock), o), map[string]int{}, 0
			s.judged = func(run *schedule, v *checker.Verdict) bool {
				if len(run.taken) == 0 || !strings.HasSuffix(run.taken[0].What, acts[tt.act]) {
					return false
				}
				if seen++; v != nil {
					causes[v.Cause]++
				}
				return false
			}
			if err := s.levels(); err != nil {
				t.Fatal(err)
			}
			if seen == 0 || tt.cause == "" && len(causes) > 0 || tt.cause != "" && causes[tt.cause] == 0 {
				t.Errorf("%d schedules in which a message %s: got %v, want %q", seen, acts[tt.act], causes, tt.cause)
			}
		})
	}
}

// TestAMinorityIsSilent: a lock that needs all of its sites is stuck when one never replies again, and a correct lock
// is not. A majority always replies.
func TestAMinorityIsSilent(t *testing.T) {
	for lock, stuck := range map[string]bool{"float-quorum": true, "redlock": false} {
		o := suited(find(t, lock), 2)
		s, schedules, found := newSearch(t, find(t, lock), o), 0, 0
		s.branch = func(n *node, run *schedule) []*node {
			if n.parent != nil || schedules > 0 {
				return nil
			}
			list := n.children(run)
			if testing.Short() { // some locks stand for all
				list = slices.DeleteFunc(list, func(n *node) bool { return n.choice.At%8 > 0 })
			}
			return list
		}
		s.judged = func(run *schedule, v *checker.Verdict) bool {
			if !slices.Contains(run.dead, true) {
				return false
			}
			if schedules++; run.down() > 1 {
				t.Errorf("%s: %d of 3 servers are silent", lock, run.down())
			}
			if v != nil && v.Checker == "liveness" {
				found++
			}
			return false
		}
		if err := s.levels(); err != nil {
			t.Fatal(err)
		}
		if schedules == 0 || (found > 0) != stuck {
			t.Errorf("%s: %d of %d schedules with a silent server are stuck", lock, found, schedules)
		}
	}
}

// TestRandomSchedulesGoBeyondTheBound: random schedules find a violation that needs more deviations than the search
// has. The same seed finds it again. Deviations that it does not need are removed.
func TestRandomSchedulesGoBeyondTheBound(t *testing.T) {
	o := bounded(0)
	o.Random, o.Seed, o.Budget = true, 1, time.Hour
	var found []*Found
	for range 2 {
		r := run(t, find(t, "plain-del"), o)
		if r.Found == nil || len(r.Found.Schedule) != 1 || r.Found.Number < 2 {
			t.Fatalf("got %s, want a violation with one deviation", r.Verdict())
		}
		found = append(found, r.Found)
	}
	if !slices.Equal(found[0].Trace, found[1].Trace) || found[0].Number != found[1].Number {
		t.Errorf("got schedules %d and %d for one seed\n%s\n%s", found[0].Number, found[1].Number,
			strings.Join(found[0].Trace, "\n"), strings.Join(found[1].Trace, "\n"))
	}
}

// TestWaitersAreWoken: locks that wait for messages are woken by them. A lock whose waiters do not
// notice an expiry is reported.
func TestWaitersAreWoken(t *testing.T) {
	o := bounded(0)
	s, err := play(t, find(t, "redisson"), &o, newKit(), nil, nil, true, nil)
	if err != nil || s.wrong != nil {
		t.Fatal(err, s.wrong)
	}
	if !slices.ContainsFunc(s.history.Ops, func(op history.Op) bool { return op.Woken == history.Signal }) {
		t.Error("nobody was woken by a message")
	}
	if f := run(t, find(t, "deaf-to-expiry"), bounded(1)).Found; f == nil || f.Cause != "lost-wakeup" {
		t.Errorf("got %v, want a lost wake-up", f)
	} else if text := strings.Join(f.Trace, "\n"); !strings.Contains(text, "w01 hears SUBSCRIBE") ||
		!strings.Contains(text, "VIOLATION of liveness") {
		t.Errorf("the trace does not tell it:\n%s", text)
	}
}

// TestACallThatDoesNotReturnIsFound, with the place where it waits.
func TestACallThatDoesNotReturnIsFound(t *testing.T) {
	for name, place := range map[string]string{
		"turn-kept": "(*turnKeptLock).Acquire", "stop-by-message": "(*stopByMessageLock).Release",
	} {
		f := run(t, find(t, name), bounded(1)).Found
		if f == nil || f.Cause != history.HungCall || f.Checker != history.Calls ||
			!strings.Contains(strings.Join(f.Verdicts[0].Story, "\n"), place) {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

// explorable lists the correct or the broken locks of the catalogue that can be explored.
func explorable(broken bool) (list []locks.Spec) {
	for _, s := range known.Locks {
		// it also leaves goroutines
		hangs := slices.Contains(s.Expected(""), history.HungCall)
		// it sorts by random tokens, so no schedule is the same twice
		if (s.Broken != "") == broken && Excluded(s, suited(s, 1)) == nil && !hangs && s.Name != "zset-rank" {
			list = append(list, s)
		}
	}
	return list
}

// TestABudgetThatEndsProvesNothing: schedules that were not run are counted.
func TestABudgetThatEndsProvesNothing(t *testing.T) {
	o := bounded(2)
	o.Budget = time.Nanosecond
	r := run(t, find(t, "lease"), o)
	if r.Status != checker.Inconclusive || r.Levels[0].Left != 1 || r.Reason == "" {
		t.Errorf("got %v, %+v, %q, want an inconclusive report with a schedule left", r.Status, r.Levels, r.Reason)
	}
}

// restless is a lock that sends requests for ever.
type restless struct{ locks.Lock }

func (l restless) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	for {
		if lease, err := l.Lock.Acquire(ctx, key, ttl); err == nil || !errors.Is(err, locks.ErrBusy) {
			return lease, err
		}
	}
}

// sleepless is a lock that wakes its waiter immediately, so each try is recorded.
type sleepless struct{ locks.Lock }

func (sleepless) Wait(ctx context.Context, _ string) (history.Wake, error) {
	return history.Signal, ctx.Err()
}

// TestAScheduleThatDoesNotEndIsCut: it is counted, and proves nothing.
func TestAScheduleThatDoesNotEndIsCut(t *testing.T) {
	for name, wrap := range map[string]func(locks.Lock) locks.Lock{
		"within a try":  func(l locks.Lock) locks.Lock { return restless{l} },
		"try after try": func(l locks.Lock) locks.Lock { return sleepless{l} },
	} {
		t.Run(name, func(t *testing.T) {
			spec := find(t, "lease")
			open := spec.Open
			spec.Open = func(e locks.Env) (locks.Lock, error) {
				l, err := open(e)
				return wrap(l), err
			}
			r := run(t, spec, bounded(0))
			if r.Status != checker.Inconclusive || r.Levels[0].Cut != 1 {
				t.Errorf("got %v, %+v, want a schedule that was cut", r.Status, r.Levels)
			}
		})
	}
}

// tiny is so small that all of its schedules can be run one by one.
var tiny = Options{Clients: 2, Visits: 1, Sites: 1, Deviations: 1, TTL: Defaults.TTL, Hold: Defaults.Hold,
	Pause: Defaults.Pause}

// outcomes runs all schedules of a lock, also after violations, and returns their outcomes.
func outcomes(t *testing.T, spec locks.Spec, o Options, change func(*search)) map[string]bool {
	t.Helper()
	return gathered(t, spec, o, change, outcome)
}

func gathered(t *testing.T, spec locks.Spec, o Options, change func(*search),
	of func(*schedule, *checker.Verdict) string) map[string]bool {
	t.Helper()
	s, found := newSearch(t, spec, o), map[string]bool{}
	s.judged = func(run *schedule, v *checker.Verdict) bool {
		found[of(run, v)] = true
		return false
	}
	if change != nil {
		change(s)
	}
	if err := s.levels(); err != nil {
		t.Fatal(err)
	}
	return found
}

// outcome describes the result of a schedule: the verdict, and what each client learned, in order.
func outcome(run *schedule, v *checker.Verdict) string {
	heard := make([]string, run.o.Clients)
	for _, op := range run.history.Ops {
		if op.Worker >= 0 && op.Kind != history.End && op.Reason != history.Busy {
			heard[op.Worker] += fmt.Sprintf(" %v:%v%v", op.Kind, op.Outcome, op.Reason)
		}
	}
	verdict := "fine"
	if v != nil {
		verdict = v.Checker + " " + v.Cause
	}
	return verdict + strings.Join(heard, " |")
}

// enumerate runs all schedules up to the bound by brute force: every option of every decision. It knows nothing of
// levels, nodes and states.
func enumerate(t *testing.T, spec locks.Spec, o Options) map[string]bool {
	t.Helper()
	o.Unreduced = true
	known, found := newKit(), map[string]bool{}
	try := func(given []Choice) *schedule {
		s, err := play(t, spec, &o, known, given, nil, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.wrong == nil {
			_, v, err := judge(s)
			if err != nil {
				t.Fatal(err)
			}
			found[outcome(s, v)] = true
		}
		return s
	}
	var all func(given []Choice) bool
	all = func(given []Choice) bool {
		s, from := try(given), 0
		if n := len(given); n > 0 {
			from = given[n-1].At + 1
		}
		for at := from; at < len(s.options) && s.wrong == nil && len(given) < o.Deviations; at++ {
			for option := 1; all(append(slices.Clone(given), Choice{At: at, Option: option})); option++ {
			}
		}
		return s.wrong == nil
	}
	all(nil)
	return found
}

// TestTheSearchLeavesOutNothing: the reduction changes no outcome, and the test notices a search with a planted
// error. For locks on several sites there are two examples: one asks its sites in turn, the other in parallel.
func TestTheSearchLeavesOutNothing(t *testing.T) {
	several := tiny
	several.Sites, several.Hold = 3, 20*time.Millisecond
	for _, program := range []struct {
		lock    string
		o       Options
		planted []string
	}{
		{"get-del", tiny, []string{"options", "decisions", "states", "ways"}},
		{"half-quorum", several, []string{"options", "states", "clients", "sites"}},
		{"lease", tiny, []string{"options", "decisions", "states"}},
		{"redlock", several, []string{"clients", "sites"}},
		{"redlock-serial", several, nil},
	} {
		name, spec := program.lock, find(t, program.lock)
		want := enumerate(t, spec, program.o)
		if got := outcomes(t, spec, program.o, nil); !maps.Equal(got, want) {
			t.Errorf("%s: %d outcomes, %d by brute force\n%s", name, len(got), len(want), difference(got, want))
		}
		for _, mistake := range program.planted {
			if got := outcomes(t, spec, program.o, plants[mistake]); maps.Equal(got, want) {
				t.Errorf("%s: %s are forgotten, and nobody noticed", name, mistake)
			}
		}
		if testing.Short() {
			return
		}
		unreduced := program.o
		unreduced.Unreduced = true
		if got := outcomes(t, spec, unreduced, nil); !maps.Equal(got, want) {
			t.Errorf("%s without reduction: %d outcomes, %d by brute force", name, len(got), len(want))
		}
	}
}

// TestTwoDeviationsLeaveOutNothing: two deviations of one kind have the same outcomes as by brute force. One kind for
// each lock is enough, except at night.
func TestTwoDeviationsLeaveOutNothing(t *testing.T) {
	for _, program := range []struct {
		lock  string
		sites int
		only  []act
	}{
		{"redlock", 3, []act{dies, breaks, pauses}}, {"half-quorum", 3, []act{loses, crashes, forgets}},
		{"redlock-serial", 3, []act{refuses, loses}}, {"get-del", 1, []act{loses, letGo}},
		{"read-write", 1, []act{loses, breaks}},
	} {
		for i, only := range program.only {
			o := tiny
			o.Sites, o.Deviations, o.only = program.sites, 2, only
			if i > 0 && !live.Nightly() || testing.Short() && program.lock != "get-del" {
				continue
			}
			want := enumerate(t, find(t, program.lock), o)
			if got := outcomes(t, find(t, program.lock), o, nil); !maps.Equal(got, want) {
				t.Errorf("%s, %s: %d outcomes, %d by brute force\n%s", program.lock, acts[only], len(got), len(want),
					difference(got, want))
			}
		}
	}
}

// plants are errors in a search, named for what the search then ignores.
var plants = map[string]func(*search){
	"options": func(s *search) { // the last one of each decision
		s.branch = func(n *node, run *schedule) []*node {
			return slices.DeleteFunc(n.children(run), func(c *node) bool {
				return c.choice.Option == run.options[c.choice.At]-1
			})
		}
	},
	"decisions": func(s *search) { // the first ones
		s.branch = func(n *node, run *schedule) []*node {
			return slices.DeleteFunc(n.children(run), func(c *node) bool { return c.choice.At < 6 })
		}
	},
	"states": func(s *search) { // most of what distinguishes them
		s.key = func(run *schedule) uint64 { return run.key() % 97 }
	},
	"ways": func(s *search) { // most of what distinguishes the results of deviations
		s.branch = func(n *node, run *schedule) []*node {
			list := n.children(run)
			for _, c := range list {
				c.way = c.way%97 + 1
			}
			return list
		}
	},
	"clients": func(s *search) { // what each client has seen, and what it waits for
		s.key = func(run *schedule) uint64 {
			return maphash.Comparable(seed,
				[3]uint64{uint64(run.current + 1), uint64(run.w.clock.Now()), run.state.sites[0]})
		}
	},
	"sites": func(s *search) { // what each site has done, and what is on the way
		s.key = func(run *schedule) uint64 {
			return maphash.Comparable(seed,
				[4]uint64{
					uint64(run.current + 1), uint64(run.w.clock.Now()), run.state.clients[0], run.state.clients[1],
				})
		}
	},
}

// difference lists the elements of only one of two sets.
func difference(a, b map[string]bool) string {
	var list []string
	for _, x := range slices.Sorted(maps.Keys(a)) {
		if !b[x] {
			list = append(list, "+ "+x)
		}
	}
	for _, x := range slices.Sorted(maps.Keys(b)) {
		if !a[x] {
			list = append(list, "- "+x)
		}
	}
	return strings.Join(list, "\n")
}

// TestTheShortestCounterexampleIsShown: the shortest of those with as few deviations that soon follow the first one.
func TestTheShortestCounterexampleIsShown(t *testing.T) {
	for _, name := range []string{"plain-del", "reply-validity", "blind-watchdog", "extend-adds"} {
		spec, o := find(t, name), bounded(1)
		all := newSearch(t, spec, o)
		var want *Found
		last := 0
		all.judged = func(run *schedule, v *checker.Verdict) bool {
			n := all.report.Schedules()
			if v == nil || last > 0 && n > last {
				return false
			}
			f, err := Replay(t, spec, o, run.taken)
			if err != nil {
				t.Fatal(err)
			}
			if f.Number = n; want == nil {
				last = n + 100
			}
			if want == nil || f.steps < want.steps ||
				f.steps == want.steps && want.Cause == history.DoubleGrant && f.Cause != want.Cause {
				want = f
			}
			return false
		}
		if err := all.levels(); err != nil {
			t.Fatal(err)
		}
		if got := run(t, spec, o).Found; got.Number != want.Number || got.steps != want.steps {
			t.Errorf("%s: got schedule %d with %d steps, want %d with %d", name, got.Number, got.steps,
				want.Number, want.steps)
		}
	}
}
