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

// The time between two questions to a server: normally, and if faults break servers. watchTimeout limits the time of
// an answer.
const (
	watchEvery   = 200 * time.Millisecond
	watchClosely = 50 * time.Millisecond
	watchTimeout = 350 * time.Millisecond
)

// Watch observes the servers of a run. It records events that no injected fault explains: a server changed its role,
// ended, was replaced, did not answer, or lost keys.
type Watch struct {
	nodes    []*watched
	note     func(history.ID, string)
	programs func() []string
	closely  bool
	mu       sync.Mutex
	texts    []string
	roles    []results.RoleChange
	Silent   time.Duration // longest time until a silent server answered again; valid after Close
	// Lost is the number of keys that servers have lost. Any of them may have been a lock. It is valid after Close.
	Lost int64
}

// Patience returns the longest time that a server may take to answer without counting as silent. A delay that is much
// shorter than the lease does no harm.
func Patience(lease time.Duration) time.Duration {
	return min(max(lease/4, 250*time.Millisecond), time.Second)
}

// watched is a server that is observed, by a single goroutine.
type watched struct {
	watch    *Watch
	d        *Deployment
	node     *topologies.Node
	number   int
	lane     *history.Lane
	heart    *crew.Heartbeat
	patience time.Duration // longest time that an answer may take without an incident

	well    time.Duration // last time at which the server was well, or affected by an injected fault
	before  time.Duration // the value of well before the current one
	asked   time.Duration // when the first question without an answer was sent, on the clock of Heartbeat.Ran; 0 = none
	role    string        // role at the last answer
	since   time.Duration // time at which its last role change was seen; 0 = none
	runID   string        // run ID of a process that has replaced the one known to the suite
	trouble string        // description of the incident in progress; empty = the server is well
	sees    bool          // the server knows that a primary is down
	losses  losses

	promotion atomic.Uint64 // ID of the operation that records its promotion; other goroutines read it
}

// WatchOptions tells how to observe servers.
type WatchOptions struct {
	Lane  func() *history.Lane // makes a lane, a log of operations; each server gets one
	Note  func(history.ID, string)
	Heart *crew.Heartbeat // heartbeat of this process
	TTL   time.Duration   // length of leases; see Patience
	// Closely asks more often, so that the times of role changes are more exact. It also asks sentinels and cluster
	// nodes whether they have noticed that a primary is down.
	Closely bool
}

// Watch prepares to observe all servers. Servers that store only page views have the numbers after those of the
// topology.
func (d *Deployment) Watch(o WatchOptions) *Watch {
	w := &Watch{note: o.Note, programs: d.ended, closely: o.Closely && d.spec.Topology.Can().Own}
	for i, n := range d.servers() {
		w.nodes = append(w.nodes, &watched{watch: w, d: d, node: n, number: i, lane: o.Lane(), heart: o.Heart,
			patience: Patience(o.TTL)})
	}
	return w
}

// servers returns the nodes of the topology, followed by those that store only page views.
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

// displacedBy returns the server that has replaced the primary n, if n does not know that yet; otherwise nil. Such a
// primary still grants locks, but the grants will be lost. In a cluster, displacedBy always returns nil.
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

// The names of roles in replies of servers.
const primaryRole, replicaRole = "master", "slave"

// Incidents, as descriptions.
const (
	ended    = "ended unexpectedly "
	silent   = "did not answer"
	replaced = "restarted without a planned fault, or is another server"
)

// Close records incidents that have not ended, and returns descriptions of all incidents. Call it when Run has
// returned and the lanes are no longer read.
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

// look asks the server for its state, unless a fault affects the server.
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
	// A refused connection shows that the process has ended. The suite itself learns of the end slightly later, so
	// wait until it does.
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
	if err == nil || !n.d.Topology.Spec.Can().Own { // the canary shows losses even if the server refuses INFO
		n.lost(ctx, info, before.Emptied)
	}
	n.recover(begun)
	if err == nil {
		n.take(info)
		n.notice(ctx)
	}
}

// notice asks whether the server has noticed that a primary is down, and records it when it does.
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

// Roles returns the role changes so far, in the order in which the suite saw them.
func (w *Watch) Roles() []results.RoleChange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(slices.Values(w.roles), func(a, b results.RoleChange) int {
		return cmp.Compare(a.By, b.By)
	})
}

// The method ails begins an incident with the given description. If an incident is in progress, its description
// stays, unless the server has ended.
func (n *watched) ails(what string) {
	if n.trouble == "" || strings.HasPrefix(what, ended) {
		n.trouble = what
	}
}

// recover records that the server was well at the given time. An incident in progress ends.
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

// The method says returns the description of the incident with the name of the server.
func (n *watched) says() string {
	if n.number >= len(n.d.Topology.Nodes) {
		return n.node.Name + " of the counter " + n.trouble
	}
	return n.node.Name + " " + n.trouble
}

// take records a role change if the server reports a new role. Sentinels report no role.
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
			if m := n.watch.nodes[i]; m != n { // sentinels may make a server with two names its own replica
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

// note records a role change with the given description. It returns the time at which the suite saw the change.
func (n *watched) note(what string, follows history.ID) (seen time.Duration) {
	n.watch.note(n.lane.Next(), what)
	return n.lane.Mark(&history.Op{Kind: history.Role, Key: -1, Worker: -1, Call: n.before, Value: int64(n.number),
		Seen: follows, Outcome: history.OK})
}
