// Package etcd tests locks on etcd: it has the topologies, faults, and right and wrong locks. The locks are those of
// the client library, used carefully. The traffic of the library proves how long a session lasts.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hammerlock/beyond/proof"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// callTimeout bounds each call, like those of the suite's Redis clients. The library's default is no timeout.
const callTimeout = time.Second

// client is shared by the workers of a process, as in an application: one connection to each server, and one stream for
// all renewals.
type client struct {
	*clientv3.Client

	mu     sync.Mutex
	leases map[int64]*proof.Lease
}

// clientKey identifies a client within a process.
type clientKey struct{ site *topologies.Site }

func openClient(e locks.Env) (*client, error) {
	if len(e.Places) != 1 {
		return nil, fmt.Errorf("%w: etcd is one site, not %d", locks.ErrServer, len(e.Places))
	}
	return locks.Share(e.Process, clientKey{e.Places[0]}, func() (*client, error) {
		c := &client{leases: map[int64]*proof.Lease{}}
		dial := e.Places[0].Dialer(e.Source)
		var err error
		c.Client, err = clientv3.New(clientv3.Config{
			Endpoints: e.Places[0].Addrs(), Logger: zap.NewNop(),
			DialOptions: []grpc.DialOption{
				grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
					return dial(ctx, "tcp", addr)
				}),
				grpc.WithChainStreamInterceptor(c.observe),
			},
		})
		return c, err
	})
}

// observe watches the renewals of sessions: the library does not report requests and answers.
func (c *client) observe(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, d, cc, method, o...)
	if err != nil || !strings.HasSuffix(method, "/LeaseKeepAlive") {
		return s, err
	}
	return &observed{ClientStream: s, client: c, asked: map[int64][]time.Time{}}, nil
}

// observed is a stream of renewals. Answers arrive in the order of the requests.
type observed struct {
	grpc.ClientStream
	client *client

	mu    sync.Mutex
	asked map[int64][]time.Time // by lease: times of unanswered requests
}

func (o *observed) SendMsg(m any) error {
	if q, ok := m.(*pb.LeaseKeepAliveRequest); ok {
		o.mu.Lock()
		o.asked[q.ID] = append(o.asked[q.ID], time.Now())
		o.mu.Unlock()
		if l := o.client.lease(q.ID); l != nil {
			l.Ask()
		}
	}
	return o.ClientStream.SendMsg(m)
}

func (o *observed) RecvMsg(m any) error {
	err := o.ClientStream.RecvMsg(m)
	answer, ok := m.(*pb.LeaseKeepAliveResponse)
	if err != nil || !ok {
		return err
	}
	o.mu.Lock()
	var call time.Time
	if all := o.asked[answer.ID]; len(all) > 0 {
		call, o.asked[answer.ID] = all[0], all[1:]
	}
	o.mu.Unlock()
	if l := o.client.lease(answer.ID); l != nil && answer.TTL > 0 && !call.IsZero() {
		renewed(l, call, time.Duration(answer.TTL)*time.Second)
	}
	return nil
}

func (c *client) lease(id int64) *proof.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leases[id]
}

// watch begins to observe the renewals of a lease; l = nil ends the observation.
func (c *client) watch(id int64, l *proof.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leases[id] = l; l == nil {
		delete(c.leases, id)
	}
}

// harmless are the errors after which a call had no effect.
var harmless = []error{
	rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaseNotFound, rpctypes.ErrTooManyRequests,
	rpctypes.ErrNoSpace, rpctypes.ErrStopped,
}

// outcome converts an error of the library to one from which locks.Classify knows the outcome.
func outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, concurrency.ErrLocked):
		return locks.ErrBusy
	}
	for _, h := range harmless {
		if errors.Is(err, h) {
			return fmt.Errorf("%w: %w", locks.ErrRefused, err)
		}
	}
	if status.Code(err) == codes.DeadlineExceeded {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}
