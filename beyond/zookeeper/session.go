package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"hammerlock/beyond/proof"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// callTimeout bounds each call, like those of the suite's Redis clients. The library's calls have no timeout.
const callTimeout = time.Second

// A session is proved by a call that the leader answers, because a server that has lost its leader still answers
// other calls. The leader learns only every half tick which sessions live. Therefore an answer proves that the
// session lived when the call before it was made.
//
// sessionShare is the life of a session after its last proof, as a multiple of the lease. shortestSession exceeds
// the servers' minimum: on a slow line, shorter sessions end before two answers arrive.
const (
	sessionShare    = 1.5
	shortestSession = time.Second
	reportEvery     = tick / 2
)

// lifeOf returns the life of a session to request for leases of length ttl.
func lifeOf(ttl time.Duration) time.Duration {
	return max(time.Duration(float64(ttl)*sessionShare), shortestSession)
}

// linger returns how much longer than a lease a session may last after its last sign of life. Sessions end at
// ticks, so a session may last two ticks longer than its life.
func linger(ttl time.Duration) time.Duration { return lifeOf(ttl) - ttl + 2*tick }

// session belongs to one worker. The nodes that a session has created end with the session.
type session struct {
	all   *endings
	conn  *zk.Conn
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	lease proof.Lease
	ttl   time.Duration // lease of the locks
	life  time.Duration // of the session, as requested
	stop  context.CancelFunc
	gone  chan struct{} // closed when the session has expired or was ended

	ready   chan struct{} // closed when the servers have made the session
	readied sync.Once
	lost    sync.Once
	fragile bool // a broken connection ends a hold

	mu   sync.Mutex
	wire net.Conn  // the current connection
	dead bool      // send nothing more
	last time.Time // call time of the last answered call
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// open makes a session and waits until the servers have it.
func open(ctx context.Context, e locks.Env, all *endings, ttl time.Duration, fragile bool) (*session, error) {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{
		all: all, dial: e.Places[0].Dialer(e.Source), lease: proof.Lease{Lane: e.Renewals}, ttl: ttl, stop: stop,
		life: lifeOf(ttl), gone: make(chan struct{}), ready: make(chan struct{}), fragile: fragile,
	}
	s.last = time.Now()
	s.since(s.last)
	var err error
	s.conn, _, err = zk.Connect(e.Places[0].Addrs(), s.life, zk.WithLogger(quiet{}), zk.WithLogInfo(false),
		zk.WithEventCallback(s.event),
		zk.WithDialer(func(network, addr string, within time.Duration) (net.Conn, error) {
			return s.connect(life, network, addr, within)
		}))
	if err != nil {
		stop()
		return nil, err
	}
	select {
	case <-s.ready:
		go s.beat(life)
		return s, nil
	case <-ctx.Done():
		s.end(true)
		return nil, fmt.Errorf("%w: %w", topologies.ErrUnreachable, context.Cause(ctx))
	}
}

// connect opens a connection, unless the session is silenced.
func (s *session) connect(ctx context.Context, network, addr string, within time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := s.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	s.wire = conn
	return conn, nil
}

// event receives the session's state changes from the library. It must not block.
func (s *session) event(e zk.Event) {
	switch {
	case e.State == zk.StateHasSession:
		s.readied.Do(func() { close(s.ready) })
	case e.State == zk.StateExpired:
		s.expire()
		s.lease.Lose()
	case e.State == zk.StateDisconnected && e.Type == zk.EventSession && s.fragile:
		s.lease.Lose()
	}
}

// expire marks the session as over.
func (s *session) expire() { s.lost.Do(func() { close(s.gone) }) }

func (s *session) over() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// endings are sessions that are ending. The last worker of a process waits for them.
type endings struct{ sync.WaitGroup }

func (e *endings) Close() error {
	e.Wait()
	return nil
}

type endingsKey struct{}

func shareEndings(e locks.Env) (*endings, error) {
	if len(e.Places) != 1 {
		return nil, fmt.Errorf("%w: ZooKeeper is one site, not %d", locks.ErrServer, len(e.Places))
	}
	return locks.Share(e.Process, endingsKey{}, func() (*endings, error) { return &endings{}, nil })
}

// end ends the session in the background, because the library waits up to a second for an answer. If polite is false,
// nothing is sent, like at the death of a process.
func (s *session) end(polite bool) {
	s.expire()
	s.lease.Finish()
	s.mu.Lock()
	if !polite {
		s.dead = true
		if s.wire != nil {
			_ = s.wire.Close()
		}
	}
	s.mu.Unlock()
	s.all.Go(func() {
		s.conn.Close()
		s.stop()
	})
}

// called runs a call of the library, which takes no context. If ctx ends first, called returns an error; the call
// itself goes on until its session ends.
func called[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		v, err := do()
		got <- answer{v, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	select {
	case a := <-got:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// beat proves the session regularly until it is over.
func (s *session) beat(ctx context.Context) {
	ticker := time.NewTicker(s.ttl / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.gone:
			return
		case <-ticker.C:
		}
		_ = s.sync(ctx)
	}
}

func (s *session) sync(ctx context.Context) error {
	call := time.Now()
	s.lease.Ask()
	_, err := called(ctx, func() (string, error) { return s.conn.Sync("/") })
	if err == nil {
		s.proved(call)
	}
	return err
}

// proved notes a call that the leader answered.
func (s *session) proved(call time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.After(s.last) {
		s.since(s.last)
		s.last = call
	}
}

// since notes that the servers count the session's life from the time proved, or from a later time.
func (s *session) since(proved time.Time) {
	ends := proved.Add(s.life - reportEvery - s.life/100 - 2*time.Millisecond)
	s.lease.Renew(ends, ends)
}

// directory is the parent of a lock's nodes.
func directory(key string) string { return "/" + url.PathEscape(key) }

var anybody = zk.WorldACL(zk.PermAll)

// create makes a node, and the lock's directory if it is missing.
func (s *session) create(ctx context.Context, key, name, data string, flags int32) (string, error) {
	make := func() (string, error) { return s.conn.Create(directory(key)+"/"+name, []byte(data), flags, anybody) }
	call := time.Now()
	path, err := called(ctx, make)
	if errors.Is(err, zk.ErrNoNode) {
		_, err = called(ctx, func() (string, error) { return s.conn.Create(directory(key), nil, 0, anybody) })
		if err == nil || errors.Is(err, zk.ErrNodeExists) {
			call = time.Now()
			path, err = called(ctx, make)
		}
	}
	if err == nil {
		s.proved(call)
	}
	return path, err
}
