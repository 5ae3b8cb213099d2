package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/locks"
)

// want is what is expected of a cell.
type want uint8

// What can be expected. The zero value expects nothing and makes every result red.
const (
	nothing want = iota
	mustPass
	mustFail
	mayFail
)

var wants = [...]string{"nothing", "must-pass", "must-fail", "may-fail"}

// String is the word in files and reports.
func (w want) String() string { return wants[w] }

// MarshalText writes the word.
func (w want) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads the word of something that can be expected.
func (w *want) UnmarshalText(text []byte) error {
	i := slices.Index(wants[:], string(text))
	if i <= 0 {
		return fmt.Errorf("expect %q: there is %s", text, strings.Join(wants[1:], ", "))
	}
	*w = want(i)
	return nil
}

// expectation is what a cell is compared with.
type expectation struct {
	Want   want     `json:"want" yaml:"expect"`
	Causes []string `json:"causes,omitempty"` // one of them must be found if it must fail
	Reason string   `json:"reason,omitempty"` // why, or the assumption that is broken
}

// rule expects something of the cells that match its pattern.
type rule struct {
	Pattern     `yaml:",inline"`
	expectation `yaml:",inline"`
}

// conditions are how a cell is run; zero values are as before.
type conditions struct {
	Workers, Keys                                   int
	TTL, Hold, Think, Retry, Wait, Duration, Extend time.Duration
	Reenter                                         int
}

// setting is how the cells that match its pattern are run.
type setting struct {
	Pattern    `yaml:",inline"`
	conditions `yaml:",inline"`
}

// Expectations say what is run, how, and what it must find.
type Expectations struct {
	Set      []Pattern // what is run if nothing is chosen
	Settings []setting // all that match a cell count, later ones more
	Rules    []rule    // the last one that matches a cell decides
}

// ParseExpectations reads expectations in YAML; the name of their file is for the errors.
func ParseExpectations(name string, text []byte) (*Expectations, error) {
	e := &Expectations{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	err := d.Decode(e)
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return e, nil
}

// check names every mistake.
func (e *Expectations) check() error {
	var errs []error
	wrong := func(section string, i int, mistakes []string) {
		for _, m := range mistakes {
			errs = append(errs, fmt.Errorf("%s, number %d: %s", section, i+1, m))
		}
	}
	for i, p := range e.Set {
		wrong("set", i, p.mistakes())
	}
	for i, s := range e.Settings {
		wrong("settings", i, s.mistakes())
	}
	for i, r := range e.Rules {
		wrong("rules", i, append(r.Pattern.mistakes(), r.expectation.mistakes()...))
	}
	return errors.Join(errs...)
}

func (x *expectation) mistakes() (list []string) {
	for _, cause := range x.Causes {
		if !canBeFound(cause) {
			list = append(list, fmt.Sprintf("cause %q: no checker names it", cause))
		}
	}
	switch {
	case x.Want == nothing:
		list = append(list, "it does not say what to expect: "+strings.Join(wants[1:], ", "))
	case x.Want == mustFail && len(x.Causes) == 0:
		list = append(list, "must-fail needs causes")
	case x.Want != mustFail && len(x.Causes) > 0:
		list = append(list, "only must-fail has causes")
	case x.Want != mustPass && x.Reason == "":
		list = append(list, "a reason is missing: what is wrong, or which assumption is broken")
	}
	return list
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

// rule is the one that decides a cell; nil if none matches it.
func (e *Expectations) rule(c Cell) *rule {
	for i := range slices.Backward(e.Rules) {
		if e.Rules[i].matches(c) {
			return &e.Rules[i]
		}
	}
	return nil
}

// expect returns what is expected of a cell: by the last rule that matches it, or else by the catalogues: a right lock
// must pass with every fault that breaks none of its assumptions, and a broken lock must fail as its symptoms say.
func (e *Expectations) expect(c Cell) expectation {
	if r := e.rule(c); r != nil {
		return r.expectation
	}
	lock, topology := c.specs()
	if lock.Broken != "" {
		if causes := symptoms(lock, c.Fault); len(causes) > 0 && (lock.Sites != locks.ManySites || topology.Sites > 1) {
			return expectation{Want: mustFail, Causes: causes, Reason: lock.Broken}
		}
		return expectation{Want: mayFail, Reason: lock.Broken}
	}
	if why := c.assumption(); why != "" {
		return expectation{Want: mayFail, Reason: "not given: " + why}
	}
	return expectation{Want: mustPass}
}

// prepare writes into a plan how a cell is run.
func (e *Expectations) prepare(c Cell, p *harness.Plan) {
	for _, s := range e.Settings {
		if s.matches(c) {
			s.into(p)
		}
	}
}

// into lets the conditions that are given replace those of a plan.
func (c conditions) into(p *harness.Plan) {
	w := &p.Workload
	replace(&w.Workers, c.Workers)
	replace(&w.Keys, c.Keys)
	replace(&w.TTL, c.TTL)
	replace(&w.Hold, c.Hold)
	replace(&w.Think, c.Think)
	replace(&w.Retry, c.Retry)
	replace(&w.Wait, c.Wait)
	replace(&p.Duration, c.Duration)
	replace(&w.Extend, c.Extend)
	replace(&w.Reenter, c.Reenter)
}

func replace[T comparable](to *T, by T) {
	var zero T
	if by != zero {
		*to = by
	}
}
