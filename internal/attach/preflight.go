package attach

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Load describes the requests that the servers will get.
type Load struct {
	Locks   []locks.Spec
	Counter workload.CounterSpec
	Extends bool // visits extend their leases
	Verify  bool // keys of locks are looked up in the servers
}

// trialTTL is the lease of a trial. It is short, because the release may be refused.
const trialTTL = 2 * time.Second

// tries is the number of times that a lock is tried until it works or a server refuses a command. A single try is
// not enough, because on a busy machine a quorum may fail.
const tries = 4

// Preflight tries the load's requests on an attached deployment. It uses pages of its own under the run's prefix.
// The lines say what was found, and what will and will not be measured. It returns an error if a server refuses a
// request that the load needs.
func Preflight(ctx context.Context, t *topologies.Topology, l Load) (lines []string, err error) {
	p := preflight{topology: t, load: l}
	for _, s := range t.Sites {
		p.clients = append(p.clients, s.Client(topologies.ClientOptions{}))
	}
	defer func() {
		for _, c := range p.clients {
			err = errors.Join(err, c.Close())
		}
	}()
	var errs []error
	for _, lock := range l.Locks {
		if err := p.lock(ctx, lock); err != nil {
			errs = append(errs, fmt.Errorf("lock %s: %w", lock.Name, err))
		}
	}
	if l.Counter.Place == workload.OnTopology {
		errs = append(errs, p.counter(ctx))
	}
	if l.Verify {
		errs = append(errs, p.look(ctx))
	}
	return p.lines(), errors.Join(errs...)
}

type preflight struct {
	topology *topologies.Topology
	load     Load
	clients  []redis.UniversalClient
}

// page returns a page that is used by no visit and no other lock. The argument becomes a part of its name.
func (p *preflight) page(of string) workload.Page {
	return workload.Pages(p.topology.Prefix()+"preflight:"+of, 1, false)[0]
}

// lock tries a lock several times, each time on another page, until a try succeeds or a server refuses a command.
// It returns the error of the last try.
func (p *preflight) lock(ctx context.Context, spec locks.Spec) (err error) {
	for i := range tries {
		err = p.try(ctx, spec, p.page(fmt.Sprintf("%s-%d", spec.Name, i)).Lock)
		if _, answered := errors.AsType[redis.Error](err); err == nil || answered {
			break // the next answer would be the same
		}
	}
	return err
}

// try acquires a lock, subscribes as its waiters do, extends it and releases it. It does not check that the lock is
// correct.
func (p *preflight) try(ctx context.Context, spec locks.Spec, key string) (err error) {
	if spec.Sites == locks.NoSite {
		return nil
	}
	l, err := spec.Open(locks.Env{
		Sites: p.clients, Places: p.topology.Sites, Server: p.topology.Options.Server, Process: &locks.Process{},
		Within: p.topology.Prefix(), Rand: rand.New(rand.NewPCG(1, 1)),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	lease, err := l.Acquire(ctx, key, trialTTL)
	if err != nil {
		return refused("acquire", err)
	}
	if spec.Listens {
		if err := p.subscribe(ctx); err != nil {
			return refused("wait", err)
		}
	}
	if p.load.Extends || spec.Claims.Renews {
		if lease, err = l.Extend(ctx, lease, trialTTL); err != nil && !errors.Is(err, locks.ErrLost) &&
			!errors.Is(err, errors.ErrUnsupported) {
			return refused("extend", err)
		}
	}
	if err := l.Release(ctx, lease); err != nil && !errors.Is(err, locks.ErrLost) {
		return refused("release", err)
	}
	return nil
}

// subscribe subscribes to a channel as waiters do. A waiter would not notice a refusal, because client
// libraries hide it.
func (p *preflight) subscribe(ctx context.Context) error {
	heard := p.clients[0].Subscribe(ctx, p.page("").Lock)
	_, err := heard.Receive(ctx)
	return errors.Join(err, heard.Close())
}

// Refused adds an explanation to a server's refusal. It returns any other error unchanged.
func Refused(err error) error {
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"):
		return fmt.Errorf("%w; the rules of the user (ACL) refuse it, see docs/ATTACH.md for what is needed", err)
	case redis.HasErrorPrefix(err, "unknown command"):
		return fmt.Errorf("%w; the servers have no such command, or have it under another name", err)
	case redis.HasErrorPrefix(err, "READONLY"):
		return fmt.Errorf("%w; --addr leads to a replica", err)
	}
	return err
}

func refused(what string, err error) error { return Refused(fmt.Errorf("%s: %w", what, err)) }

func (p *preflight) counter(ctx context.Context) error {
	c, err := p.load.Counter.Open(workload.CounterEnv{Client: p.clients[0]})
	if err != nil {
		return err
	}
	page := p.page(p.load.Counter.Name).Views
	_, failed := c.Load(ctx, page)
	if err := errors.Join(failed, c.Store(ctx, page, workload.Count{Views: 1, Writer: 1, Fence: 1}),
		c.Close()); err != nil {
		return refused("counter "+p.load.Counter.Name, err)
	}
	return nil
}

// look tries the commands with which the command "verify" looks up keys of locks.
func (p *preflight) look(ctx context.Context) error {
	for _, n := range p.topology.Nodes {
		if n.Role != topologies.Primary {
			continue
		}
		for _, command := range []string{"TYPE", "GET", "HKEYS", "PTTL"} {
			err := n.Do(ctx, command, p.page("").Views+":none").Err()
			if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "MOVED") {
				return refused("look for keys of locks on "+n.Name, err)
			}
		}
	}
	return nil
}

// lines returns a description of the deployment, and what will and will not be measured.
func (p *preflight) lines() []string {
	t := p.topology
	nodes := human.Names(t.Nodes, func(n *topologies.Node) string {
		return fmt.Sprintf("%s %s %s", n.Name, n.Addr(), n.Role)
	})
	lines := []string{
		fmt.Sprintf("%s, %s of %s: %s", t.Settings["server"], t.Spec.Name, human.Quantity(len(t.Nodes), "node"),
			strings.Join(nodes, ", ")),
		"keys live under " + t.Spec.Can().Prefix + "... and are removed at the end",
	}
	if len(t.Evicting) > 0 {
		lines = append(lines, "warning: "+strings.Join(t.Evicting, ", ")+
			" may evict keys of locks to make room, which no lock survives: set maxmemory-policy noeviction")
	}
	measured := []string{"latency", "fairness", "lost page views", "round trips"}
	missing := []string{"commands and CPU time of the servers (others may use them, too)"}
	hidden := t.Hidden()
	if why, ok := hidden["INFO"]; ok {
		missing = append(missing, "roles, restarts and replication lag (INFO: "+why+")")
	} else {
		measured = append(measured, "roles and restarts of the servers", "replication lag")
	}
	for _, what := range slices.Sorted(maps.Keys(hidden)) {
		if what == "CONFIG GET" {
			missing = append(missing, "settings of the servers ("+what+": "+hidden[what]+")")
		} else if what != "INFO" && what != "HELLO" {
			missing = append(missing, what+" ("+hidden[what]+")")
		}
	}
	if t.Spec.Sites == 1 && t.Spec.Nodes == 1 {
		measured = slices.DeleteFunc(measured, func(m string) bool { return m == "replication lag" })
	}
	return append(lines, "measured: "+strings.Join(measured, ", "), "not measured: "+strings.Join(missing, "; "))
}
