package etcd

import (
	"context"
	"errors"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"hammerlock/locks"
)

var elected = onEtcd(locks.Spec{
	Name: "etcd-election",
	Doc: "client/v3 concurrency.Election: Campaign is the grant, Resign the release, and the session's end the loss; " +
		"the session is that of etcd-mutex, and so is what its leader heeds",
	Source:  mutex.Source,
	Assumes: mutex.Assumes,
	Open: func(e locks.Env) (locks.Lock, error) {
		return open(e, mutexLock{strict: true, heeds: true, elects: true})
	},
})

// stand waits until the worker is elected or ctx ends. If once is true and there is a leader, it returns
// concurrency.ErrLocked without waiting. When ctx ends, the library resigns, and does not report whether the
// resignation succeeded.
func stand(ctx context.Context, s *session, key string, once bool) (*grant, error) {
	e := concurrency.NewElection(s.Session, strings.TrimSuffix(directory(key), "/"))
	g := &grant{session: s}
	if once {
		switch _, err := e.Leader(ctx); {
		case err == nil:
			return g, concurrency.ErrLocked
		case !errors.Is(err, concurrency.ErrElectionNoLeader):
			return g, err
		}
	}
	if err := e.Campaign(ctx, "candidate"); err != nil {
		return g, err
	}
	g.key, g.owner = e.Key(), clientv3.Compare(clientv3.CreateRevision(e.Key()), "=", e.Rev())
	return g, nil
}
