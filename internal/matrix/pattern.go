package matrix

import (
	"path"
	"slices"
	"strings"
	"time"

	"hammerlock/faults"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Pattern says which cells are meant. An empty list means all; a name may have wildcards; "!name" takes out.
type Pattern struct {
	Locks      []string `yaml:"locks"`      // and: right, broken
	Topologies []string `yaml:"topologies"` //
	Faults     []string `yaml:"faults"`     // with or without what follows the name, and: survived, fatal, caught
	Counters   []string `yaml:"counters"`
	Processes  int      `yaml:"processes"` // 0 = any
}

// The words for what the catalogues say.
const (
	right    = "right"    // locks that are right within their assumptions
	wrong    = "broken"   // locks that are not
	survived = "survived" // faults that break no assumption of a right lock
	fatal    = "fatal"    // faults that do
	caught   = "caught"   // faults that a broken lock is known to be caught with
)

// matches tells whether the cell is meant.
func (p *Pattern) matches(c Cell) bool {
	lock, _ := c.specs()
	return (p.Processes == 0 || p.Processes == c.Processes) &&
		among(p.Locks, func(name string, _ bool) bool { return isLock(name, lock) }) &&
		among(p.Topologies, func(name string, _ bool) bool { return glob(name, c.Topology) }) &&
		among(p.Counters, func(name string, _ bool) bool { return glob(name, c.Counter) }) &&
		among(p.Faults, func(name string, out bool) bool { return isFault(name, out, c) })
}

// among tells whether a list means something: a name that takes out beats one that puts in. A fault that is taken out
// is the one without argument and point.
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

// glob matches with wildcards; a slash is a letter as any other.
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

// items lists the faults that a pattern can mean for a lock: what it names, and what is in the catalogues.
func (p *Pattern) items(lock locks.Spec) []string {
	list := append([]string{faults.None}, faults.Names()...)
	for _, s := range lock.Caught {
		list = append(list, s.Fault)
	}
	for _, name := range p.Faults {
		if strings.ContainsAny(name, "@:") && !strings.HasPrefix(name, "!") && !strings.ContainsAny(name, "*?[") {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// isWhen tells whether something can follow a fault's @.
func isWhen(at string) bool {
	_, err := time.ParseDuration(at)
	return err == nil || slices.Contains(faults.Points, at)
}

// unknown says what is wrong with the pattern's names; empty if nothing is.
func (p *Pattern) unknown(list, name string) string {
	bare := strings.TrimPrefix(name, "!")
	var good, words []string
	switch list {
	case "locks":
		good, words = locks.Names(), []string{right, wrong}
	case "topologies":
		good = topologies.Names()
	case "counters":
		good = workload.CounterNames()
	default:
		good, words = append([]string{faults.None}, faults.Names()...), []string{survived, fatal, caught}
		if before, at, timed := strings.Cut(bare, "@"); timed && !strings.ContainsAny(bare, "*?[") && !isWhen(at) {
			return "after @ comes a time or " + strings.Join(faults.Points, ", ") + ", not " + at
		} else if timed {
			bare = before
		}
		bare = faultName(bare)
	}
	if slices.Contains(words, bare) || slices.ContainsFunc(good, func(g string) bool { return glob(bare, g) }) {
		return ""
	}
	if len(words) > 0 {
		return "there is " + strings.Join(good, ", ") + ", and the words " + strings.Join(words, ", ")
	}
	return "there is " + strings.Join(good, ", ")
}
