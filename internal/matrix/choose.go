package matrix

import (
	"cmp"
	"maps"
	"slices"

	"hammerlock/faults"
	"hammerlock/locks/known"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// choice is the cells to run, and why the others are left out.
type choice struct {
	Cells   []Cell
	LeftOut []LeftOut
}

// LeftOut counts the cells that are not run for one reason.
type LeftOut struct {
	Cells int    `json:"cells"`
	Why   string `json:"why"`
}

// Choose lists the cells that match a pattern and are possible on the server, each once, in the order of the
// catalogues. A pattern without counters means redis.
func Choose(patterns []Pattern, server topologies.Server) choice {
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
	choice := choice{Cells: slices.SortedFunc(maps.Keys(in), byCatalogue())}
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

// leftOut says why a cell was not chosen.
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

// cells yields what matches a pattern; where a fault needs it, with more processes than the pattern says.
func (p *Pattern) cells() func(func(Cell) bool) {
	counters := p.Counters
	if len(counters) == 0 {
		counters = []string{workload.RedisCounter.Name}
	}
	asked := *p
	asked.Processes, asked.Counters = 0, counters
	return func(yield func(Cell) bool) {
		for _, lock := range known.Locks {
			for _, topology := range topologies.All {
				if !p.isAt(lock, topology.Name) {
					continue
				}
				for _, fault := range p.items(lock) {
					c := Cell{Lock: lock.Name, Topology: topology.Name, Fault: fault, Processes: max(p.Processes, 1)}.enoughProcesses()
					for _, c.Counter = range workload.CounterNames() {
						if asked.matches(c) && !yield(c) {
							return
						}
					}
				}
			}
		}
	}
}

// byCatalogue compares cells by their places in the catalogues.
func byCatalogue() func(a, b Cell) int {
	lock, topology, fault := places(known.Names()), places(topologies.Names()), places(faults.Names())
	return func(a, b Cell) int {
		return cmp.Or(lock[a.Lock]-lock[b.Lock], topology[a.Topology]-topology[b.Topology],
			fault[faultName(a.Fault)]-fault[faultName(b.Fault)],
			cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.Counter, b.Counter), a.Processes-b.Processes)
	}
}

// places numbers names from 1, so that one that is not there comes first.
func places(names []string) map[string]int {
	at := make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i + 1
	}
	return at
}
