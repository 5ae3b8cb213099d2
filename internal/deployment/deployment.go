// Package deployment starts the parts that a run needs: the servers of a topology, the store of the page views, and
// the crew of workers. It watches them during the run, and takes them down. It does not measure or judge locks.
package deployment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/crew"
	"hammerlock/internal/program"
	"hammerlock/internal/service"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Spec tells what to start for a run.
type Spec struct {
	Topology topologies.Spec
	Options  topologies.Options
	Counter  workload.CounterSpec
	// Orders tells the workers what to do. The deployment sets the fields about sites and counter.
	Orders    crew.Orders
	Processes int // number of worker processes; 1 = the workers run in this process
	// Crew makes the workers' crew; nil = the crew runs on this machine.
	Crew crew.Maker
	// Program is a program to watch, in place of workers and a counter; nil = none.
	Program *program.Spec
	// Service is a service to visit, in place of a counter; nil = none.
	Service *service.Spec
}

// Deployment has the running parts of a run: servers, page views, and a crew. Close ends them.
type Deployment struct {
	Topology *topologies.Topology
	Crew     crew.Crew
	Pages    []workload.Page
	Program  *program.Source // the watched program, which then is the crew; nil = no program is watched

	spec  Spec
	store store
	looks looks
}

// Up starts the servers, then the page views, then the workers. The workers wait until Crew.Begin. If Up returns an
// error, it has stopped everything.
func (s Spec) Up(ctx context.Context) (*Deployment, error) {
	if s.Program != nil {
		return s.watched(ctx)
	}
	t, err := s.Topology.Up(ctx, s.Options)
	if err != nil {
		return nil, err
	}
	return s.on(ctx, t)
}

// watched starts servers for a watched program. Clients of the program connect to the servers through proxies.
func (s Spec) watched(ctx context.Context) (*Deployment, error) {
	source := program.New(*s.Program)
	s.Options.Links = s.Program.Own
	s.Options.Through = func(n *topologies.Node, client net.Conn) {
		source.Through(context.WithoutCancel(ctx), n, client) // Through returns when the proxy closes the connection
	}
	t, err := s.Topology.Up(ctx, s.Options)
	if err != nil {
		return nil, err
	}
	d := &Deployment{Topology: t, Crew: source, Program: source, spec: s}
	if err := source.Open(ctx, t); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// The method on starts all parts except for the topology, which is running. If it returns an error, it has stopped
// everything, including the topology.
func (s Spec) on(ctx context.Context, t *topologies.Topology) (_ *Deployment, err error) {
	d := &Deployment{Topology: t, spec: s, Pages: workload.Pages(t.Prefix(), s.Orders.Shape.Keys, s.Orders.Shape.Bare)}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	tell := func(string) {}
	if s.Options.Tell != nil {
		tell = s.Options.Tell
	}
	tell("the page views: counter " + s.Counter.Name)
	if err := d.openStore(ctx); err != nil {
		if s.Service == nil {
			err = fmt.Errorf("store of the counter: %w", err)
		}
		return nil, err
	}
	o := s.Orders
	o.Counter, o.Prefix, o.Foreign = d.store.access, t.Prefix(), !t.Spec.Can().Own
	o.Topology = s.Topology.Name
	for i := range d.Pages {
		d.Pages[i].Lock = o.Lock.Written(d.Pages[i].Lock)
	}
	if o.Shape.Skew > 0 {
		if o.Clock, err = t.ClientClock(ctx); err != nil {
			return nil, err
		}
	}
	for _, site := range t.Sites {
		o.Sites = append(o.Sites, site.Access())
	}
	tell(fmt.Sprintf("%d workers", o.Shape.Workers))
	switch {
	case s.Crew != nil:
		d.Crew, err = s.Crew(ctx, o, t.Spawn)
	case s.Processes > 1:
		d.Crew, err = crew.Spread(ctx, o, s.Processes, t.Spawn)
	default:
		var counter workload.Counter // nil = each process opens its own
		if d.store.spec.Place == workload.InMemory {
			counter = d.store.counter
		}
		d.Crew, err = crew.Local(ctx, o, counter)
	}
	return d, err
}

// atOnce is the number of pages whose views are read in one round trip.
const atOnce = 1000

// Views returns the page views of all pages. Call it when all workers have ended. It tries each read up to five
// times, because a failed read would waste the run. With an error, it returns the counts of the pages before the
// error.
func (d *Deployment) Views(ctx context.Context) (counts []workload.Count, err error) {
	for pages := range slices.Chunk(d.Pages, atOnce) {
		var some []workload.Count
		for range 5 {
			if some, err = d.views(ctx, pages); err == nil || ctx.Err() != nil {
				break
			}
		}
		if counts = append(counts, some...); err != nil {
			return counts, err
		}
	}
	return counts, nil
}

func (d *Deployment) views(ctx context.Context, pages []workload.Page) (counts []workload.Count, err error) {
	all, ok := d.store.counter.(workload.Lister)
	names := make([]string, len(pages))
	for i, page := range pages {
		if names[i] = page.Views; ok {
			continue
		}
		c, err := d.store.counter.Load(ctx, page.Views)
		if err != nil {
			return nil, err
		}
		counts = append(counts, c)
	}
	if ok {
		return all.LoadAll(ctx, names)
	}
	return counts, nil
}

// CounterClient returns a client of the server that stores the page views; nil if they are not on a Redis server.
func (d *Deployment) CounterClient() redis.UniversalClient { return d.store.client }

// Close stops all parts.
func (d *Deployment) Close() error {
	var errs []error
	if d.Crew != nil {
		errs = append(errs, d.Crew.Close())
	}
	errs = append(errs, d.store.close())
	if d.Topology != nil {
		errs = append(errs, d.Topology.Close())
	}
	return errors.Join(errs...)
}
