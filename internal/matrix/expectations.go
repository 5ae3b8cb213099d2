package matrix

import (
	_ "embed" // the expectations
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hammerlock/internal/harness"
	"hammerlock/locks"
)

//go:embed expectations.yaml
var builtIn []byte

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

// Expectation is what a cell is compared with.
type Expectation struct {
	Want   Want     `json:"want"`
	Causes []string `json:"causes,omitempty"` // one of them must be found if it must fail
	Reason string   `json:"reason,omitempty"` // why, or the assumption that is broken
	Line   int      `json:"line,omitempty"`   // of the rule that says so; 0 = derived from the catalogues
}

// Rule expects something of the cells that it means. The last rule that means a cell decides.
type Rule struct {
	Pattern
	Expectation
}

// Conditions are how a cell is run; zero values are as before.
type Conditions struct {
	Workers  int           `yaml:"workers"`
	Keys     int           `yaml:"keys"`
	TTL      time.Duration `yaml:"ttl"`
	Hold     time.Duration `yaml:"hold"`
	Think    time.Duration `yaml:"think"`
	Retry    time.Duration `yaml:"retry"`
	Wait     time.Duration `yaml:"wait"`
	Duration time.Duration `yaml:"duration"`
	Extend   time.Duration `yaml:"extend"`
	Reenter  int           `yaml:"reenter"`
}

// Setting is how the cells that it means are run: all settings that mean a cell count, later ones more.
type Setting struct {
	Pattern
	Conditions
}

// Expectations are what a file of expectations says.
type Expectations struct {
	Set      []Pattern // what is run if nothing is chosen
	Settings []Setting
	Rules    []Rule
}

// BuiltIn returns the expectations that the suite comes with.
func BuiltIn() (*Expectations, error) { return ParseExpectations("expectations.yaml", builtIn) }

// ParseExpectations reads a file; its name is for the errors, which tell all mistakes with their lines.
func ParseExpectations(name string, text []byte) (*Expectations, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r := &reader{file: name, e: &Expectations{}}
	if len(root.Content) == 0 {
		r.wrong(&root, "empty")
		return nil, errors.Join(r.errs...)
	}
	r.sections(root.Content[0])
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	return r.e, nil
}

// reader reads the file node by node, so that each mistake has its place.
type reader struct {
	file string
	e    *Expectations
	errs []error
}

func (r *reader) wrong(n *yaml.Node, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d:%d: %s", r.file, n.Line, n.Column, fmt.Sprintf(format, args...)))
}

func (r *reader) sections(n *yaml.Node) {
	for key, value := range r.fields(n) {
		if value.Kind != yaml.SequenceNode {
			r.wrong(value, "%s: a list", key.Value)
			continue
		}
		for _, item := range value.Content {
			switch key.Value {
			case "set":
				r.e.Set = append(r.e.Set, r.pattern(item, nil))
			case "settings":
				r.e.Settings = append(r.e.Settings, r.setting(item))
			case "rules":
				r.e.Rules = append(r.e.Rules, r.rule(item))
			default:
				r.wrong(key, "%s: there is set, settings, rules", key.Value)
			}
		}
	}
}

// fields goes through a mapping.
func (r *reader) fields(n *yaml.Node) func(func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			r.wrong(n, "fields are wanted here, as in {locks: [lease]}")
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// pattern reads what cells are meant; other takes the fields that are not about that and tells whether it knows them.
func (r *reader) pattern(n *yaml.Node, other func(key, value *yaml.Node) bool) (p Pattern) {
	for key, value := range r.fields(n) {
		var to *[]string
		switch key.Value {
		case "locks":
			to = &p.Locks
		case "topologies":
			to = &p.Topologies
		case "faults":
			to = &p.Faults
		case "counters":
			to = &p.Counters
		case "processes":
			r.decode(value, &p.Processes)
			continue
		default:
			if other == nil || !other(key, value) {
				r.wrong(key, "%s: no such field", key.Value)
			}
			continue
		}
		r.decode(value, to)
		for i, name := range *to {
			if why := p.unknown(key.Value, name); why != "" {
				r.wrong(value.Content[i], "%s %q: %s", key.Value, name, why)
			}
		}
	}
	return p
}

func (r *reader) decode(n *yaml.Node, to any) {
	if err := n.Decode(to); err != nil {
		text := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n")
		r.wrong(n, "%s", strings.TrimSpace(text))
	}
}

func (r *reader) setting(n *yaml.Node) (s Setting) {
	conditions := map[string]any{
		"workers": &s.Workers, "keys": &s.Keys, "ttl": &s.TTL, "hold": &s.Hold, "think": &s.Think, "retry": &s.Retry,
		"wait": &s.Wait, "duration": &s.Duration, "extend": &s.Extend, "reenter": &s.Reenter,
	}
	s.Pattern = r.pattern(n, func(key, value *yaml.Node) bool {
		to, ok := conditions[key.Value]
		if ok {
			r.decode(value, to)
		}
		return ok
	})
	return s
}

func (r *reader) rule(n *yaml.Node) (u Rule) {
	var want string
	pattern := r.pattern(n, func(key, value *yaml.Node) bool {
		switch key.Value {
		case "expect":
			r.decode(value, &want)
			if i := slices.Index(wants[:], want); i > 0 {
				u.Want = Want(i)
			} else {
				r.wrong(value, "expect %q: there is %s", want, strings.Join(wants[1:], ", "))
			}
		case "causes":
			r.decode(value, &u.Causes)
			r.causes(value, u.Causes)
		case "reason":
			r.decode(value, &u.Reason)
		default:
			return false
		}
		return true
	})
	u.Pattern, u.Line = pattern, n.Line
	switch {
	case want == "":
		r.wrong(n, "a rule says what to expect: %s", strings.Join(wants[1:], ", "))
	case u.Want == MustFail && len(u.Causes) == 0:
		r.wrong(n, "what must fail has causes")
	case u.Want != MustFail && len(u.Causes) > 0:
		r.wrong(n, "only what must fail has causes")
	case u.Want != MustPass && u.Reason == "":
		r.wrong(n, "a reason is missing: what is wrong, or which assumption is broken")
	}
	return u
}

// Expect returns what is expected of a cell: what the last rule that means it says, or what the catalogues do.
func (e *Expectations) Expect(c Cell) Expectation {
	for _, r := range slices.Backward(e.Rules) {
		if r.matches(c) {
			return r.Expectation
		}
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

// Conditions returns how a cell is run.
func (e *Expectations) Conditions(c Cell) (all Conditions) {
	for _, s := range e.Settings {
		if s.matches(c) {
			all = all.with(s.Conditions)
		}
	}
	return all
}

// with lets the conditions that are given replace those that are there.
func (c Conditions) with(o Conditions) Conditions {
	replace(&c.Workers, o.Workers)
	replace(&c.Keys, o.Keys)
	replace(&c.TTL, o.TTL)
	replace(&c.Hold, o.Hold)
	replace(&c.Think, o.Think)
	replace(&c.Retry, o.Retry)
	replace(&c.Wait, o.Wait)
	replace(&c.Duration, o.Duration)
	replace(&c.Extend, o.Extend)
	replace(&c.Reenter, o.Reenter)
	return c
}

func replace[T comparable](to *T, by T) {
	var zero T
	if by != zero {
		*to = by
	}
}

// into writes the conditions into a plan.
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
