package matrix

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"hammerlock/faults"
	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Pattern selects cells. An empty list selects all; a name may have wildcards; "!name" excludes.
type Pattern struct {
	Locks      []string // and: right, broken
	Topologies []string
	Faults     []string // with or without what follows the name, and: survived, fatal, caught
	Counters   []string
	Processes  int // so many, or more; 0 = any
}

// The words that select by what the catalogues say.
const (
	right    = "right"    // locks that are right within their assumptions
	wrong    = "broken"   // locks that are not
	survived = "survived" // faults that break no assumption of a right lock
	fatal    = "fatal"    // faults that do
	caught   = "caught"   // faults that a broken lock is known to be caught with
)

func (p *Pattern) matches(c Cell) bool {
	lock, _ := c.specs()
	return c.Processes >= p.Processes && p.isAt(lock, c.Topology) &&
		among(p.Counters, func(name string, _ bool) bool { return glob(name, c.Counter) }) &&
		among(p.Faults, func(name string, out bool) bool { return isFault(name, out, c) })
}

// isAt tells whether the pattern selects any cell of a lock on a topology.
func (p *Pattern) isAt(lock locks.Spec, topology string) bool {
	return among(p.Locks, func(name string, _ bool) bool { return isLock(name, lock) }) &&
		among(p.Topologies, func(name string, _ bool) bool { return glob(name, topology) })
}

// among tells whether a list selects something: an excluding name beats the others. An excluded fault is the one
// without argument and point.
func among(list []string, is func(name string, out bool) bool) bool {
	in, asked := false, false
	for _, name := range list {
		if out, ok := strings.CutPrefix(name, "!"); ok {
			if is(out, true) {
				return false
			}
			continue
		}
		asked = true
		in = in || is(name, false)
	}
	return in || !asked
}

const wildcards = "*?["

// glob matches with wildcards; a slash is an ordinary character.
func glob(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", ";"), strings.ReplaceAll(name, "/", ";"))
	return ok && err == nil
}

func isLock(name string, lock locks.Spec) bool {
	switch name {
	case right:
		return lock.Broken == ""
	case wrong:
		return lock.Broken != ""
	default:
		return glob(name, lock.Name)
	}
}

func isFault(name string, out bool, c Cell) bool {
	switch name {
	case survived:
		return c.Fault != faults.None && c.assumption() == ""
	case fatal:
		return c.assumption() != ""
	case caught:
		lock, _ := c.specs()
		return len(symptoms(lock, c.Fault)) > 0
	default:
		return glob(name, c.Fault) || !out && glob(name, faultName(c.Fault))
	}
}

// items lists the faults that a pattern can select for a lock: those that it names, and those of the catalogues.
func (p *Pattern) items(lock locks.Spec) []string {
	list := append([]string{faults.None}, faults.Names()...)
	for _, s := range lock.Caught {
		list = append(list, s.Fault)
	}
	for _, name := range p.Faults {
		if strings.ContainsAny(name, "@:") && !strings.HasPrefix(name, "!") && !strings.ContainsAny(name, wildcards) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Mistakes names what is wrong in the pattern of a command line: names that do not exist, with those that do.
func (p *Pattern) Mistakes() (list []string) {
	faultNames := append([]string{faults.None}, faults.Names()...)
	for _, l := range []struct {
		what               string
		given, good, words []string
	}{
		{"counter", p.Counters, workload.CounterNames(), nil},
		{"fault", p.Faults, faultNames, []string{survived, fatal, caught}},
		{"lock", p.Locks, known.Names(), []string{right, wrong}},
		{"topology", p.Topologies, topologies.Names(), nil},
	} {
		for _, name := range l.given {
			bare, why := strings.TrimPrefix(name, "!"), ""
			if l.what == "fault" {
				bare, why = cutFault(bare)
			}
			known := slices.Contains(l.words, bare) || slices.ContainsFunc(l.good, func(g string) bool { return glob(bare, g) })
			if why == "" && !known {
				why = "there is " + strings.Join(l.good, ", ")
				if l.words != nil {
					why += ", and the words " + strings.Join(l.words, ", ")
				}
				why += human.Meant(bare, slices.Concat(l.good, l.words))
			}
			if why != "" {
				list = append(list, fmt.Sprintf("--%s %q: %s", l.what, name, why))
			}
		}
	}
	return list
}

// cutFault returns a fault's name without its argument, time or point, and why what follows the @ is neither time nor point.
func cutFault(item string) (name, why string) {
	_, at, timed := strings.Cut(item, "@")
	if _, err := time.ParseDuration(at); timed && !strings.ContainsAny(item, wildcards) && err != nil && !slices.Contains(faults.Points, at) {
		why = "after @ comes a time or " + strings.Join(faults.Points, ", ") + ", not " + at
	}
	return faultName(item), why
}
