package matrix

import (
	"slices"
	"time"

	"hammerlock/internal/harness"
	"hammerlock/locks"
)

// want is what is expected of a cell. The zero value expects nothing and makes every result red.
type want string

// What can be expected.
const (
	mustPass want = "must-pass"
	mustFail want = "must-fail"
	mayFail  want = "may-fail"
)

// expectation is what a cell is compared with.
type expectation struct {
	Want   want     `json:"want"`
	Causes []string `json:"causes,omitempty"` // one of them must be found if it must fail
	Reason string   `json:"reason,omitempty"` // why, or the assumption that is broken
}

// rule expects something of the cells that match its pattern.
type rule struct {
	Pattern
	expectation
}

// conditions are how a cell is run; zero values are as before.
type conditions struct {
	Workers, Keys                                   int
	TTL, Hold, Think, Retry, Wait, Duration, Extend time.Duration
	Reenter                                         int
}

// setting is how the cells that match its pattern are run.
type setting struct {
	Pattern
	conditions
}

// Expectations say what is run, how, and what it must find.
type Expectations struct {
	Set      []Pattern // what is run if nothing is chosen
	Settings []setting // all that match a cell count, later ones more
	Rules    []rule    // the last one that matches a cell decides
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
