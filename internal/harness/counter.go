package harness

import (
	"slices"
	"strings"

	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/workload"
)

func (c *check) counter(all []Combination) {
	p, spec := c.plan, c.plan.Counter
	if p.Processes > 1 && spec.Place == workload.InMemory {
		c.mistake("counter", "%s is the memory of one process, there are --processes %d: use %s", spec.Name,
			p.Processes,
			strings.Join(c.countersBut(func(s workload.CounterSpec) bool {
				return s.Place == spec.Place || s.Fenced != spec.Fenced || s.Broken != ""
			}), ", "))
	}
	said := map[string]bool{}
	for _, combo := range all {
		lock := combo.Lock
		if spec.Fits(lock, 1) == "" || said[lock.Name] {
			continue
		}
		said[lock.Name] = true
		if lock.Counting != locks.TwoSteps {
			c.mistake("counter",
				"%s asks every store for a fencing token, --lock %s is no lock and has none: use --counter %s",
				spec.Name, lock.Name, strings.Join(c.countersBut(func(s workload.CounterSpec) bool { return s.Fenced }),
					", "))
			continue
		}
		c.mistake("counter", "%s asks every store for a fencing token, --lock %s draws none: use --lock %s", spec.Name,
			lock.Name, strings.Join(c.fencingLocks(), ", "))
	}
}

func (c *check) countersBut(not func(workload.CounterSpec) bool) []string {
	return human.Names(slices.DeleteFunc(slices.Clone(c.plan.Known.Counters), not),
		func(s workload.CounterSpec) string { return s.Name })
}

// fencingLocks returns the names of all locks with fencing tokens, including those that are broken on purpose.
func (c *check) fencingLocks() []string {
	fencing := slices.DeleteFunc(slices.Clone(c.plan.Known.Locks), func(s locks.Spec) bool { return !s.Claims.Fences })
	return human.Names(fencing, func(s locks.Spec) string { return s.Name })
}
