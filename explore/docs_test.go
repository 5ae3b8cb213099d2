package explore

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/live"
	"hammerlock/locks"
)

var (
	update = flag.Bool("update", false, "write docs/EXPLORE.md again")
	budget = flag.Duration("budget", 0, "with -update: how long a right lock is explored with two deviations, "+
		"and with\nthree clients; 0 = what is known of that stays")
)

const document = "../docs/EXPLORE.md"

// TestTheDocumentSaysWhatIsFound: broken locks are found, correct ones pass, and docs/EXPLORE.md has the same
// numbers, except for times. With -short it tests the broken locks that explore is expected to find, and one correct
// lock. Without -short it adds one in five of the other locks, and at night all. With -update it writes each row when
// the row is known, so -run Document/right/lease measures one row again.
func TestTheDocumentSaysWhatIsFound(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	left := func(i int) bool { return testing.Short() || !live.Nightly() && !*update && i%5 > 0 }
	for i, spec := range documented(t, true) {
		if left(i) && spec.Expect[0].Scenario != "" {
			continue
		}
		t.Run("broken/"+spec.Name, func(t *testing.T) { brokenRow(t, spec) })
	}
	for i, spec := range documented(t, false) {
		if left(i) && spec.Name != "lease" {
			continue
		}
		t.Run("right/"+spec.Name, func(t *testing.T) { rightRow(t, spec) })
	}
	for _, name := range []string{"lease", "plain-del", "fenced", "redsync"} {
		if *update {
			t.Run("three/"+name, func(t *testing.T) { threeRow(t, find(t, name)) })
		}
	}
	for i, row := range []struct{ sites, deviations int }{{3, 1}, {5, 1}} {
		if !left(i) {
			t.Run(fmt.Sprintf("sites/%d", row.sites), func(t *testing.T) {
				siteRow(t, "redlock", row.sites, row.deviations)
			})
		}
	}
}

// TestTheDocumentShowsACounterexample: its trace and its picture are up to date.
func TestTheDocumentShowsACounterexample(t *testing.T) {
	const picture = "../docs/pictures/plain-del.svg"
	f := run(t, find(t, "plain-del"), bounded(1)).Found
	if *update {
		if err := os.WriteFile(picture, []byte(f.Picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(picture); err != nil || string(text) != f.Picture {
		t.Errorf("%s is another one: %v; to write it again: go test ./explore -run Document -update", picture, err)
	}
	if text := strings.Join(f.Trace[:len(f.Trace)-1], "\n"); !strings.Contains(read(t), text) {
		t.Errorf("docs/EXPLORE.md does not say\n%s", text)
	}
}

// read returns the current document.
func read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documented lists the locks for which the document has or will have a row. A new lock is not measured yet.
func documented(t *testing.T, broken bool) []locks.Spec {
	t.Helper()
	text := read(t)
	return slices.DeleteFunc(explorable(broken), func(s locks.Spec) bool {
		return !*update && !strings.Contains(text, "\n| `"+s.Name+"` |")
	})
}

// row compares a row, without its times, with the document. With -update it writes the row into the document instead,
// in place of the row that begins with the name.
func row(t *testing.T, part, name, row, times string) {
	t.Helper()
	t.Log(row + times)
	text := read(t)
	if !*update {
		if !strings.Contains(text, "\n"+row) {
			t.Errorf("docs/EXPLORE.md does not say\n%s\nto write it again: "+
				"go test ./explore -run Document -update", row)
		}
		return
	}
	begin := strings.Index(text, "<!-- generated: "+part+" -->")
	if begin < 0 {
		t.Fatalf("%s has no part %q", document, part)
	}
	end := begin + strings.Index(text[begin:], "<!-- end -->")
	inside := text[begin:end]
	if old := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `.*\n`); old.MatchString(inside) {
		inside = old.ReplaceAllLiteralString(inside, row+times+"\n")
	} else {
		inside += row + times + "\n"
	}
	if err := os.WriteFile(document, []byte(text[:begin]+inside+text[end:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

func brokenRow(t *testing.T, spec locks.Spec) {
	begun, where := used(), ""
	o := suited(spec, 1)
	r := run(t, spec, o)
	first := r.Schedules()
	if r.Found == nil && o.Sites == 1 {
		o.Together, where = true, "in one process, "
		r = run(t, spec, o)
	}
	name := fmt.Sprintf("| `%s` |", spec.Name)
	if r.Found == nil && (*update || strings.Contains(read(t), "\n"+name+" 2 |")) {
		where = ""
		r = run(t, spec, suited(spec, 2))
	}
	if r.Found == nil {
		row(t, "broken", name, fmt.Sprintf("%s not found with 1 | %d |", name, first),
			fmt.Sprintf(" - | none in all %s with 2 | %v |", explored(&r), (used()-begun).Round(10*time.Millisecond)))
		return
	}
	f := r.Found
	if len(f.Trace) > mostLines+1 {
		t.Errorf("%s: a trace of %d lines", spec.Name, len(f.Trace))
	}
	asExpected(t, spec, f)
	row(t, "broken", name, fmt.Sprintf("%s %s%d | %d | %d | %s: %s |", name, where, len(f.Schedule), f.Number,
		len(f.Trace), f.Checker, f.Cause),
		fmt.Sprintf(" %v |", (used()-begun).Round(10*time.Millisecond)))
}

// asExpected fails the test if the lock's Spec does not expect the cause of a counterexample. If the Spec names
// scenarios, the first counterexample may have another cause.
func asExpected(t *testing.T, spec locks.Spec, f *Found) {
	t.Helper()
	elsewhere := func(e locks.Expectation) bool { return e.Scenario != "" }
	if want := spec.Expected(""); !slices.Contains(want, f.Cause) && !slices.ContainsFunc(spec.Expect, elsewhere) {
		t.Errorf("%s shows %s: %s, its entry expects %s", spec.Name, f.Checker, f.Cause, strings.Join(want, " or "))
	}
}

// suited returns the options of verify for a lock, without a time limit.
func suited(spec locks.Spec, deviations int) Options {
	o := Briefly(spec)
	o.Deviations, o.Budget = deviations, 0
	return o
}

func rightRow(t *testing.T, spec locks.Spec) {
	begun := used()
	r := run(t, spec, suited(spec, 1))
	fine(t, &r)
	name := fmt.Sprintf("| `%s` |", spec.Name)
	begins := fmt.Sprintf("%s %s |", name, explored(&r))
	times := fmt.Sprintf(" %v |", (used() - begun).Round(10*time.Millisecond))
	three := suited(spec, 1)
	three.Clients, three.Visits = 3, 1
	switch known := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(begins) + `[^|]*\|(.*)$`).FindStringSubmatch(
		read(t)); {
	case *budget > 0:
		for _, o := range []Options{suited(spec, 2), three} {
			o.Budget, begun = *budget, used()
			r = run(t, spec, o)
			fine(t, &r)
			times += fmt.Sprintf(" %s | %v |", explored(&r), (used() - begun).Round(10*time.Millisecond))
		}
	case known != nil:
		times += known[1]
	default:
		times += " not run yet | - | not run yet | - |"
	}
	row(t, "right", name, begins, times)
}

// threeRow runs all schedules of a lock on one site with three deviations and one visit of each client, also after a
// violation. This takes from one to five minutes.
func threeRow(t *testing.T, spec locks.Spec) {
	o := bounded(3)
	o.Visits = 1
	s, begun, failed := newSearch(t, spec, o), used(), 0
	s.judged = func(_ *schedule, v *checker.Verdict) bool {
		if v != nil {
			failed++
		}
		return false
	}
	if err := s.levels(); err != nil || spec.Broken == "" && failed > 0 {
		t.Errorf("%s: %v, %d schedules violate something", spec.Name, err, failed)
	}
	name := fmt.Sprintf("| `%s` |", spec.Name)
	row(t, "three", name, name,
		fmt.Sprintf(" %s | %d | %v |", explored(&s.report), failed, (used()-begun).Round(time.Second)))
}

// explored returns the number of schedules that were run, of all schedules, and of their classes.
func explored(r *Report) string {
	cut, left, again, merged := 0, 0, 0, 0
	for _, l := range r.Levels {
		cut, left, again, merged = cut+l.Cut+l.Diverged, left+l.Left, again+l.Again, merged+l.Merged
	}
	all := fmt.Sprintf("%d (%d)", r.Schedules(), r.Schedules()-merged)
	if left > 0 {
		all = fmt.Sprintf("%d of %d", r.Schedules(), r.Schedules()+left)
	}
	if again > 0 {
		all += fmt.Sprintf(", %d again", again)
	}
	if cut > 0 {
		all += fmt.Sprintf(", of which %d prove nothing", cut)
	}
	return all
}

// fine fails the test if an exploration has found a violation of a correct lock.
func fine(t *testing.T, r *Report) {
	t.Helper()
	if r.Found != nil {
		t.Errorf("%s: %s\n%s", r.Lock, r.Verdict(), strings.Join(r.Found.Trace, "\n"))
	}
}

// siteRow explores a correct lock on several sites, and counts the schedules that the reduction leaves out.
func siteRow(t *testing.T, lock string, n, deviations int) {
	spec := find(t, lock)
	o := suited(spec, deviations)
	o.Sites = n
	begun := used()
	r := run(t, spec, o)
	took := used() - begun
	fine(t, &r)
	name := fmt.Sprintf("| `%s` | %d | %d |", lock, n, deviations)
	begins := fmt.Sprintf("%s all %d | %d |", name, r.Schedules(), r.Levels[deviations].Merged)
	if !*update {
		row(t, "sites", name, begins, "")
		return
	}
	o.Unreduced = true
	begun = used()
	all := run(t, spec, o)
	row(t, "sites", name, begins, fmt.Sprintf(" %v | %d | %v |", took.Round(10*time.Millisecond), all.Schedules(),
		(used()-begun).Round(10*time.Millisecond)))
}

// used returns the CPU time of this process, which says more than the clock on a busy machine.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it does not fail for this process
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
