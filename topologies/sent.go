package topologies

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/redis/go-redis/v9"
)

// sent has the number of commands of each name that a server has received from the suite and from sentinels. All
// other commands that the server counts are from lock clients.
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

// Sent returns the number of commands of each name (lower case) that the suite and sentinels have sent to the node.
func (n *Node) Sent() map[string]int64 {
	n.sent.mu.Lock()
	defer n.sent.mu.Unlock()
	return maps.Clone(n.sent.calls)
}

// ProcessHook implements redis.Hook. It does not count refused commands, and neither do the server's statistics.
func (s *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil || errors.Is(err, redis.Nil) {
			s.count(cmd.Name())
		}
		return err
	}
}

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

// helloChannel is the channel on which sentinels announce themselves on every server. A primary replicates these
// messages, so its replicas count them too.
const helloChannel = "__sentinel__:hello"

// hearHellos counts the announcements of sentinels until the node is closed.
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
