package deployment

import (
	"net"
	"slices"
	"testing"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// TestAFormerPrimarySaysWhoseReplicaItIs: when a primary becomes a replica, its record refers to the promotion of its
// new primary. So a judge knows for how long both may have acted as primary. The record is also made for a server
// that has not noticed the new primary by the end.
func TestAFormerPrimarySaysWhoseReplicaItIs(t *testing.T) {
	top := testbed.Up(t, "replica", topologies.Options{})
	w := &Watch{note: func(history.ID, string) {}, programs: func() []string { return nil }}
	var lanes []*history.Lane
	clock, wake := history.NewOrderedClock(0), make(chan struct{}, 1)
	for i, n := range top.Nodes {
		lanes = append(lanes, history.NewLane(clock, i, -1, 64, wake))
		w.nodes = append(w.nodes, &watched{watch: w, d: &Deployment{Topology: top}, node: n, number: i, lane: lanes[i]})
	}
	look := func(nodes ...*watched) {
		for _, n := range nodes {
			info, err := n.node.Info(t.Context(), "replication")
			if err != nil {
				t.Fatal(err)
			}
			n.before = clock.Now()
			n.take(info)
		}
	}
	look(w.nodes...)
	next, err := top.Sites[0].Failover(t.Context(), top.Nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	promotion := w.nodes[slices.Index(top.Nodes, next)]
	look(promotion)
	w.Close()
	live.Wait(t, "that the former primary is a replica", func() bool {
		info, err := top.Nodes[0].Info(t.Context(), "replication")
		return top.Sites[0].Repair(t.Context()) == nil && err == nil && info["role"] == "slave"
	})
	look(promotion, w.nodes[0])
	w.Close()
	host, port, _ := net.SplitHostPort(next.Addr())
	testbed.Command(t, next, "REPLICAOF", host, port) // as sentinels do that know the server by two names
	look(promotion)
	var promoted, own *history.Op
	var demoted []history.ID
	history.NewMerge(clock, lanes).Flush(func(op *history.Op) {
		found := *op
		switch {
		case op.Kind == history.Role && top.Nodes[op.Value] == next && promoted != nil:
			own = &found
		case op.Kind == history.Role && top.Nodes[op.Value] == next:
			promoted = &found
		case op.Kind == history.Role && op.Value == 0:
			demoted = append(demoted, op.Seen)
		}
	})
	if promoted == nil || promoted.Seen != 0 || !slices.Equal(demoted, []history.ID{promoted.ID, promoted.ID}) {
		t.Errorf("promotion %+v, the former primary's roles follow %v", promoted, demoted)
	}
	if own == nil || own.Seen != 0 {
		t.Errorf("a replica of itself follows %+v", own)
	}
}
