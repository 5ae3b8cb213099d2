package matrix

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/faults"
	"hammerlock/internal/harness"
	"hammerlock/locks"
	"hammerlock/topologies"
)

func cell(lock, topology, fault string) Cell {
	return Cell{Lock: lock, Topology: topology, Fault: fault, Counter: "redis", Processes: 1}.enoughProcesses()
}

func TestMistakesInExpectationsAreNamed(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"empty":               {"", "e.yaml: "},
		"no YAML":             {"set: [", "e.yaml: yaml: "},
		"no section":          {"set: []\nrulez: [{locks: [lease]}]", "line 2: field rulez not found"},
		"no list":             {"rules: {locks: [lease]}", "line 1: cannot unmarshal"},
		"no fields":           {"set:\n  - lease", "line 2: cannot unmarshal"},
		"unknown field":       {"set: [{lock: [lease]}]", "line 1: field lock not found"},
		"unknown lock":        {"set:\n  - locks: [lease, leese]", `set, number 1: lock "leese": there is lease, `},
		"unknown fault":       {"set: [{}, {faults: [kill]}]", `set, number 2: fault "kill": there is none, kill-primary, `},
		"unknown point":       {"settings: [{faults: [stall-worker@lost]}]", `after @ comes a time or refused, granted, loaded, between, not lost`},
		"unknown topology":    {"set: [{topologies: [ring*]}]", `topology "ring*": there is single, `},
		"unknown counter":     {"set: [{counters: [paper]}]", `counter "paper": there is redis, `},
		"unknown want":        {"rules: [{expect: pass}]", `expect "pass": there is must-pass, must-fail, may-fail`},
		"nothing wanted":      {"rules: [{expect: nothing}]", `expect "nothing": there is must-pass, must-fail, may-fail`},
		"no want":             {"rules: [{locks: [lease]}]", "rules, number 1: it does not say what to expect"},
		"no causes":           {"rules: [{expect: must-fail, reason: r}]", "must-fail needs causes"},
		"unmeant causes":      {"rules: [{expect: may-fail, causes: [overrun], reason: r}]", "only must-fail has causes"},
		"unknown cause":       {"rules: [{expect: must-fail, causes: [bad-luck], reason: r}]", `cause "bad-luck": no checker names it`},
		"unknown checker":     {"rules: [{expect: must-fail, causes: [\"fence:overrun\"], reason: r}]", `cause "fence:overrun": no checker names it`},
		"another's cause":     {"rules: [{expect: must-fail, causes: [\"fencing:overrun\"], reason: r}]", `cause "fencing:overrun": no checker names it`},
		"no reason":           {"rules: [{expect: may-fail}]", "a reason is missing"},
		"no duration":         {"settings:\n  - {ttl: soon}", "line 2: cannot unmarshal"},
		"no number":           {"settings:\n  - {workers: many}", "line 2: cannot unmarshal"},
		"processes no number": {"set: [{processes: two}]", "line 1: cannot unmarshal"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseExpectations("e.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	_, err := ParseExpectations("e.yaml", []byte("set: [{locks: [a]}, {faults: [b]}]\nrules: [{}]"))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want three mistakes at once", err)
	}
	if err := BuiltIn.check(); err != nil {
		t.Error(err)
	}
}

// TestAFileOfExpectationsIsReadAsItIsWritten compares every field.
func TestAFileOfExpectationsIsReadAsItIsWritten(t *testing.T) {
	got, err := ParseExpectations("e.yaml", []byte(`
set: [{locks: ["rueidislock*", "!none"], topologies: [single], faults: [survived, "flush@granted"], counters: ["*"], processes: 2}]
settings: [{locks: [lease], workers: 8, keys: 2, ttl: 1s, hold: 2ms, think: 3ms, retry: 4ms, wait: 5s, duration: 2500ms, extend: 6s, reenter: 7}]
rules: [{faults: [flush], expect: must-fail, causes: [overrun, "fencing:stale-store"], reason: r}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Expectations{
		Set: []Pattern{{Locks: list{"rueidislock*", "!none"}, Topologies: list{"single"}, Faults: list{survived, "flush@granted"},
			Counters: list{"*"}, Processes: 2}},
		Settings: []setting{{Pattern{Locks: list{"lease"}}, conditions{Workers: 8, Keys: 2, TTL: time.Second, Hold: 2 * time.Millisecond,
			Think: 3 * time.Millisecond, Retry: 4 * time.Millisecond, Wait: 5 * time.Second, Duration: 2500 * time.Millisecond,
			Extend: 6 * time.Second, Reenter: 7}}},
		Rules: []rule{{Pattern{Faults: list{"flush"}}, expectFailure("r", "overrun", "fencing:stale-store")}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
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
	for _, lock := range locks.All {
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
	for _, lock := range locks.All {
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
