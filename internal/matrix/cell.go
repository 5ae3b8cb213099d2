// Package matrix runs locks x topologies x faults x stores, a short run each, and compares what the checkers say with
// what is expected. A broken lock that passes is an error of the suite, as much as a right one that fails.
package matrix

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/faults"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Cell is one combination of the matrix.
type Cell struct {
	Lock      string `json:"lock"`
	Topology  string `json:"topology"`
	Fault     string `json:"fault"` // as the command line takes it; "none" = load alone
	Counter   string `json:"counter"`
	Processes int    `json:"processes"` // that the workers live in
}

// String names the cell; what has its default is left out.
func (c Cell) String() string {
	s := c.Lock + " on " + c.Topology
	if c.Fault != faults.None {
		s += " with " + c.Fault
	}
	if c.Counter != workload.RedisCounter.Name {
		s += ", counter " + c.Counter
	}
	if c.Processes > 1 {
		s += ", " + strconv.Itoa(c.Processes) + " processes"
	}
	return s
}

// seed derives the cell's own seed from the matrix's: neither the choice of other cells changes it, nor where the workers live.
func (c Cell) seed(matrix uint64) uint64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.Join([]string{c.Lock, c.Topology, c.Fault, c.Counter}, " "))) // never fails
	return uint64(h.Sum32()) ^ matrix
}

// specs looks the cell's names up; they are known to exist.
func (c Cell) specs() (locks.Spec, topologies.Spec) {
	lock, _ := known.Find(c.Lock)
	topology, _ := topologies.Find(c.Topology)
	return lock, topology
}

func (c Cell) scene() faults.Scene {
	lock, topology := c.specs()
	return faults.Scene{
		Topology: c.Topology, Sites: topology.Sites, Nodes: topology.Nodes, Claims: lock.Claims,
		Outlives: lock.Outlives, Processes: c.Processes,
	}
}

// anyDuration is long enough for every time that a fault may name.
const anyDuration = time.Minute

// fault parses the cell's fault: nil if the cell has none, or if it is impossible there, and why.
func (c Cell) fault() (f *faults.Fault, why string) {
	steps, mistakes := faults.Parse([]string{c.Fault}, c.scene(), anyDuration, 0)
	switch {
	case len(mistakes) > 0:
		return nil, mistakes[0]
	case len(steps) == 0:
		return nil, ""
	}
	return &steps[0].Fault, ""
}

// enoughProcesses gives the cell a second process if its fault is possible only with one.
func (c Cell) enoughProcesses() Cell {
	if _, why := c.fault(); why != "" {
		two := c
		two.Processes = max(c.Processes, 2)
		if _, why = two.fault(); why == "" {
			return two
		}
	}
	return c
}

// fits says why the cell is impossible; empty if it is not.
func (c Cell) fits(server topologies.Server) string {
	lock, topology := c.specs()
	if !lock.Sites.Fits(topology.Sites) {
		return "the lock lives on one site"
	}
	if err := lock.Runs(server); err != nil {
		return err.Error()
	}
	counter, _ := workload.FindCounter(c.Counter)
	if why := counter.Fits(lock, c.Processes); why != "" {
		return why
	}
	_, why := c.fault()
	return why
}

// assumption is the one of a right lock that the cell's fault breaks; empty if such a lock must survive it.
func (c Cell) assumption() string {
	f, _ := c.fault()
	if f == nil {
		return ""
	}
	return f.Breaks(c.scene())
}

// faultName is the fault without its argument, time or point.
func faultName(item string) string {
	name, _, _ := strings.Cut(item, "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// symptoms are the causes that a broken lock shows with a fault.
func symptoms(lock locks.Spec, fault string) (causes []string) {
	for _, s := range lock.Caught {
		if s.Fault == fault && !slices.Contains(causes, s.Cause) {
			causes = append(causes, s.Cause)
		}
	}
	return causes
}
