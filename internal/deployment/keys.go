package deployment

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/topologies"
)

// The time between two searches for keys, the number of pages whose keys are searched, and the timeout of a search.
const (
	lookEvery   = 100 * time.Millisecond
	lookPages   = 4
	lookTimeout = 50 * time.Millisecond
)

// WatchKeys repeatedly records which keys of locks exist on the servers, until done is closed. It shows, for example,
// that a refused try has left a key behind. It connects to the servers directly, without proxies.
func (d *Deployment) WatchKeys(ctx context.Context, done <-chan struct{}, lane *history.Lane) {
	d.looks = looks{}
	next := time.Tick(lookEvery)
	for {
		select {
		case <-done:
			return
		case <-next:
		}
		for i, n := range d.Topology.Nodes {
			d.sight(ctx, lane, i, n)
		}
	}
}

// sight records the keys of locks on one node. It skips nodes that are down or are not Redis.
func (d *Deployment) sight(ctx context.Context, lane *history.Lane, number int, n *topologies.Node) {
	if !d.Topology.Spec.Can().Ask() || n.Role == topologies.Sentinel || n.State() != topologies.Up {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if d.spec.Orders.Lock.Claims.Sets && replica(ctx, n) {
		return // the key of a refused try may not be deleted yet
	}
	for key, page := range d.Pages[:min(lookPages, len(d.Pages))] {
		there, err := see(ctx, lane, history.Sight, key, page.Lock, number, n)
		if err != nil {
			return
		}
		d.looks.found = d.looks.found || there
	}
	if d.looks.made++; !d.looks.found && d.Topology.Settings["attached"] == "" {
		d.looks.found = named(ctx, n, d.Pages[0].Lock)
	}
	if to := n.Database(); to > 0 && d.looks.elsewhere == "" {
		info, _ := n.Info(ctx, "keyspace")
		for name := range info {
			if other, is := strings.CutPrefix(name, "db"); is && other != strconv.Itoa(to) {
				d.looks.elsewhere = fmt.Sprintf("%s had keys in database %s, and clients are sent to database %d",
					n.Name, other, to)
			}
		}
	}
}

// The function named tells whether one of the first keys of a node, about a thousand, contains the name of a lock.
// Libraries may add a prefix or a suffix to the name.
func named(ctx context.Context, n *topologies.Node, lock string) bool {
	pattern := "*" + strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(lock) + "*"
	found, err := n.Do(ctx, "SCAN", 0, "MATCH", pattern, "COUNT", 1000).Slice()
	if err != nil || len(found) < 2 {
		return false
	}
	keys, _ := found[1].([]any)
	return len(keys) > 0
}

// The type looks sums up the searches for keys.
type looks struct {
	made  int64
	found bool // a key of the lock was found, of any type
	// elsewhere describes a server with keys in a database that clients should not use; empty = no such server was
	// found.
	elsewhere string
}

// Elsewhere describes a server with keys in a database that clients should not use. It is empty if there is no such
// server.
func (d *Deployment) Elsewhere() string { return d.looks.elsewhere }

// Unseen returns the number of searches for keys of the lock, if none of them found one. If one was found, it returns
// 0.
func (d *Deployment) Unseen() int64 {
	if d.looks.found {
		return 0
	}
	return d.looks.made
}

// Leftovers records the state after all workers have ended: the page views, and the keys of locks on each primary.
// Keys that cannot be read are left out, and cause an error.
func (d *Deployment) Leftovers(ctx context.Context, lane *history.Lane) error {
	counts, err := d.Views(ctx)
	if err != nil {
		err = fmt.Errorf("read the counter at the end: %w", err)
	}
	for key, c := range counts {
		lane.Mark(&history.Op{
			Kind: history.Final, Key: int32(key), Call: lane.Clock().Now(), Value: c.Views, Seen: c.Writer,
			Outcome: history.OK,
		})
	}
	for i, n := range d.Topology.Nodes {
		failed := d.leftovers(ctx, lane, i, n)
		if failed != nil && d.Topology.AwaitHealthy(ctx) == nil { // a failover may be in progress
			failed = d.leftovers(ctx, lane, i, n)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("look for keys on %s: %w", n.Name, failed))
		}
	}
	return err
}

func replica(ctx context.Context, n *topologies.Node) bool {
	info, err := n.Info(ctx, "replication")
	return err == nil && info["role"] == "slave"
}

// leftovers records the keys of locks that exist on a primary. It skips other nodes.
func (d *Deployment) leftovers(ctx context.Context, lane *history.Lane, number int, n *topologies.Node) error {
	if !d.Topology.Spec.Can().Ask() || n.Role == topologies.Sentinel || n.State() != topologies.Up {
		return nil
	}
	if replica(ctx, n) {
		return nil
	}
	for first := 0; first < len(d.Pages); first += atOnce {
		pages := d.Pages[first:min(first+atOnce, len(d.Pages))]
		names := make([]string, len(pages))
		for i, page := range pages {
			names[i] = page.Lock
		}
		for i, answer := range n.DoEach(ctx, "TYPE", names) {
			if text, err := answer.Text(); err == nil && text == "none" || elsewhere(err) {
				continue
			}
			if _, err := see(ctx, lane, history.Found, first+i, names[i], number, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// The function see reads the lock of one page on one node, and records it if it has a token. It returns true if the
// node has a key of that name, whatever its type.
func see(ctx context.Context, lane *history.Lane, kind history.Kind, key int, lock string, number int,
	n *topologies.Node) (there bool, err error) {
	call := lane.Clock().Now()
	token, until, err := holding(lock, lane.Clock(), func(args ...any) *redis.Cmd { return n.Do(ctx, args...) })
	if err == nil && token != 0 {
		lane.Mark(&history.Op{
			Kind: kind, Key: int32(key), Call: call, Value: int64(number), Token: token, Until: until,
			Outcome: history.OK,
		})
	}
	return token != 0 || until == history.Forever, err
}

// goneKey and lastingKey are special replies to PTTL. The key does not exist, or it has no expiry.
const goneKey, lastingKey = -2, -1

// The function elsewhere tells whether an error means that the key belongs to another node of the cluster.
func elsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}

// holding reads the key of a lock. It returns a hash of the token, and the time at which the key expires. Both are 0
// if the key does not exist. If the key has no readable token, they are 0 and history.Forever.
func holding(name string, clock *history.Clock, do func(args ...any) *redis.Cmd) (uint64, time.Duration, error) {
	text, err := do("TYPE", name).Text()
	if elsewhere(err) {
		return 0, 0, nil
	}
	var token string
	switch {
	case err != nil:
		return 0, 0, err
	case text == "string":
		token, err = do("GET", name).Text()
	case text == "hash":
		var fields []string
		fields, err = do("HKEYS", name).StringSlice()
		token = strings.Join(fields, " ")
	case text != "none":
		return 0, history.Forever, nil
	default:
		return 0, 0, nil
	}
	if err != nil || token == "" {
		return 0, 0, nil // the key has just expired
	}
	switch left, err := do("PTTL", name).Int64(); {
	case err != nil, left == goneKey:
		return 0, 0, err
	case left == lastingKey:
		return history.Hash(token), history.Forever, nil
	default:
		return history.Hash(token), clock.Now() + time.Duration(left)*time.Millisecond, nil
	}
}
