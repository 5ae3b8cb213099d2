package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/crew"
	"hammerlock/topologies"
)

// viewTimeout is the longest time for which a server may take to identify itself.
const viewTimeout = 10 * time.Second

// serverViews returns the run ids of the servers that the orders lead to from this machine. If they differ between
// agent and coordinator, the agent would test other servers.
func serverViews(ctx context.Context, o *crew.Orders) (views []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	sites := slices.Clone(o.Sites)
	if o.Counter.Access != nil {
		sites = append(sites, *o.Counter.Access)
	}
	for _, access := range sites {
		c := access.Site().Client(topologies.ClientOptions{Source: 1, ReadTimeout: viewTimeout})
		view, err := serverIDs(ctx, c)
		_ = c.Close() // an error does not matter, since the client only read
		if err != nil {
			return nil, fmt.Errorf("cannot reach %s at %s: %w", access.Name, strings.Join(access.Addrs, ", "), err)
		}
		views = append(views, access.Name+" "+view)
	}
	return views, nil
}

// serverIDs returns the run ids of the primaries that a client uses.
func serverIDs(ctx context.Context, c redis.UniversalClient) (string, error) {
	cluster, ok := c.(*redis.ClusterClient)
	if !ok {
		return serverID(ctx, c)
	}
	var mu sync.Mutex
	var ids []string
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, n *redis.Client) error {
		id, err := serverID(ctx, n)
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, id)
		return err
	})
	slices.Sort(ids)
	return strings.Join(ids, "+"), err
}

func serverID(ctx context.Context, c redis.Cmdable) (string, error) {
	text, err := c.Info(ctx, "server").Result()
	for line := range strings.Lines(text) {
		if id, ok := strings.CutPrefix(line, "run_id:"); ok {
			return strings.TrimSpace(id), nil
		}
	}
	return "", err
}
