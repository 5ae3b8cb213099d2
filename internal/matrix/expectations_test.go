package matrix

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/internal/harness"
	"hammerlock/locks/known"
	"hammerlock/topologies"
)

func cell(lock, topology, fault string) Cell {
	return Cell{Lock: lock, Topology: topology, Fault: fault, Counter: "redis", Processes: 1}.enoughProcesses()
}

func TestMistakesInAPatternAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		pattern Pattern
		want    string
	}{
		"lock":     {Pattern{Locks: list{"lease", "leese"}}, `--lock "leese": there is lease, `},
		"fault":    {Pattern{Faults: list{"kill"}}, `--fault "kill": there is none, kill-primary, `},
		"point":    {Pattern{Faults: list{"stall-worker@lost"}}, `after @ comes a time or refused, granted, loaded, between, not lost`},
		"topology": {Pattern{Topologies: list{"ring*"}}, `--topology "ring*": there is single, `},
		"counter":  {Pattern{Counters: list{"paper"}}, `--counter "paper": there is redis, `},
	} {
		if got := c.pattern.Mistakes(); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: got %q, want %s", name, got, c.want)
		}
	}
}

// TestTheBuiltInExpectationsSayWhatCanBeFound: a rule that asks for what nobody can find would be red for ever, and one
// without a reason tells its reader nothing.
func TestTheBuiltInExpectationsSayWhatCanBeFound(t *testing.T) {
	patterns := slices.Clone(BuiltIn.Set)
	for _, s := range BuiltIn.Settings {
		patterns = append(patterns, s.Pattern)
	}
	for i, r := range BuiltIn.Rules {
		patterns = append(patterns, r.Pattern)
		if (r.Want == mustFail) != (len(r.Causes) > 0) || (r.Want == mustPass) != (r.Reason == "") {
			t.Errorf("rule %d: %s has causes %v and the reason %q", i, r.Want, r.Causes, r.Reason)
		}
		for _, cause := range r.Causes {
			if !canBeFound(cause) {
				t.Errorf("rule %d: no checker names the cause %q", i, cause)
			}
		}
	}
	for _, p := range patterns {
		if m := p.Mistakes(); len(m) > 0 {
			t.Errorf("%+v: %s", p, m)
		}
	}
}

// canBeFound tells whether a record can show the cause: a checker's name, a cause that a checker names, or both as in
// fencing:stale-store.
func canBeFound(cause string) bool {
	name, of, both := strings.Cut(cause, ":")
	return slices.ContainsFunc(checker.All, func(c checker.Checker) bool {
		if both {
			return c.Name == name && slices.Contains(c.Causes, of)
		}
		return c.Name == cause || slices.Contains(c.Causes, cause)
	})
}

func TestTheLastRuleDecides(t *testing.T) {
	e := &Expectations{Rules: []rule{
		{Pattern{Locks: list{"lease"}}, allowFailure("first")},
		{Pattern{Locks: list{"l*"}, Faults: list{"flush"}}, expectFailure("second", "overrun")},
		{Pattern{Locks: list{"lease"}, Topologies: list{"!cluster"}, Faults: list{"flush"}}, expectation{Want: mustPass, Reason: "third"}},
	}}
	cases := map[string]struct {
		cell Cell
		want want
		rule string // its reason
	}{
		"only the first":         {cell("lease", "single", "none"), mayFail, "first"},
		"the third of three":     {cell("lease", "single", "flush"), mustPass, "third"},
		"taken out of the third": {cell("lease", "cluster", "flush"), mustFail, "second"},
		"with its point":         {cell("lease", "single", "flush@granted"), mustPass, "third"},
		"none: survived":         {cell("watch", "single", "delay"), mustPass, ""},
		"none: not survived":     {cell("watch", "single", "flush"), mayFail, ""},
		"none: caught":           {cell("setnx-expire", "single", "crash-worker@between"), mustFail, ""},
		"none: broken":           {cell("setnx-expire", "single", "none"), mayFail, ""},
		"none: broken elsewhere": {cell("half-quorum", "single", "none"), mayFail, ""},
		"none: broken there":     {cell("half-quorum", "redlock", "none"), mustFail, ""},
	}
	for name, c := range cases {
		by := ""
		if r := e.rule(c.cell); r != nil {
			by = r.Reason
		}
		if got := e.expect(c.cell); got.Want != c.want || by != c.rule {
			t.Errorf("%s: got %v by rule %q, want %v by %q", name, got.Want, by, c.want, c.rule)
		}
	}
}

func TestLaterSettingsCountMore(t *testing.T) {
	e := &Expectations{Settings: []setting{
		{Pattern{}, conditions{Workers: 8, TTL: time.Second, Hold: 2 * time.Millisecond}},
		{Pattern{Locks: list{wrong}}, conditions{TTL: 300 * time.Millisecond}},
		{Pattern{Faults: list{faults.None}}, conditions{Workers: 2}},
	}}
	for name, c := range map[string]struct {
		cell    Cell
		workers int
		ttl     time.Duration
	}{
		"all three": {cell("bit", "single", "none"), 2, 300 * time.Millisecond},
		"the first": {cell("lease", "single", "delay"), 8, time.Second},
	} {
		var p harness.Plan
		e.prepare(c.cell, &p)
		if w := p.Workload; w.Workers != c.workers || w.TTL != c.ttl || w.Hold != 2*time.Millisecond || w.Keys != 0 {
			t.Errorf("%s: got %+v", name, w)
		}
	}
}

// TestTheSetShowsEveryLock keeps the set honest: a broken lock that is never caught, or a right one that is never
// tried, would be a hole that no run of the matrix can show.
func TestTheSetShowsEveryLock(t *testing.T) {
	e := BuiltIn
	choice := Choose(e.Set, topologies.Server{})
	for _, lock := range known.Locks {
		if lock.Broken != "" && len(lock.Caught) == 0 {
			continue // no fault shows it: a scenario does
		}
		want, tried := mustPass, 0
		if lock.Broken != "" {
			want = mustFail
		}
		for _, c := range choice.Cells {
			if c.Lock == lock.Name && e.expect(c).Want == want {
				tried++
			}
		}
		if tried == 0 {
			t.Errorf("%s: no cell of the set says %s", lock.Name, want)
		}
	}
	for i := range e.Rules {
		r := &e.Rules[i]
		if !slices.ContainsFunc(choice.Cells, func(c Cell) bool { return e.rule(c) == r }) && r.Want != mayFail {
			t.Errorf("rule %+v decides no cell of the set", *r)
		}
	}
}

func TestChooseTakesEachCellOnceAndOnlyWhatFits(t *testing.T) {
	all := Choose([]Pattern{{Counters: []string{"*"}}, {Locks: []string{"lease"}}}, topologies.Server{})
	seen := map[Cell]bool{}
	for _, c := range all.Cells {
		if seen[c] {
			t.Errorf("%s twice", c)
		}
		seen[c] = true
		if why := c.fits(topologies.Server{}); why != "" {
			t.Errorf("%s: %s", c, why)
		}
	}
	for _, c := range []Cell{cell("lease", "redlock", "none"), cell("lease", "single", "failover"), cell("redlock", "single", "pause-minority")} {
		if seen[c] {
			t.Errorf("%s was chosen", c)
		}
	}
	if len(all.LeftOut) > 0 {
		t.Errorf("left out %v of everything", all.LeftOut)
	}
	few := Choose([]Pattern{{Locks: []string{"lease"}, Topologies: []string{"single"}, Faults: []string{"none", "stop-process"}}}, topologies.Server{})
	want := []Cell{cell("lease", "single", "none"), cell("lease", "single", "stop-process")}
	if !slices.Equal(few.Cells, want) || want[1].Processes != 2 {
		t.Errorf("got %v, want %v", few.Cells, want)
	}
	if len(few.LeftOut) == 0 {
		t.Error("nothing is said of what is left out")
	}
	old := Choose([]Pattern{{Locks: []string{"ifeq"}}}, topologies.Server{Name: "redis", Version: "7.0"})
	if len(old.Cells) != 0 || !slices.ContainsFunc(old.LeftOut, func(l LeftOut) bool { return strings.Contains(l.Why, "ifeq needs") }) {
		t.Errorf("ifeq on an old server: %v, left out %v", old.Cells, old.LeftOut)
	}
}

func TestEveryCauseOfTheCatalogueIsKnown(t *testing.T) {
	for _, lock := range known.Locks {
		for _, s := range lock.Caught {
			if !canBeFound(s.Cause) {
				t.Errorf("%s: no checker names %q", lock.Name, s.Cause)
			}
			if _, ok := faults.Find(faultName(s.Fault)); !ok && s.Fault != faults.None {
				t.Errorf("%s: there is no fault %q", lock.Name, s.Fault)
			}
		}
	}
}

func TestEveryChapterCanBeTold(t *testing.T) {
	e := BuiltIn
	for i, c := range Chapters {
		if why := c.Cell.fits(topologies.Server{}); why != "" {
			t.Errorf("chapter %d, %s: %s", i+1, c.Cell, why)
		}
		if want := e.expect(c.Cell).Want; want != mustPass && want != mustFail {
			t.Errorf("chapter %d, %s: %s, so it may come out either way", i+1, c.Cell, want)
		}
	}
}
