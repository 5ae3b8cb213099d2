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

// The time between two searches for keys, the number of pages that are searched, and the timeout of a search.
const (
	lookEvery   = 100 * time.Millisecond
	lookPages   = 4
	lookTimeout = 50 * time.Millisecond
)

// WatchKeys records, until done is closed, the lock keys that exist on the servers. A try that was refused must not
// leave such a key. WatchKeys bypasses all proxies.
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

// sight records the lock keys on a node. It skips nodes that cannot be asked or are not Redis.
func (d *Deployment) sight(ctx context.Context, lane *history.Lane, number int, n *topologies.Node) {
	if !d.Topology.Spec.Can().Ask() || n.Role == topologies.Sentinel || n.State() != topologies.Up {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if d.spec.Orders.Lock.Claims.Sets && replica(ctx, n) {
		return // a refused try may not have deleted its key yet
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

// named tells whether the first keys of a node (about a thousand) include one that contains the name of a lock.
// Libraries add prefixes and suffixes to names.
func named(ctx context.Context, n *topologies.Node, lock string) bool {
	pattern := "*" + strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(lock) + "*"
	found, err := n.Do(ctx, "SCAN", 0, "MATCH", pattern, "COUNT", 1000).Slice()
	if err != nil || len(found) < 2 {
		return false
	}
	keys, _ := found[1].([]any)
	return len(keys) > 0
}

// looks has the results of these searches.
type looks struct {
	made  int64
	found bool // a key of the lock was found, of any type
	// elsewhere names a server with keys in a database that clients do not use; empty = there is none.
	elsewhere string
}

// Elsewhere names a server with keys in a database that clients do not use; empty if there is none.
func (d *Deployment) Elsewhere() string { return d.looks.elsewhere }

// Unseen returns the number of searches if none of them found a key of the lock; otherwise 0.
func (d *Deployment) Unseen() int64 {
	if d.looks.found {
		return 0
	}
	return d.looks.made
}

// Leftovers records what exists after all workers have ended: the page views, and the lock keys on every primary. It
// leaves out keys that cannot be read, and returns an error for them.
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
		if failed != nil && d.Topology.AwaitHealthy(ctx) == nil { // an unplanned failover may be in progress
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

// leftovers records the lock keys that a primary still has.
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

// see records the lock of a page if a node has its key. It returns whether the node has any key of that name.
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

// goneKey and lastingKey are the replies to PTTL for a key that does not exist, and for a key without an expiry.
const goneKey, lastingKey = -2, -1

// elsewhere tells whether an error means that another node of the cluster has the key.
func elsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}

// holding reads a lock's key. It returns the hash of the token and the time at which the key expires. Both are 0 if
// the key does not exist. For a key without a readable token, it returns 0 and history.Forever.
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
		return 0, 0, nil // it has just expired
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
