package deployment

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/topologies"
)

// TestAKeyThatExpiresWhileItIsReadIsGone: a key expires between two commands that read it. It is not reported as a
// lock that never expires. Nor is a key whose expiry could not be read.
func TestAKeyThatExpiresWhileItIsReadIsGone(t *testing.T) {
	broken := errors.New("i/o timeout")
	for name, tt := range map[string]struct {
		token any
		left  any
		until func(read time.Duration) bool // nil = there is no such condition
		err   error
	}{
		"it expires before it is read":       {token: redis.Nil},
		"it expires between the two answers": {token: "t1", left: int64(-2)},
		"its time is not read":               {token: "t1", left: broken, err: broken},
		"it never expires": {token: "t1", left: int64(-1), until: func(u time.Duration) bool {
			return u == history.Forever
		}},
		"it expires in a second": {token: "t1", left: int64(1000), until: func(u time.Duration) bool {
			return u >= time.Second && u < time.Hour
		}},
	} {
		clock := history.NewClock(0)
		token, until, err := holding("page", clock, func(args ...any) *redis.Cmd {
			cmd := redis.NewCmd(context.Background(), args...)
			switch answer := map[any]any{"TYPE": "string", "GET": tt.token, "PTTL": tt.left}[args[0]].(type) {
			case error:
				cmd.SetErr(answer)
			default:
				cmd.SetVal(answer)
			}
			return cmd
		})
		if !errors.Is(err, tt.err) || (token != 0) != (tt.until != nil) || tt.until != nil && !tt.until(until) {
			t.Errorf("%s: got token %x until %v, %v", name, token, until, err)
		}
	}
}

// TestKeysAreReadWhenAClusterServesAgain: a cluster node that serves no keys for a moment is asked once more.
func TestKeysAreReadWhenAClusterServesAgain(t *testing.T) {
	t.Parallel()
	var warm Warm
	defer func() { _ = warm.Close() }()
	d, err := warm.Up(t.Context(), spec(t, "cluster", "redis"))
	if err != nil {
		t.Fatal(err)
	}
	lock := d.Pages[0].Lock
	slot := d.Topology.Nodes[0].Do(t.Context(), "CLUSTER", "KEYSLOT", lock).Val()
	var owner *topologies.Node
	for _, n := range d.Topology.Nodes {
		if n.Do(t.Context(), "SET", lock, "left").Err() == nil {
			owner = n
		}
	}
	if err := owner.Do(t.Context(), "CLUSTER", "DELSLOTS", slot).Err(); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "a cluster that is down", func() bool {
		return redis.HasErrorPrefix(owner.Do(t.Context(), "TYPE", lock).Err(), "CLUSTERDOWN")
	})
	again := time.AfterFunc(200*time.Millisecond, func() { owner.Do(t.Context(), "CLUSTER", "ADDSLOTS", slot) })
	defer again.Stop()
	lane := history.NewLane(history.NewClock(0), 0, -1, 64, make(chan struct{}, 1))
	if err := d.Leftovers(t.Context(), lane); err != nil {
		t.Error(err)
	}
}

// TestALookFindsKeysOfOtherNames: a lock is found even if its library adds a prefix to its name.
func TestALookFindsKeysOfOtherNames(t *testing.T) {
	t.Parallel()
	var warm Warm
	defer func() { _ = warm.Close() }()
	d, err := warm.Up(t.Context(), spec(t, "single", "redis"))
	if err != nil {
		t.Fatal(err)
	}
	n := d.Topology.Nodes[0]
	lane := history.NewLane(history.NewClock(0), 0, -1, 64, make(chan struct{}, 1))
	d.sight(t.Context(), lane, 0, n)
	if d.Unseen() != 1 {
		t.Errorf("%d looks into empty servers found nothing", d.Unseen())
	}
	n.Do(t.Context(), "SET", "semaphore:"+d.Pages[0].Lock+":owners", "t1")
	if d.sight(t.Context(), lane, 0, n); d.Unseen() != 0 {
		t.Errorf("%d looks found no key of the lock", d.Unseen())
	}
}
