package matrix

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/faults"
	"hammerlock/locks"
	"hammerlock/topologies"
)

func builtInExpectations(t *testing.T) *Expectations {
	t.Helper()
	e, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func cell(lock, topology, fault string) Cell {
	return Cell{Lock: lock, Topology: topology, Fault: fault, Counter: "redis", Processes: processesFor(fault)}
}

func TestMistakesInExpectationsAreNamedWithTheirPlaces(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"empty":               {"", "e.yaml:0:0: empty"},
		"no YAML":             {"set: [", "e.yaml: yaml: "},
		"no section":          {"sets: []\nrulez: [{locks: [lease]}]", "e.yaml:2:1: rulez: there is set, settings, rules"},
		"no list":             {"rules: {locks: [lease]}", "e.yaml:1:8: rules: a list"},
		"no fields":           {"set:\n  - lease", "e.yaml:2:5: fields are wanted here"},
		"unknown field":       {"set: [{lock: [lease]}]", "e.yaml:1:8: lock: no such field"},
		"unknown lock":        {"set:\n  - locks: [lease, leese]", `e.yaml:2:20: locks "leese": there is lease, `},
		"unknown fault":       {"set: [{faults: [kill]}]", `e.yaml:1:17: faults "kill": there is none, kill-primary, `},
		"unknown point":       {"set: [{faults: [stall-worker@lost]}]", `after @ comes a time or granted, loaded, between, not lost`},
		"unknown topology":    {"set: [{topologies: [ring*]}]", `topologies "ring*": there is single, `},
		"unknown counter":     {"set: [{counters: [paper]}]", `counters "paper": there is redis, `},
		"unknown want":        {"rules: [{expect: pass}]", `e.yaml:1:18: expect "pass": there is must-pass, must-fail, may-fail`},
		"no want":             {"rules: [{locks: [lease]}]", "e.yaml:1:9: a rule says what to expect"},
		"no causes":           {"rules: [{expect: must-fail, reason: r}]", "e.yaml:1:9: what must fail has causes"},
		"unmeant causes":      {"rules: [{expect: may-fail, causes: [overrun], reason: r}]", "only what must fail has causes"},
		"unknown cause":       {"rules: [{expect: must-fail, causes: [bad-luck], reason: r}]", `e.yaml:1:38: causes "bad-luck": there is double-grant, `},
		"unknown checker":     {"rules: [{expect: must-fail, causes: [\"fence:overrun\"], reason: r}]", `causes "fence:overrun": there is`},
		"no reason":           {"rules: [{expect: may-fail}]", "a reason is missing"},
		"no duration":         {"settings:\n  - {ttl: soon}", "e.yaml:2:11: "},
		"no number":           {"settings:\n  - {workers: many}", "e.yaml:2:15: "},
		"processes no number": {"set: [{processes: two}]", "e.yaml:1:19: "},
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
}

func TestTheLastRuleDecides(t *testing.T) {
	e, err := ParseExpectations("e.yaml", []byte(`
rules:
  - {locks: [lease], expect: may-fail, reason: first}
  - {locks: [l*], faults: [flush], expect: must-fail, causes: [overrun], reason: second}
  - {locks: [lease], topologies: ["!cluster"], faults: [flush], expect: must-pass}
`))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		cell Cell
		want Want
		line int
	}{
		"only the first":         {cell("lease", "single", "none"), MayFail, 3},
		"the third of three":     {cell("lease", "single", "flush"), MustPass, 5},
		"taken out of the third": {cell("lease", "cluster", "flush"), MustFail, 4},
		"with its point":         {cell("lease", "single", "flush@granted"), MustPass, 5},
		"none: survived":         {cell("watch", "single", "delay"), MustPass, 0},
		"none: not survived":     {cell("watch", "single", "flush"), MayFail, 0},
		"none: caught":           {cell("setnx-expire", "single", "crash-worker@between"), MustFail, 0},
		"none: broken":           {cell("setnx-expire", "single", "none"), MayFail, 0},
		"none: broken elsewhere": {cell("half-quorum", "single", "none"), MayFail, 0},
		"none: broken there":     {cell("half-quorum", "redlock", "none"), MustFail, 0},
	}
	for name, c := range cases {
		if got := e.Expect(c.cell); got.Want != c.want || got.Line != c.line {
			t.Errorf("%s: got %v by line %d, want %v by %d", name, got.Want, got.Line, c.want, c.line)
		}
	}
}

func TestLaterSettingsCountMore(t *testing.T) {
	e, err := ParseExpectations("e.yaml", []byte(`
settings:
  - {workers: 8, ttl: 1s, hold: 2ms}
  - {locks: [broken], ttl: 300ms}
  - {faults: [none], workers: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := e.Conditions(cell("bit", "single", "none")), (Conditions{Workers: 2, TTL: 300 * time.Millisecond, Hold: 2 * time.Millisecond}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := e.Conditions(cell("lease", "single", "delay")), (Conditions{Workers: 8, TTL: time.Second, Hold: 2 * time.Millisecond}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestTheSetShowsEveryLock keeps the set honest: a broken lock that is never caught, or a right one that is never
// tried, would be a hole that no run of the matrix can show.
func TestTheSetShowsEveryLock(t *testing.T) {
	e := builtInExpectations(t)
	choice := Choose(e.Set, topologies.Server{})
	for _, lock := range locks.All {
		want, tried := MustPass, 0
		if lock.Broken != "" {
			want = MustFail
		}
		for _, c := range choice.Cells {
			if c.Lock == lock.Name && e.Expect(c).Want == want {
				tried++
			}
		}
		if tried == 0 {
			t.Errorf("%s: no cell of the set says %s", lock.Name, want)
		}
	}
	for _, r := range e.Rules {
		if !slices.ContainsFunc(choice.Cells, func(c Cell) bool { return e.Expect(c).Line == r.Line }) && r.Want != MayFail {
			t.Errorf("line %d decides no cell of the set", r.Line)
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
			if !slices.Contains(known, s.Cause) && !isChecker(s.Cause) {
				t.Errorf("%s: no checker names %q", lock.Name, s.Cause)
			}
			if _, ok := faults.Find(faultName(s.Fault)); !ok && s.Fault != faults.None {
				t.Errorf("%s: there is no fault %q", lock.Name, s.Fault)
			}
		}
	}
}

func TestEveryChapterCanBeTold(t *testing.T) {
	e := builtInExpectations(t)
	for i, c := range Chapters {
		if why := c.Cell.fits(topologies.Server{}); why != "" {
			t.Errorf("chapter %d, %s: %s", i+1, c.Cell, why)
		}
		if want := e.Expect(c.Cell).Want; want != MustPass && want != MustFail {
			t.Errorf("chapter %d, %s: %s, so it may come out either way", i+1, c.Cell, want)
		}
	}
}
