package topologies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Harmless lists the commands without a key that may be sent to attached servers: they change nothing that outlives
// the connection.
var Harmless = []string{
	"AUTH", "HELLO", "PING", "SELECT", "READONLY", "ROLE", "INFO", "SCAN", "COMMAND",
	"CLIENT SETNAME", "CLIENT SETINFO", "CLIENT TRACKING", "CONFIG GET",
	"CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES", "CLUSTER KEYSLOT",
	"SENTINEL GET-MASTER-ADDR-BY-NAME", "SENTINEL REPLICAS", "SENTINEL SENTINELS",
	"MULTI", "EXEC", "DISCARD", "UNWATCH", "WAIT",
}

// Destructive lists the commands that disturb other users of the server. Its keys are the names with which the user
// allows the commands.
var Destructive = map[string][]string{
	"failover":     {"SENTINEL FAILOVER", "CLUSTER FAILOVER"},
	"client-pause": {"CLIENT PAUSE"},
	"client-kill":  {"CLIENT KILL"},
	"flushall":     {"FLUSHALL"},
	"script-flush": {"SCRIPT FLUSH"},
}

// DestructiveNames lists the keys of Destructive.
func DestructiveNames() []string { return slices.Sorted(maps.Keys(Destructive)) }

// keyed lists the commands of the suite whose first argument is a key.
var keyed = []string{"TYPE", "GET", "SET", "HKEYS", "PTTL", "DEL", "UNLINK", "EXISTS"}

// errNotAllowed means that a command was not sent, because it may disturb other users.
var errNotAllowed = errors.New("not sent to servers of others")

// guard is a client hook that checks each command of the suite to attached servers.
type guard struct {
	passing
	prefix string
	allow  []string
}

// admits returns nil if a command is harmless, is allowed by the user, or has a key of this run.
func (g guard) admits(cmd redis.Cmder) error {
	args := cmd.Args()
	word := func(i int) string {
		if i >= len(args) {
			return ""
		}
		return strings.ToUpper(fmt.Sprint(args[i]))
	}
	name, both := word(0), word(0)+" "+word(1)
	if slices.Contains(Harmless, name) || slices.Contains(Harmless, both) {
		return nil
	}
	if slices.Contains(keyed, name) && len(args) > 1 && strings.HasPrefix(fmt.Sprint(args[1]), g.prefix) {
		return nil
	}
	for permission, commands := range Destructive {
		if slices.Contains(commands, name) || slices.Contains(commands, both) {
			if slices.Contains(g.allow, permission) {
				return nil
			}
			return fmt.Errorf("%w: %s; --allow-destructive %s allows it", errNotAllowed, both, permission)
		}
	}
	return fmt.Errorf("%w: %s", errNotAllowed, both)
}

func (g guard) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := g.admits(cmd); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (g guard) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := g.admits(cmd); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmds)
	}
}
