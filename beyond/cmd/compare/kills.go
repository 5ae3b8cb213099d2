package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"hammerlock/beyond"
	"hammerlock/locks"
	"hammerlock/locks/catalogue"
	"hammerlock/topologies"
)

// find returns the topology and the lock of a choice. Both names must exist.
func find(c choice) (t topologies.Spec, l locks.Spec) {
	for _, s := range slices.Concat(topologies.All, beyond.Catalogue.Topologies) {
		if s.Name == c.topology {
			t = s
		}
	}
	for _, s := range slices.Concat(catalogue.All, beyond.Catalogue.Locks) {
		if s.Name == c.lock {
			l = s
		}
	}
	return t, l
}

// installed returns a text that says what is not installed for a choice; empty = nothing is missing.
func installed(ctx context.Context, c choice) string {
	t, _ := find(c)
	if err := t.Installed(ctx); err != nil {
		return err.Error()
	}
	return ""
}

// killTTL is the TTL of the locks in this measurement; patience is the timeout of one try.
const (
	killTTL  = time.Second
	patience = 300 * time.Millisecond
)

// afterKills kills the node that serves the lock several times. It returns two medians, both counted from the kill: the
// time until a free lock is granted, and the time until all nodes are healthy. If the node is the only one, it is
// restarted immediately.
func afterKills(ctx context.Context, c choice, times int) (dead, again time.Duration, err error) {
	spec, lock := find(c)
	server, err := topologies.FindServer(ctx, "")
	if err != nil {
		return 0, 0, err
	}
	top, err := spec.Up(ctx, topologies.Options{Server: server})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = top.Close() }()
	e := locks.Env{Process: &locks.Process{}, Places: top.Sites, Server: server, Rand: rand.New(rand.NewPCG(1, 1))}
	for _, s := range top.Sites {
		if s.Engine() == "" {
			client := s.Client(topologies.ClientOptions{})
			defer func() { _ = client.Close() }()
			e.Sites = append(e.Sites, client)
		}
	}
	worker, err := lock.Open(e)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = worker.Close() }()
	deads, agains := make([]time.Duration, times), make([]time.Duration, times)
	for i := range times {
		if deads[i], agains[i], err = afterKill(ctx, top, worker, i); err != nil {
			return 0, 0, err
		}
	}
	slices.Sort(deads)
	slices.Sort(agains)
	return deads[times/2], agains[times/2], nil
}

// afterKill makes one kill. The keys of its locks are used for this kill only.
func afterKill(ctx context.Context, top *topologies.Topology, worker locks.Lock, i int) (dead, again time.Duration,
	err error) {
	if _, err := granted(ctx, worker, fmt.Sprintf("before-%d", i)); err != nil {
		return 0, 0, err
	}
	key := fmt.Sprintf("after-%d", i)
	primary, err := top.Sites[0].Primary(ctx, key)
	if err != nil {
		return 0, 0, err
	}
	killed := time.Now()
	if err := primary.Kill(); err != nil {
		return 0, 0, err
	}
	if len(top.Sites[0].Nodes) == 1 && len(top.Sites) == 1 {
		if err := primary.Start(ctx); err != nil {
			return 0, 0, err
		}
	}
	at, err := granted(ctx, worker, key)
	if err != nil {
		return 0, 0, err
	}
	if primary.State() == topologies.Down {
		if err := primary.Start(ctx); err != nil {
			return 0, 0, err
		}
	}
	if err := top.AwaitHealthy(ctx); err != nil {
		return 0, 0, err
	}
	return at.Sub(killed), time.Since(killed), nil
}

// granted makes tries until the lock is granted, and releases the lock. It returns the time of the grant.
func granted(ctx context.Context, l locks.Lock, key string) (at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		try, done := context.WithTimeout(ctx, patience)
		lease, err := l.Acquire(try, key, killTTL)
		done()
		at = time.Now()
		if err == nil || lease.Token != "" {
			try, done := context.WithTimeout(ctx, patience)
			_ = l.Release(try, lease)
			done()
		}
		if err == nil {
			return at, nil
		}
	}
	return at, fmt.Errorf("no worker is granted the lock: %w", context.Cause(ctx))
}
