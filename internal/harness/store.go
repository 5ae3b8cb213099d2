package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/crew"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// counterFile is the name of a counter's file in the run's directory.
const counterFile = "counter.sqlite"

// store is what the page views of a run are kept in.
type store struct {
	spec    workload.CounterSpec
	counter workload.Counter // as the suite itself reads it
	orders  crew.Counter     // how workers get to it

	own    *topologies.Topology // nil if it has no servers of its own
	client redis.UniversalClient
	dir    string // to be removed; empty if it has none of its own
}

// openStore opens the counter before the workers do, who find it made.
func (s *stage) openStore(ctx context.Context, o topologies.Options) (err error) {
	st := &s.store
	st.spec, _ = workload.FindCounter(s.job.Plan.Counter)
	st.orders.Name = st.spec.Name
	var env workload.CounterEnv
	switch st.spec.Place {
	case workload.OwnServer:
		single, _ := topologies.Find("single")
		if st.own, err = single.Up(ctx, o); err != nil {
			return err
		}
		st.reach(st.own.Sites[0])
	case workload.OnTopology:
		st.reach(s.topology.Sites[0])
	case workload.InFile:
		dir := s.topology.Dir()
		if dir == "" {
			if dir, err = os.MkdirTemp("", "hammerlock-"); err != nil {
				return err
			}
			st.dir = dir
		}
		st.orders.File = filepath.Join(dir, counterFile)
	}
	env.Client, env.File = st.client, st.orders.File
	st.counter, err = st.spec.Open(env)
	return err
}

func (s *store) reach(site *topologies.Site) {
	access := site.Access()
	s.client, s.orders.Access = site.Client(topologies.ClientOptions{}), &access
}

// inMemory is the counter if the workers of this process must use the very same.
func (s *store) inMemory() workload.Counter {
	if s.spec.Place == workload.InMemory {
		return s.counter
	}
	return nil
}

func (s *store) close() error {
	var errs []error
	if s.counter != nil {
		errs = append(errs, s.counter.Close())
	}
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	if s.own != nil {
		errs = append(errs, s.own.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// counter finds out whether the counter goes with the processes and the locks.
func (c *check) counter(all []Combination) {
	p := c.plan
	if !oneOf(c, "counter", p.Counter, CounterNames()) {
		return
	}
	spec, _ := workload.FindCounter(p.Counter)
	if p.Processes > 1 && spec.Place == workload.InMemory {
		c.mistake("--counter %s is the memory of one process, there are --processes %d: use %s", spec.Name, p.Processes,
			strings.Join(countersBut(func(s workload.CounterSpec) bool {
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
			c.mistake("--counter %s asks every store for a fencing token, --lock %s is no lock and has none: use --counter %s",
				spec.Name, lock.Name, strings.Join(countersBut(func(s workload.CounterSpec) bool { return s.Fenced }), ", "))
			continue
		}
		c.mistake("--counter %s asks every store for a fencing token, --lock %s draws none: use --lock %s", spec.Name,
			lock.Name, strings.Join(fencingLocks(), ", "))
	}
}

func countersBut(not func(workload.CounterSpec) bool) []string {
	var list []string
	for _, s := range workload.AllCounters {
		if !not(s) {
			list = append(list, s.Name)
		}
	}
	return list
}

// fencingLocks names the locks that draw fencing tokens, the wrong ones too.
func fencingLocks() []string {
	var list []string
	for _, s := range locks.All {
		if s.Claims.Fences {
			list = append(list, s.Name)
		}
	}
	return list
}
