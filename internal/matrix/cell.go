// Package matrix runs locks x topologies x faults x stores, a short run each, and compares what the checkers say with
// what is expected. A right lock that fails is as red as a wrong one that passes.
package matrix

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/faults"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Cell is one place of the matrix.
type Cell struct {
	Lock      string `json:"lock"`
	Topology  string `json:"topology"`
	Fault     string `json:"fault"` // as the command line takes it; "none" = load alone
	Counter   string `json:"counter"`
	Processes int    `json:"processes"` // that the workers live in
}

// String names the cell in few words: what is as usual is left out.
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

// Seed is the cell's own: the same cell of a matrix with the same seed is run in the same way, whatever else is chosen.
func (c Cell) Seed(matrix uint64) uint64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.Join([]string{c.Lock, c.Topology, c.Fault, c.Counter, strconv.Itoa(c.Processes)}, " "))) // never fails
	return uint64(h.Sum32()) ^ matrix
}

// specs looks the cell's names up; they are known to be right.
func (c Cell) specs() (locks.Spec, topologies.Spec) {
	lock, _ := locks.Find(c.Lock)
	topology, _ := topologies.Find(c.Topology)
	return lock, topology
}

func (c Cell) scene() faults.Scene {
	lock, topology := c.specs()
	return faults.Scene{
		Topology: c.Topology, Sites: topology.Sites, Nodes: topology.Nodes, Claims: lock.Claims, Processes: c.Processes,
	}
}

// placed is long enough for a plan of faults to be read; when they come is of no interest then.
const placed = time.Minute

// step reads the cell's fault. It says why the cell cannot be had; empty if it can.
func (c Cell) step() (step faults.Step, broken bool, why string) {
	steps, mistakes := faults.Parse([]string{c.Fault}, c.scene(), placed, 0)
	if len(mistakes) > 0 {
		return step, false, mistakes[0]
	}
	if len(steps) == 0 {
		return step, false, ""
	}
	return steps[0], true, ""
}

// fits says why the cell cannot be had; empty if it can.
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
	_, _, why := c.step()
	return why
}

// assumption is what the cell's fault breaks of what a right lock relies on; empty if it must survive.
func (c Cell) assumption() string {
	step, broken, _ := c.step()
	if !broken {
		return ""
	}
	return step.Fault.Breaks(c.scene())
}

// faultName is the fault without its argument, time or point.
func faultName(item string) string {
	name, _, _ := strings.Cut(item, "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// processesFor is how many processes a fault needs at least.
func processesFor(item string) int {
	if f, ok := faults.Find(faultName(item)); ok && f.Needs.Processes || strings.Contains(item, faults.Holder) {
		return 2
	}
	return 1
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
