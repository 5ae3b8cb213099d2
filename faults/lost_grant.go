package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hammerlock/topologies"
	"hammerlock/topologies/links"
)

var lostGrant = Fault{
	Name:                "lost-grant",
	Redis:               true,
	Doc:                 "the classic lost lock: a grant is acknowledged while replication is cut, the primary dies, a replica without it is promoted",
	Needs:               Needs{Links: true},
	Unavailable:         needsHeirs,
	UnavailableAttached: ownServers,
	Effect:              outage,
	lasts:               untilTakenLasts,
	Inject:              loseGrant,
}

func loseGrant(ctx context.Context, t *Target) (what string, heal Heal, err error) {
	site, primary, key, err := t.primary(ctx)
	if err != nil {
		return "", nil, err
	}
	replicas, err := site.Replicas(ctx, primary)
	if err != nil {
		return "", nil, err
	}
	caught, cut, err := unreplicated(ctx, t, primary, replicas, key)
	if err != nil {
		return "", nil, err
	}
	defer caught.Go()
	// What is held back on the links must not arrive after the primary's death.
	reset, err := t.Topology.Network().Apply(between(primary, replicas, links.Reset))
	if err == nil {
		err = primary.Kill()
	}
	if err == nil {
		cut()
		err = act(ctx, func(ctx context.Context) error {
			_, err := site.Failover(ctx, primary)
			return err
		})
		reset()
	}
	if err != nil {
		return "", restart(primary), err
	}
	t.untilTaken(ctx, site, key)
	what = fmt.Sprintf("w%02d was granted a lock by %s while its replicas were cut off, then %s was killed and replaced",
		caught.Worker, primary.Name, primary.Name)
	return what, restart(primary), nil
}

// between is a rule for the links of one node with others.
func between(one *topologies.Node, others []*topologies.Node, effect links.Effect) links.Rule {
	r := links.Rule{From: []links.Party{links.Party(one.Name)}, Effect: effect}
	for _, n := range others {
		r.To = append(r.To, links.Party(n.Name))
	}
	return r
}

// unreplicated cuts the replicas off while the lock is free there, and catches a worker whose grant they do not
// know. If they know a grant from before the cut they would keep it, as its release does not reach them: then it is
// tried again.
func unreplicated(ctx context.Context, t *Target, primary *topologies.Node, replicas []*topologies.Node, key int32) (
	*Caught, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, catchTimeout)
	defer cancel()
	name := t.LockKey(key)
	for {
		cut, err := t.Topology.Network().Apply(between(primary, replicas, links.Drop))
		if err != nil {
			return nil, nil, err
		}
		caught, err := t.Workers.Catch(ctx, Granted, key)
		if err != nil {
			cut()
			return nil, nil, errors.Join(err, ErrNobody)
		}
		known := content(ctx, primary, name) == ""
		for _, n := range replicas {
			known = known || content(ctx, n, name) != ""
		}
		if !known {
			return caught, cut, nil
		}
		caught.Go()
		cut()
		sleep(ctx, time.Duration(1+t.Rand.IntN(10))*time.Millisecond)
	}
}
