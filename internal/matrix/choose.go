package matrix

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"hammerlock/faults"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Choice is the cells that are to be run and a word on those that are not.
type Choice struct {
	Cells   []Cell
	LeftOut []LeftOut
}

// LeftOut counts cells that are not run, for a reason.
type LeftOut struct {
	Cells int    `json:"cells"`
	Why   string `json:"why"`
}

// Choose lists the cells that the patterns mean and that can be had on the server, each once, in the order of the
// catalogues. What the patterns leave open is everything, but for the counter: that is redis.
func Choose(patterns []Pattern, server topologies.Server) Choice {
	in, impossible := map[Cell]bool{}, map[string]int{}
	for _, p := range patterns {
		for c := range p.cells() {
			if lock, _ := c.specs(); lock.Runs(server) != nil && !in[c] {
				impossible[lock.Runs(server).Error()]++
			}
			if c.fits(server) == "" {
				in[c] = true
			}
		}
	}
	choice := Choice{Cells: slices.SortedFunc(maps.Keys(in), byCatalogue)}
	out := map[string]int{}
	everything := Pattern{Counters: []string{"*"}}
	for c := range everything.cells() {
		if !in[c] && c.fits(server) == "" {
			out[leftOut(c)]++
		}
	}
	maps.Copy(out, impossible)
	for _, why := range slices.Sorted(maps.Keys(out)) {
		choice.LeftOut = append(choice.LeftOut, LeftOut{out[why], why})
	}
	return choice
}

// leftOut says which kind of cell was not chosen.
func leftOut(c Cell) string {
	lock, _ := c.specs()
	switch {
	case c.Counter != workload.RedisCounter.Name:
		return "with the counter elsewhere: --counter " + c.Counter
	case lock.Broken != "" && len(symptoms(lock, c.Fault)) == 0:
		return "a broken lock where nothing shows what is wrong with it"
	case lock.Broken != "":
		return "a broken lock caught in the same way on another topology"
	case c.assumption() != "":
		return "a right lock with a fault that breaks what it assumes"
	default:
		return "a right lock with no fault, or one that it survives"
	}
}

// cells goes through what a pattern means.
func (p *Pattern) cells() func(func(Cell) bool) {
	counters := p.Counters
	if len(counters) == 0 {
		counters = []string{workload.RedisCounter.Name}
	}
	asked := *p
	asked.Processes, asked.Counters = 0, counters
	return func(yield func(Cell) bool) {
		for _, lock := range locks.All {
			for _, topology := range topologies.All {
				for _, fault := range p.items(lock) {
					for _, counter := range workload.CounterNames() {
						c := Cell{Lock: lock.Name, Topology: topology.Name, Fault: fault, Counter: counter,
							Processes: max(p.Processes, processesFor(fault), 1)}
						if asked.matches(c) && !yield(c) {
							return
						}
					}
				}
			}
		}
	}
}

// byCatalogue orders cells as the catalogues are.
func byCatalogue(a, b Cell) int {
	place := func(c Cell) (lock, topology, fault int) {
		lock = slices.IndexFunc(locks.All, func(s locks.Spec) bool { return s.Name == c.Lock })
		topology = slices.IndexFunc(topologies.All, func(s topologies.Spec) bool { return s.Name == c.Topology })
		fault = slices.IndexFunc(faults.All, func(f faults.Fault) bool { return f.Name == faultName(c.Fault) })
		return
	}
	al, at, af := place(a)
	bl, bt, bf := place(b)
	return cmp.Or(al-bl, at-bt, af-bf, cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.Counter, b.Counter), a.Processes-b.Processes)
}

// Select is the pattern of a command line: names that are not there are answered with the good ones.
func Select(p Pattern) (mistakes []string) {
	for flag, list := range map[string][]string{"locks": p.Locks, "topologies": p.Topologies, "faults": p.Faults, "counters": p.Counters} {
		for _, name := range list {
			if why := p.unknown(flag, name); why != "" {
				mistakes = append(mistakes, fmt.Sprintf("--%s %q: %s", singular[flag], name, why))
			}
		}
	}
	slices.Sort(mistakes)
	return mistakes
}

var singular = map[string]string{"locks": "lock", "topologies": "topology", "faults": "fault", "counters": "counter"}
