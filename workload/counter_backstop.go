package workload

import (
	"context"

	"github.com/redis/go-redis/v9"
)

var backstopStore = CounterSpec{
	Name:   "backstop",
	Doc:    "looks fenced: a store marks the page with its token, then writes if the mark is still its own",
	Fenced: true,
	Broken: "= is not >: a stale holder marks the page with its old token and finds its own mark",
	Open:   func(e CounterEnv) (Counter, error) { return backstopCounter{redisCounter{e.Client}}, nil },
}

// backstopCounter is broken on purpose: it checks that the stored token is equal to the holder's, as many forum
// answers recommend. A fence must check that the holder's token is greater.
type backstopCounter struct{ redisCounter }

var storeIfMarked = redis.NewScript(`
if redis.call("GET", KEYS[2]) ~= ARGV[2] then return 0 end
redis.call("SET", KEYS[1], ARGV[1])
return 1`)

func (b backstopCounter) Store(ctx context.Context, page string, c Count) error {
	mark := page + ":mark"
	if err := b.client.Set(ctx, mark, c.Fence, 0).Err(); err != nil {
		return err
	}
	return accepted(storeIfMarked.Run(ctx, b.client, []string{page, mark}, c.text(true), c.Fence).Int64())
}
