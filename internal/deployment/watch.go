package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/results"
	"hammerlock/topologies"
)

// The time between two looks at a server, normally and if servers are broken on purpose. watchTimeout is the longest
// time that an answer may take.
const (
	watchEvery   = 200 * time.Millisecond
	watchClosely = 50 * time.Millisecond
	watchTimeout = 350 * time.Millisecond
)

// Watch observes the servers of a run. It records that a server changed its role, ended, was replaced by another
// process, did not answer, or lost keys, if no injected fault explains that.
type Watch struct {
	nodes    []*watched
	note     func(history.ID, string)
	programs func() []string
	closely  bool
	mu       sync.Mutex
	texts    []string
	roles    []results.RoleChange
	Silent   time.Duration // longest time after which a silent server answered again; read it after Close
	// Lost is the number of keys that servers have lost. Each of them may have been a lock's. Read it after Close.
	Lost int64
}

// Patience returns the longest time that a server may take to answer. Such a delay has no effect on a lease that is
// much longer.
func Patience(lease time.Duration) time.Duration {
	return min(max(lease/4, 250*time.Millisecond), time.Second)
}

// watched is an observed server. Only one goroutine observes it.
type watched struct {
	watch    *Watch
	d        *Deployment
	node     *topologies.Node
	number   int
	lane     *history.Lane
	heart    *crew.Heartbeat
	patience time.Duration // longest time that an answer may take

	well    time.Duration // last time at which it was known to be well, or affected by a fault
	before  time.Duration // the previous value of well
	asked   time.Duration // time (Heartbeat.Ran) of the first question without an answer
	role    string        // last known role
	since   time.Duration // time at which a change of its role was seen; 0 = no change
	runID   string        // run ID of a process that replaced the process which the suite had started
	trouble string        // description of its incident; empty if it is well
	sees    bool          // it knows that a primary is down
	losses  losses

	promotion atomic.Uint64 // ID of the operation that records its promotion; other goroutines read it
}

// WatchOptions tell how servers are observed.
type WatchOptions struct {
	Lane  func() *history.Lane // makes a lane; each server gets one
	Note  func(history.ID, string)
	Heart *crew.Heartbeat // heartbeat of this process
	TTL   time.Duration   // length of a lease; a silence that is much shorter has no effect
	// Closely makes the times of role changes exact through more frequent questions. It also asks sentinels and
	// cluster nodes whether they know that a primary is down.
	Closely bool
}

// Watch prepares the observation of all servers. The counter's server has the number after the topology's last.
func (d *Deployment) Watch(o WatchOptions) *Watch {
	w := &Watch{note: o.Note, programs: d.ended, closely: o.Closely && d.spec.Topology.Can().Own}
	for i, n := range d.servers() {
		w.nodes = append(w.nodes, &watched{watch: w, d: d, node: n, number: i, lane: o.Lane(), heart: o.Heart,
			patience: Patience(o.TTL)})
	}
	return w
}

// servers returns the nodes of the topology, and of the counter if it has any.
func (d *Deployment) servers() []*topologies.Node {
	all := d.Topology.Nodes
	if d.store.own != nil {
		all = slices.Concat(all, d.store.own.Nodes)
	}
	return all
}

func (w *Watch) Run(ctx context.Context, done <-chan struct{}) {
	var all sync.WaitGroup
	for _, n := range w.nodes {
		all.Go(func() { n.run(ctx, done) })
	}
	all.Wait()
}

// displacedBy returns the server that has replaced a primary, if that primary does not know it yet; otherwise nil. Such
// a primary continues to serve, and its grants will be lost. In a cluster, which has several primaries, displacedBy
// always returns nil.
func (n *watched) displacedBy() *watched {
	for _, site := range n.d.Topology.Sites {
		for _, m := range n.watch.nodes {
			if !site.Cluster && n.role == primaryRole && m.role == primaryRole && m.since > n.since &&
				slices.Contains(site.Nodes, n.node) &&
				slices.Contains(site.Nodes, m.node) {
				return m
			}
		}
	}
	return nil
}

// The roles, in the words of servers.
const primaryRole, replicaRole = "master", "slave"

// Unplanned events of servers.
const (
	ended    = "ended unexpectedly "
	silent   = "did not answer"
	replaced = "restarted without a planned fault, or is another server"
)

// Close records the events that have not ended. Call it after Run, when nothing reads the lanes. It returns
// descriptions of all unplanned events.
func (w *Watch) Close() []string {
	for _, n := range w.nodes {
		n.evicted(0)
		if n.trouble != "" {
			op := n.lane.Call(history.Incident, -1)
			op.Call, op.Value = n.well, int64(n.number) // it never returns
			w.note(op.ID, n.says())
			w.tell(0, "%s at %.3f s", n.says(), n.well.Seconds())
		} else if by := n.displacedBy(); by != nil && n.node.State() == topologies.Up {
			n.note(n.node.Name+" still took itself for a primary", history.ID(by.promotion.Load()))
		}
	}
	return append(w.texts, w.programs()...)
}

func (w *Watch) tell(lasted time.Duration, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts, w.Silent = append(w.texts, fmt.Sprintf(format, args...)), max(w.Silent, lasted)
}

func (n *watched) run(ctx context.Context, done <-chan struct{}) {
	every := watchEvery
	if n.watch.closely {
		every = watchClosely
	}
	next := time.Tick(every)
	for {
		n.look(ctx)
		select {
		case <-done:
			n.look(ctx)
			return
		case <-next:
		}
	}
}

// look asks the server for its state, unless a fault affects it.
func (n *watched) look(ctx context.Context) {
	begun, ran := n.lane.Clock().Now(), n.heart.Ran()
	before := n.node.Life()
	switch {
	case before.Ended != "":
		n.ails(ended + "(" + before.Ended + ")")
		return
	case before.State != topologies.Up:
		n.recover(begun)
		return
	}
	n.asked = cmp.Or(n.asked, ran)
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	sections := []string{"server", "replication"}
	if !n.d.Topology.Spec.Can().Own {
		sections = append(sections, "stats", "commandstats")
	}
	info, err := n.node.Info(ctx, sections...)
	// A refused connection shows that a process has ended. The suite, which waits for the process, learns of this
	// slightly later.
	for errors.Is(err, syscall.ECONNREFUSED) && n.node.Life() == before && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	if now := n.node.Life(); now.Ended != "" {
		n.ails(ended + "(" + now.Ended + ")")
		return
	} else if now != before {
		n.recover(begun)
		return
	}
	var reply redis.Error
	answered := err == nil || errors.As(err, &reply)
	if n.heart.Ran()-n.asked >= n.patience {
		n.ails(silent)
	}
	if !answered {
		return
	}
	if id := info["run_id"]; err == nil && id != "" && id != before.RunID && id != n.runID {
		n.ails(replaced)
		n.runID = id
	}
	if err == nil || !n.d.Topology.Spec.Can().Own { // the canary shows losses even if INFO is refused
		n.lost(ctx, info, before.Emptied)
	}
	n.recover(begun)
	if err == nil {
		n.take(info)
		n.notice(ctx)
	}
}

// notice records that a server has learned that a primary is down.
func (n *watched) notice(ctx context.Context) {
	if !n.watch.closely || n.number >= len(n.d.Topology.Nodes) {
		return
	}
	sees, err := n.node.SeesDown(ctx)
	if err == nil && sees && !n.sees {
		n.watch.change(results.RoleChange{Node: n.node.Name, Became: results.NoticedDown, After: int64(n.before),
			By:   int64(n.lane.Clock().Now()),
			Text: n.node.Name + " knows that a primary is down"})
	}
	n.sees = err == nil && sees
}

func (w *Watch) change(c results.RoleChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roles = append(w.roles, c)
}

// Roles returns the role changes so far, in the order in which they were seen.
func (w *Watch) Roles() []results.RoleChange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(slices.Values(w.roles), func(a, b results.RoleChange) int {
		return cmp.Compare(a.By, b.By)
	})
}

// ails begins an incident. If the server has ended, that replaces the description of an earlier trouble.
func (n *watched) ails(what string) {
	if n.trouble == "" || strings.HasPrefix(what, ended) {
		n.trouble = what
	}
}

// recover records that the server was well at the given time. This ends its incident.
func (n *watched) recover(at time.Duration) {
	if n.trouble != "" {
		n.watch.note(n.lane.Next(), n.says())
		to := n.lane.Mark(&history.Op{Kind: history.Incident, Key: -1, Worker: -1, Call: n.well, Value: int64(n.number),
			Outcome: history.OK})
		lasted := to - n.well
		if n.trouble != silent {
			lasted = 0
		}
		n.watch.tell(lasted, "%s from %.3f s to %.3f s", n.says(), n.well.Seconds(), to.Seconds())
		n.trouble = ""
	}
	n.before, n.well, n.asked = n.well, at, 0
}

// says describes the incident.
func (n *watched) says() string {
	if n.number >= len(n.d.Topology.Nodes) {
		return n.node.Name + " of the counter " + n.trouble
	}
	return n.node.Name + " " + n.trouble
}

// take records a changed role. A sentinel has none.
func (n *watched) take(info map[string]string) {
	role := info["role"]
	if role == "" || role == n.role {
		return
	}
	before := n.role
	if n.role = role; before == "" {
		return
	}
	what, became, follows := n.node.Name+" became primary", results.BecamePrimary, history.ID(0)
	if role == replicaRole {
		became = results.BecameReplica
		what = n.node.Name + " became a replica"
		primary, nodes := net.JoinHostPort(info["master_host"], info["master_port"]), n.d.Topology.Nodes
		if i := slices.IndexFunc(nodes, func(n *topologies.Node) bool { return n.Addr() == primary }); i >= 0 {
			what += " of " + nodes[i].Name
			if m := n.watch.nodes[i]; m != n { // a sentinel may know a server by two names, and make it its own replica
				follows = history.ID(m.promotion.Load())
			}
		}
	} else {
		n.promotion.Store(uint64(n.lane.Next()))
	}
	n.since = n.note(what, follows)
	if n.number < len(n.d.Topology.Nodes) {
		n.watch.change(results.RoleChange{Node: n.node.Name, Became: became, After: int64(n.before), By: int64(n.since),
			Text: what})
	}
}

// note records a role change. It returns the time at which the change was seen.
func (n *watched) note(what string, follows history.ID) (seen time.Duration) {
	n.watch.note(n.lane.Next(), what)
	return n.lane.Mark(&history.Op{Kind: history.Role, Key: -1, Worker: -1, Call: n.before, Value: int64(n.number),
		Seen: follows, Outcome: history.OK})
}
