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

// Want is what is expected of a cell.
type Want uint8

// What can be expected. The zero value expects nothing and makes every result red.
const (
	Nothing Want = iota
	MustPass
	MustFail
	MayFail
)

var wants = [...]string{"nothing", "must-pass", "must-fail", "may-fail"}

// String is the word in files and reports.
func (w Want) String() string { return wants[w] }

// MarshalText writes the word.
func (w Want) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads the word of something that can be expected.
func (w *Want) UnmarshalText(text []byte) error {
	i := slices.Index(wants[:], string(text))
	if i <= 0 {
		return fmt.Errorf("expect %q: there is %s", text, strings.Join(wants[1:], ", "))
	}
	*w = Want(i)
	return nil
}

// Expectation is what a cell is compared with.
type Expectation struct {
	Want   Want     `json:"want" yaml:"expect"`
	Causes []string `json:"causes,omitempty"` // one of them must be found if it must fail
	Reason string   `json:"reason,omitempty"` // why, or the assumption that is broken
}

// Rule expects something of the cells that match its pattern.
type Rule struct {
	Pattern     `yaml:",inline"`
	Expectation `yaml:",inline"`
}

// Conditions are how a cell is run; zero values are as before.
type Conditions struct {
	Workers, Keys                                   int
	TTL, Hold, Think, Retry, Wait, Duration, Extend time.Duration
	Reenter                                         int
}

// Setting is how the cells that match its pattern are run.
type Setting struct {
	Pattern    `yaml:",inline"`
	Conditions `yaml:",inline"`
}

// Expectations say what is run, how, and what it must find.
type Expectations struct {
	Set      []Pattern // what is run if nothing is chosen
	Settings []Setting // all that match a cell count, later ones more
	Rules    []Rule    // the last one that matches a cell decides
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
		wrong("rules", i, append(r.Pattern.mistakes(), r.Expectation.mistakes()...))
	}
	return errors.Join(errs...)
}

func (x *Expectation) mistakes() (list []string) {
	for _, cause := range x.Causes {
		if !canBeFound(cause) {
			list = append(list, fmt.Sprintf("cause %q: no checker names it", cause))
		}
	}
	switch {
	case x.Want == Nothing:
		list = append(list, "it does not say what to expect: "+strings.Join(wants[1:], ", "))
	case x.Want == MustFail && len(x.Causes) == 0:
		list = append(list, "must-fail needs causes")
	case x.Want != MustFail && len(x.Causes) > 0:
		list = append(list, "only must-fail has causes")
	case x.Want != MustPass && x.Reason == "":
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
func (e *Expectations) rule(c Cell) *Rule {
	for i := range slices.Backward(e.Rules) {
		if e.Rules[i].matches(c) {
			return &e.Rules[i]
		}
	}
	return nil
}

// Expect returns what is expected of a cell: what the last rule that means it says, or what the catalogues do.
func (e *Expectations) Expect(c Cell) Expectation {
	if r := e.rule(c); r != nil {
		return r.Expectation
	}
	lock, topology := c.specs()
	if lock.Broken != "" {
		if causes := symptoms(lock, c.Fault); len(causes) > 0 && (lock.Sites != locks.ManySites || topology.Sites > 1) {
			return Expectation{Want: MustFail, Causes: causes, Reason: lock.Broken}
		}
		return Expectation{Want: MayFail, Reason: lock.Broken}
	}
	if why := c.assumption(); why != "" {
		return Expectation{Want: MayFail, Reason: "not given: " + why}
	}
	return Expectation{Want: MustPass}
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
func (c Conditions) into(p *harness.Plan) {
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
