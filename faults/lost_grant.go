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
	Name:  "lost-grant",
	Redis: true,
	Doc: "the classic lost lock: a grant is acknowledged while replication is cut, the primary dies, " +
		"a replica without it is promoted",
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
	caught, cut, err := unreplicated(ctx, t, site, primary, replicas, t.LockKey(key))
	if err != nil {
		return "", nil, err
	}
	what = fmt.Sprintf("no worker was granted a lock by %s while its replicas were cut off, "+
		"then it was killed and replaced", primary.Name)
	if caught != nil {
		defer caught.Go()
		what = fmt.Sprintf("w%02d was granted a lock by %s while its replicas were cut off, "+
			"then %s was killed and replaced",
			caught.Worker, primary.Name, primary.Name)
	}
	// The proxies still hold bytes that the primary sent to the replicas. Reset drops these bytes. Otherwise the
	// replicas would get them after the primary's death.
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
	if caught != nil {
		t.untilTaken(ctx, site, caught.Key)
	}
	return what, restart(primary), nil
}

// between returns a rule for the traffic between one node and the others.
func between(one *topologies.Node, others []*topologies.Node, effect links.Effect) links.Rule {
	r := links.Rule{From: []links.Party{links.Party(one.Name)}, Effect: effect}
	for _, n := range others {
		r.To = append(r.To, links.Party(n.Name))
	}
	return r
}

// unreplicated makes the primary grant a lock without telling its replicas. It waits until the lock is free, cuts
// the replicas off, and stops the worker to which the primary then grants the lock. If a replica still has an
// earlier grant, that grant's release can no longer reach it, so unreplicated ends the cut and tries again. The
// Caught is nil if the lock makes no grant without its replicas. The returned function ends the cut.
func unreplicated(ctx context.Context, t *Target, site *topologies.Site, primary *topologies.Node,
	replicas []*topologies.Node, name string) (*Caught, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, catchTimeout)
	defer cancel()
	for {
		// wait at most a tenth of a lease for a free lock, because a visit may last much longer
		free, cancel := context.WithTimeout(ctx, t.TTL/10)
		poll(free, func() bool { return content(free, primary, name) == "" })
		cancel()
		cut, err := t.Topology.Network().Apply(between(primary, replicas, links.Drop))
		if err != nil {
			return nil, nil, err
		}
		caught, err := t.grantedOrRefused(ctx, func(page int32) (string, bool) {
			return content(ctx, primary, t.LockKey(page)), t.serves(ctx, site, primary, page)
		})
		if err != nil {
			cut()
			return nil, nil, errors.Join(err, ErrNobody)
		}
		if caught == nil {
			return nil, cut, nil
		}
		name = t.LockKey(caught.Key)
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

// refusing is the longest time to wait for a grant. After it, grantedOrRefused looks at refusals, because the lock
// may refuse all workers while its replicas are missing.
const refusing = catchTimeout / 4

// grantedOrRefused stops the next worker to which the primary grants the lock. It returns nil if two things happen:
// there was no grant for a while, and then a worker was refused although the lock is free. The lock is free if its
// key is missing, or if the key's value has changed since an earlier refusal. The function look returns the value
// of a page's key on the primary, and whether this primary serves the page.
func (t *Target) grantedOrRefused(ctx context.Context, look func(page int32) (held string, here bool)) (*Caught,
	error) {
	holders := map[int32]string{} // page -> value of its key when a worker was refused
	window := min(t.TTL, refusing)
	for point, since := Granted, time.Now(); ; {
		within, cancel := context.WithDeadline(ctx, since.Add(window))
		caught, err := t.Workers.Catch(within, point, -1)
		over := within.Err() != nil
		cancel()
		switch {
		case err == nil && point == Refused:
			held, here := look(caught.Key)
			before, refused := holders[caught.Key]
			if caught.Go(); here && (held == "" || refused && held != before) {
				return nil, nil
			}
			holders[caught.Key] = held // another worker may hold the lock, perhaps for a long time
			point, since, window = Granted, time.Now(), min(t.TTL, refusing)/10
		case err == nil:
			if _, here := look(caught.Key); here {
				return caught, nil
			}
			caught.Go() // another primary granted it
		case ctx.Err() != nil, point == Granted && !over:
			return nil, err
		case point == Granted:
			point, since = Refused, time.Now()
		default: // no worker asks for the lock, or a program is under test, which cannot be stopped there
			point, since = Granted, time.Now()
		}
	}
}

// serves tells whether this primary serves a page's lock.
func (t *Target) serves(ctx context.Context, site *topologies.Site, primary *topologies.Node, key int32) bool {
	if !site.Cluster {
		return true
	}
	owner, err := site.Primary(ctx, t.LockKey(key))
	return err == nil && owner == primary
}
