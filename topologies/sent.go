package topologies

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/redis/go-redis/v9"
)

// sent counts the commands that a server was sent by others than the clients of locks, by name.
type sent struct {
	passing
	mu    sync.Mutex
	calls map[string]int64
}

func (s *sent) count(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int64{}
	}
	s.calls[name]++
}

// Sent counts the commands that the suite itself and sentinels have sent to the node so far, by name in lower case.
func (n *Node) Sent() map[string]int64 {
	n.sent.mu.Lock()
	defer n.sent.mu.Unlock()
	return maps.Clone(n.sent.calls)
}

// ProcessHook implements redis.Hook. A command that a server refuses is in none of its statistics.
func (s *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil || errors.Is(err, redis.Nil) {
			s.count(cmd.Name())
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (s *sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if cmd.Err() == nil || errors.Is(cmd.Err(), redis.Nil) {
				s.count(cmd.Name())
			}
		}
		return err
	}
}

// helloChannel is where sentinels tell each other on every server that they are there. A primary passes that on to its
// replicas, which carry it out as well.
const helloChannel = "__sentinel__:hello"

// hearHellos counts the messages of sentinels, if there are any, until the node is closed.
func (n *Node) hearHellos(ctx context.Context) {
	if sites := n.topology.Sites; n.Role == Sentinel || n.hellos != nil || len(sites) == 0 || sites[0].Master == "" {
		return
	}
	n.hellos = n.control.Subscribe(ctx, helloChannel)
	messages := n.hellos.Channel()
	n.heard.Go(func() {
		for range messages {
			n.sent.count("publish")
		}
	})
}
