package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/results"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Servers round times to milliseconds and read their clock once a command.
const serverRound = 2 * time.Millisecond

// scene is where the faults of a combination would happen.
func (p *Plan) scene(c Combination) faults.Scene {
	return faults.Scene{
		Topology: c.Topology.Name, Sites: c.Topology.Sites, Nodes: c.Topology.Nodes, Claims: c.Lock.Claims,
		Processes: p.Processes,
	}
}

// header is what a judge must know of the run.
func (s *stage) header(run *results.Run, slack time.Duration) history.Header {
	w := &s.job.Plan.Workload
	h := history.Header{
		Name: run.Name, Started: run.Started, Command: run.Command, Topology: run.Topology, Lock: run.Lock,
		Workers: w.Workers, Processes: s.job.Plan.Processes, Keys: w.Keys, Retry: w.Retry, Wait: w.Wait,
		Claims: s.combo.Lock.Claims, Bounds: history.Bounds{Slack: slack, Round: serverRound},
	}
	h.Sites = s.combo.Topology.Sites
	if h.Fenced = s.store.spec.Fenced; s.store.spec.Place == workload.OnTopology {
		h.Counter = history.CounterOnTopology
	}
	for _, step := range s.combo.Steps {
		h.Faults = append(h.Faults, step.Planned())
	}
	return h
}

// aftermath records what is left when all workers have gone: the page views, and keys of locks on every primary.
func (s *stage) aftermath(ctx context.Context, lane *history.Lane) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	for key, page := range s.pages {
		c, err := s.store.counter.Load(ctx, page.Views)
		if err != nil {
			return fmt.Errorf("read the counter at the end: %w", err)
		}
		lane.Mark(&history.Op{
			Kind: history.Final, Key: int32(key), Call: lane.Clock().Now(), Value: c.Views, Seen: c.Writer, Outcome: history.OK,
		})
	}
	for i, n := range s.topology.Nodes {
		if err := s.leftovers(ctx, lane, i, n); err != nil {
			return fmt.Errorf("look for keys on %s: %w", n.Name, err)
		}
	}
	return nil
}

// leftovers records the locks that a primary still has.
func (s *stage) leftovers(ctx context.Context, lane *history.Lane, number int, n *topologies.Node) error {
	if n.Role == topologies.Sentinel || n.State() != topologies.Up {
		return nil
	}
	if info, err := n.Info(ctx, "replication"); err == nil && info["role"] == "slave" {
		return nil
	}
	for key, page := range s.pages {
		if err := see(ctx, lane, history.Found, key, page.Lock, number, n); err != nil {
			return err
		}
	}
	return nil
}

// sight records the locks that a node has during the run. A node that cannot be asked is not.
func (s *stage) sight(ctx context.Context, lane *history.Lane, number int, n *topologies.Node) {
	if n.Role == topologies.Sentinel || n.State() != topologies.Up {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for key, page := range s.pages[:min(lookPages, len(s.pages))] {
		if see(ctx, lane, history.Sight, key, page.Lock, number, n) != nil {
			return
		}
	}
}

// see records the lock of a page if a node has it.
func see(ctx context.Context, lane *history.Lane, kind history.Kind, key int, lock string, number int, n *topologies.Node) error {
	call := lane.Clock().Now()
	token, until, err := holding(ctx, n, lock, lane.Clock())
	if err == nil && token != 0 {
		lane.Mark(&history.Op{
			Kind: kind, Key: int32(key), Call: call, Value: int64(number), Token: token, Until: until, Outcome: history.OK,
		})
	}
	return err
}

// holding reads a lock's key: the hash of its token, 0 if there is none, and when the server lets go of it by itself.
func holding(ctx context.Context, n *topologies.Node, name string, clock *history.Clock) (uint64, time.Duration, error) {
	text, err := n.Do(ctx, "TYPE", name).Text()
	if err != nil && strings.HasPrefix(err.Error(), "MOVED") {
		return 0, 0, nil // another node of the cluster has it
	}
	var token string
	switch {
	case err != nil:
		return 0, 0, err
	case text == "string":
		token, err = n.Do(ctx, "GET", name).Text()
	case text == "hash":
		var fields []string
		fields, err = n.Do(ctx, "HKEYS", name).StringSlice()
		token = strings.Join(fields, " ")
	default:
		return 0, 0, nil
	}
	if err != nil || token == "" {
		return 0, 0, nil // it has just expired
	}
	left, err := strconv.ParseInt(fmt.Sprint(n.Do(ctx, "PTTL", name).Val()), 10, 64)
	until := history.Forever
	if err == nil && left >= 0 {
		until = clock.Now() + time.Duration(left)*time.Millisecond
	}
	return history.Hash(token), until, nil
}

// judge reads the history back and lets every checker judge it: the verdict is on what the file says.
func judge(path string) ([]checker.Verdict, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	h, err := history.Read(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read the history back: %w", err)
	}
	c, err := checker.Prepare(h)
	if err != nil {
		return nil, fmt.Errorf("the history is not sound: %w", err)
	}
	return checker.Judge(c)
}
