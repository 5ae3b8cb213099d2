package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// pages returns the pages that all clients visit, each guarded by a key of the lock: two if the lock takes
// several keys, otherwise one.
func pages(c *history.Claims) []workload.Page {
	all := []workload.Page{{Lock: "p", Views: "views"}, {Lock: "q", Views: "views of q"}}
	return all[:min(workload.Lanes(c), len(all))]
}

// client is a simulated client: one worker with its lock and its connections.
type client struct {
	number  int
	workers workload.Workers
	lock    locks.Lock
	sites   []redis.UniversalClient
	lanes   [3]*history.Lane // logs: the worker's operations, the lock's renewals, the events of its process
	more    []*history.Lane  // lanes for the second page of its visits
}

// laneSlots is the capacity of a lane, one worker's log. At one instant of virtual time far fewer
// operations are recorded.
const laneSlots = 32

// inMemoryAddr is the pretended address of servers in memory. It is no host name, because a library would look a name
// up in goroutines that run in real time.
const inMemoryAddr = "127.0.0.1:1"

// openClient makes a client in the given process. Several clients may share a process.
func (s *schedule) openClient(number int, process *locks.Process) (*client, error) {
	w, spec, o := s.w, s.spec, s.o
	c := &client{number: number}
	slots := [3]int{laneSlots, 2, 8}
	if spec.Claims.Renews {
		slots[1] = laneSlots
	}
	for i := range c.lanes {
		worker := int32(number)
		if i == len(c.lanes)-1 {
			worker = -1
		}
		c.lanes[i] = history.NewLane(w.clock, i*o.Clients+number, worker, slots[i], make(chan struct{}, 1))
		if !o.Together {
			c.lanes[i].Process = int16(number)
		}
	}
	all := pages(&spec.Claims)
	c.moreLanes(w, o, len(all)-1)
	var places []*topologies.Site
	for site, to := range s.servers {
		dial := func(context.Context, string, string) (net.Conn, error) { return w.dial(number, site, to), nil }
		places = append(places, topologies.Access{Name: fmt.Sprintf("s%d", site+1),
			Addrs: []string{inMemoryAddr}}.Site().Via(dial))
		c.sites = append(c.sites, inMemoryClient(dial))
	}
	env := locks.Env{Sites: c.sites, Places: places, Rand: rand.New(rand.NewPCG(1, uint64(number))), Process: process,
		Pause: func(context.Context, string) error {
			if !w.step(number, between, nil) {
				return locks.ErrCrashed
			}
			return nil
		}}
	if spec.Claims.Renews {
		env.Renewals = c.lanes[1]
	}
	lock, err := spec.Open(env)
	if err != nil {
		c.close()
		return nil, err
	}
	counter := &counter{views: s.views, w: w, client: number}
	called := &calledLock{Lock: lock, w: w, client: number, counter: counter}
	lock, c.lock = called, called
	if waiter, ok := called.Lock.(locks.Waiter); ok {
		lock = &waitingLock{called, waiter}
	}
	c.workers = workload.Workers{
		Shape: s.shape(number), Clock: w.clock, Lanes: append(c.lanes[:1:1], c.more...), Counter: counter,
		Locks: []locks.Lock{lock}, Pages: all, Claims: spec.Claims, Judged: true,
		// at the end of a schedule, calls must return within this time after all contexts have ended
		Patience: time.Millisecond,
	}
	return c, nil
}

func inMemoryClient(dial func(context.Context, string, string) (net.Conn, error)) *redis.Client {
	server := redis.NewClient(&redis.Options{
		Addr: inMemoryAddr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ContextTimeoutEnabled: true,
		PoolSize: 10, ReadBufferSize: 256, WriteBufferSize: 256, DialerRetries: 1, ReadTimeout: readTimeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer:                   dial,
	})
	server.AddHook(ungreeted{})
	return server
}

// moreLanes makes the lanes for the second page of visits. The numbers of these lanes follow those of all clients'
// other lanes: see history.Header.Caller.
func (c *client) moreLanes(w *world, o *Options, n int) {
	for i := range n {
		lane := history.NewLane(w.clock, (len(c.lanes)+i)*o.Clients+1+c.number, int32((1+i)*o.Clients+c.number),
			laneSlots, make(chan struct{}, 1))
		lane.Process = c.lanes[0].Process
		c.more = append(c.more, lane)
	}
}

// ungreeted is a client hook that answers HELLO as an old server does, without sending it. The clients use RESP 2,
// and sending HELLO would take 10 % of a schedule's time.
type ungreeted struct{}

func (ungreeted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "hello" {
			return next(ctx, cmd)
		}
		// redis.Nil is a server's error: after a connection's error the library would close the connection
		cmd.SetErr(redis.Nil)
		return redis.Nil
	}
}

func (ungreeted) DialHook(redis.DialHook) redis.DialHook                                  { return nil }
func (ungreeted) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook { return nil }

// crossingSeed makes the first visits of two clients take the same two pages in opposite order.
const crossingSeed = 21

// shape returns the load of a client. It uses everything that the lock claims to offer.
func (s *schedule) shape(number int) workload.Shape {
	o, claims := s.o, &s.spec.Claims
	shape := workload.Shape{
		Workers: 1, First: number, Keys: len(pages(claims)), Popularity: workload.Even, TTL: o.TTL, Hold: o.Hold,
		Wait: patience, Retry: retry,
		Visits: o.Visits, End: history.Forever, Seed: 1,
		Readers: 0.5, Upgrade: 2, Permits: max(claims.Permits, 1),
		HeedDeadline: !claims.Fences, // fencing is tested by holders that ignore their deadline
	}
	switch {
	case claims.Renews: // so that a hold is longer than its lease
		shape.Hold = max(shape.Hold, o.TTL*11/10)
	case claims.Expires:
		shape.Extend = o.TTL
	}
	if claims.Sets {
		shape.Seed = crossingSeed
	}
	return shape
}

func (c *client) close() {
	if c.lock != nil {
		_ = c.lock.Close() // the schedule has been judged already
	}
	for _, s := range c.sites {
		_ = s.Close() // the schedule has been judged already
	}
}

// calledLock wraps a client's lock: the search can cancel its calls, and its panics are recovered.
type calledLock struct {
	locks.Lock
	w       *world
	client  int
	counter *counter
	closed  bool
	heard   time.Time // time at which the last try returned
}

// call runs do, a call of the lock, with a context that the search can cancel.
func (c *calledLock) call(ctx context.Context, name string,
	do func(context.Context) (locks.Lease, error)) (l locks.Lease, err error) {
	defer c.caught(name, &err)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.w.call(c.client, cancel)
	defer c.w.call(c.client, nil)
	return do(ctx)
}

func (c *calledLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return c.call(ctx, "Acquire", func(ctx context.Context) (locks.Lease, error) {
		l, err := c.Lock.Acquire(ctx, key, ttl)
		c.counter.fence, c.counter.reads, c.heard = l.Fence, false, time.Now()
		return l, err
	})
}

func (c *calledLock) AcquireAll(ctx context.Context, keys []string, ttl, wait time.Duration) (locks.Lease, error) {
	return c.call(ctx, "AcquireAll", func(ctx context.Context) (locks.Lease, error) {
		l, err := c.Lock.(locks.Several).AcquireAll(ctx, keys, ttl, wait)
		c.counter.fence, c.heard = l.Fence, time.Now()
		return l, err
	})
}

func (c *calledLock) AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (locks.Lease,
	error) {
	c.counter.reads, c.counter.looked = true, false
	return c.call(ctx, "AcquireShare", func(ctx context.Context) (locks.Lease, error) {
		return c.Lock.(locks.Sharer).AcquireShare(ctx, key, ttl, permits)
	})
}

func (c *calledLock) Upgrade(ctx context.Context, l locks.Lease, ttl time.Duration) (locks.Lease, error) {
	return c.call(ctx, "Upgrade", func(ctx context.Context) (locks.Lease, error) {
		return c.Lock.(locks.Upgrader).Upgrade(ctx, l, ttl)
	})
}

func (c *calledLock) Extend(ctx context.Context, l locks.Lease, ttl time.Duration) (locks.Lease, error) {
	return c.call(ctx, "Extend", func(ctx context.Context) (locks.Lease, error) { return c.Lock.Extend(ctx, l, ttl) })
}

func (c *calledLock) Release(ctx context.Context, l locks.Lease) error {
	_, err := c.call(ctx, "Release", func(ctx context.Context) (locks.Lease, error) {
		return locks.Lease{}, c.Lock.Release(ctx, l)
	})
	return err
}

// Close closes the lock once. After a crash of the client, the lock is closed already.
func (c *calledLock) Close() (err error) {
	defer c.caught("Close", &err)
	if c.closed {
		return nil
	}
	c.closed = true
	return c.Lock.Close()
}

// waitingLock is a calledLock whose lock can wait. If the search cancels a Wait, the visit ends, because the lock has
// given up its place in the queue.
type waitingLock struct {
	*calledLock
	waiter locks.Waiter
}

// Handed returns a grant that the lock received while it waited; ok is false if it received no grant. The
// history cannot record a grant that is older than the refusal before the wait: its call would overlap
// the worker's last call.
func (c *waitingLock) Handed(key string) (l locks.Lease, since time.Time, ok bool) {
	if q, queues := c.waiter.(locks.Queue); queues {
		if l, since, ok = q.Handed(key); ok {
			c.counter.fence = l.Fence
			if !since.After(c.heard.Add(-time.Microsecond)) { // the lock's time may be wrong by a microsecond
				c.w.misplaced()
			}
		}
	}
	return l, since, ok
}

func (c *waitingLock) Wait(ctx context.Context, key string) (wake history.Wake, err error) {
	_, err = c.call(ctx, "Wait", func(own context.Context) (locks.Lease, error) {
		if wake, err = c.waiter.Wait(own, key); err != nil && own.Err() != nil && ctx.Err() == nil {
			err = workload.ErrCalledOff
		}
		return locks.Lease{}, err
	})
	return wake, err
}
