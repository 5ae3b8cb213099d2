package topologies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Every run enters its prefix in a hash on each site. The next run deletes the keys of each entry whose owner is
// dead. If the owner runs on the same machine, the process table shows whether it lives. On another machine, it is
// dead if its heartbeat key has expired.
const (
	registry  = "runs"  // name of the hash, after the common prefix
	signOf    = "alive" // name of the heartbeat key, after the run's prefix
	aliveFor  = time.Minute
	aliveTurn = 10 * time.Second

	cleanTimeout = 30 * time.Second
	scanCount    = 1000
)

// owner identifies the process that uses a prefix.
type owner struct {
	Host    string `json:"host"`
	Space   string `json:"space"` // machine, boot and container: process numbers are unique only there
	PID     int    `json:"pid"`
	Start   string `json:"start"` // start time in clock ticks, because process numbers are reused
	Started string `json:"started"`
}

func me() owner {
	o := owner{PID: os.Getpid(), Start: processStart(os.Getpid()), Space: processSpace(),
		Started: time.Now().UTC().Format(time.RFC3339)}
	o.Host, _ = os.Hostname()
	return o
}

// processSpace identifies the boot and the container of this process; empty if the system has no /proc.
func processSpace() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, failed := os.Readlink("/proc/self/ns/pid")
	if errors.Join(err, failed) != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// processStart returns the start time of a process in clock ticks; empty if there is no such process or no /proc.
func processStart(pid int) string {
	const start = 19 // field 22
	if stat := processStat(pid); len(stat) > start {
		return stat[start]
	}
	return ""
}

// processStat returns the fields of proc_pid_stat(5) from field 3 on; nil if there is no such process or no /proc.
func processStat(pid int) []string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.Fields(after)
}

// keep opens one client for each site, without a proxy. These clients delete keys and renew the heartbeat.
func (t *Topology) keep(ctx context.Context) error {
	for _, s := range t.Sites {
		c := s.Access().Site().Client(ClientOptions{})
		t.keepers = append(t.keepers, c)
		if err := c.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("site %s: %w", s.Name, err)
		}
	}
	return nil
}

// enter deletes the keys of dead runs, registers this run, and starts to renew its heartbeat. The function t.clean
// stops the heartbeat and deletes the keys of this run.
func (t *Topology) enter(ctx context.Context) error {
	a := t.Spec.attached
	text, err := json.Marshal(me())
	if err != nil {
		return err
	}
	for i, c := range t.keepers {
		if err := t.removeLeftovers(ctx, c); err != nil {
			return fmt.Errorf("site %s: look for what earlier runs left: %w", t.Sites[i].Name, err)
		}
		if err := t.sign(ctx, c, text); err != nil {
			return fmt.Errorf("site %s: register the prefix %s: %w", t.Sites[i].Name, t.prefix, err)
		}
	}
	done := make(chan struct{})
	var beat sync.WaitGroup
	ctx = context.WithoutCancel(ctx)
	beat.Go(func() { t.live(ctx, done, text) })
	t.clean = func() error {
		close(done)
		beat.Wait()
		ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
		defer cancel()
		var errs []error
		for i, c := range t.keepers {
			_, err := sweep(ctx, c, t.prefix)
			if err == nil {
				err = c.HDel(ctx, a.Prefix+registry, t.prefix).Err()
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("site %s: remove the keys under %s, which the next run tries again: %w",
					t.Sites[i].Name, t.prefix, err))
			}
		}
		return errors.Join(errs...)
	}
	return nil
}

// sign writes this run's registration and heartbeat key to a site.
func (t *Topology) sign(ctx context.Context, c redis.UniversalClient, owner []byte) error {
	return errors.Join(c.Set(ctx, t.prefix+signOf, "1", aliveFor).Err(),
		c.HSet(ctx, t.Spec.attached.Prefix+registry, t.prefix, owner).Err())
}

// live renews the heartbeat key until done is closed. It also renews the registration, because a server may lose
// data.
func (t *Topology) live(ctx context.Context, done <-chan struct{}, owner []byte) {
	ticker := time.NewTicker(aliveTurn)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(ctx, aliveTurn)
		for _, c := range t.keepers {
			_ = t.sign(ctx, c, owner) // an error does not matter: the next tick tries again
		}
		cancel()
	}
}

// removeLeftovers deletes the keys of dead runs on a site and reports each deletion.
func (t *Topology) removeLeftovers(ctx context.Context, c redis.UniversalClient) error {
	a := t.Spec.attached
	runs, err := c.HGetAll(ctx, a.Prefix+registry).Result()
	if err != nil {
		return err
	}
	for prefix, text := range runs {
		var o owner
		if json.Unmarshal([]byte(text), &o) != nil || !strings.HasPrefix(prefix, a.Prefix) || prefix == a.Prefix {
			continue // not written by the suite
		}
		dead, err := isDead(ctx, c, prefix, o)
		if err != nil {
			return err
		}
		if !dead {
			continue
		}
		removed, err := sweep(ctx, c, prefix)
		if err != nil {
			return err
		}
		if err := c.HDel(ctx, a.Prefix+registry, prefix).Err(); err != nil {
			return err
		}
		line := fmt.Sprintf("removed %d keys under %s: the run that began at %s on %s (process %d) ended without "+
			"removing them",
			removed, prefix, o.Started, o.Host, o.PID)
		a.Removed = append(a.Removed, line)
		if a.Tell != nil {
			a.Tell(line)
		}
	}
	return nil
}

func isDead(ctx context.Context, c redis.UniversalClient, prefix string, o owner) (bool, error) {
	if o.Space != "" && o.Space == processSpace() {
		return processStart(o.PID) != o.Start, nil
	}
	alive, err := c.Exists(ctx, prefix+signOf).Result()
	return alive == 0, err
}

// sweep deletes all keys that begin with a prefix, and returns their number.
func sweep(ctx context.Context, c redis.UniversalClient, prefix string) (removed int64, err error) {
	var mu sync.Mutex // the primaries of a cluster are scanned in parallel
	one := func(ctx context.Context, node *redis.Client) error {
		n, err := sweepNode(ctx, node, prefix)
		mu.Lock()
		defer mu.Unlock()
		removed += n
		return err
	}
	switch c := c.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, one)
	case *redis.Client:
		err = one(ctx, c)
	}
	return removed, err
}

func sweepNode(ctx context.Context, c *redis.Client, prefix string) (removed int64, err error) {
	var cursor uint64
	for {
		keys, next, err := c.Scan(ctx, cursor, literal(prefix)+"*", scanCount).Result()
		if err != nil {
			return removed, err
		}
		keys = slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
		for _, command := range []string{"UNLINK", "DEL"} { // UNLINK may be renamed or refused
			err = nil
			for _, answer := range doEach(ctx, c, command, keys) { // in a cluster each key has its own slot
				n, failed := answer.Int64()
				removed, err = removed+n, errors.Join(err, failed)
			}
			if err == nil {
				break
			}
		}
		if err != nil {
			return removed, err
		}
		if cursor = next; cursor == 0 {
			return removed, nil
		}
	}
}

// literal escapes a text for the pattern of SCAN MATCH.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// Empty deletes all keys of the suite's own servers, or the keys of this run on attached servers.
func (t *Topology) Empty(ctx context.Context) error {
	for _, c := range t.keepers {
		if _, err := sweep(ctx, c, t.prefix); err != nil {
			return err
		}
		// the heartbeat key was deleted too
		if err := c.Set(ctx, t.prefix+signOf, "1", aliveFor).Err(); err != nil {
			return err
		}
	}
	if t.foreign() {
		return nil
	}
	empty := t.engine.Empty
	if empty == nil {
		return errors.New("the servers cannot be emptied")
	}
	return empty(ctx, t.Nodes)
}

// flush deletes all keys of the servers that the suite started.
func flush(ctx context.Context, nodes []*Node) error {
	for _, n := range nodes {
		if n.Role == Sentinel {
			continue
		}
		if info, err := n.replication(ctx); err != nil {
			return err
		} else if info["role"] == "slave" {
			continue
		}
		if err := n.Do(ctx, "FLUSHALL").Err(); err != nil {
			return fmt.Errorf("empty %s: %w", n.Name, err)
		}
	}
	return nil
}
