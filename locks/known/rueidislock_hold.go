package known

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"hammerlock/history"
)

// rueidisHold is a hold as its commands show it, because the library exposes neither its token nor its renewals.
type rueidisHold struct {
	key    string
	ttl    time.Duration
	lane   *history.Lane // may be nil
	ctx    context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	token     string
	first     time.Time        // when it was requested with this token
	deadlines map[string]int64 // last requested deadline, by key on the server
	rounds    map[string]int   // number of extensions so far, by key on the server
	round     int              // the current or latest extension
	op        *history.Op      // the current extension; nil when it is decided
	yes, no   int
}

// rueidisMajority is the number of the library's keys that are enough for a hold, by default.
const rueidisMajority = 2

type rueidisHoldKey struct{}

func newRueidisHold(key string, ttl time.Duration, lane *history.Lane) *rueidisHold {
	return &rueidisHold{key: key, ttl: ttl, lane: lane, deadlines: map[string]int64{}, rounds: map[string]int{}}
}

// within marks the hold's commands in their context. The hold outlives the call that requested it.
func (h *rueidisHold) within(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), rueidisHoldKey{}, h)
}

func (h *rueidisHold) name() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token
}

func (h *rueidisHold) asked() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first
}

// observed is a client that reports the library's commands for a hold to that hold.
type observed struct{ rueidis.Client }

func (o observed) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	h, ok := ctx.Value(rueidisHoldKey{}).(*rueidisHold)
	args := cmd.Commands()
	if !ok || len(args) != 6 { // not EVALSHA script 1 key token deadline
		return o.Client.Do(ctx, cmd)
	}
	round := h.call(args[0], args[3], args[4], args[5])
	r := o.Client.Do(ctx, cmd)
	if round > 0 {
		h.answer(round, r)
	}
	return r
}

// call registers a command before it is sent, and returns the number of its extension; 0 = the command extends nothing.
// The first command to a key requests the hold, and a command with the same deadline is no extension.
func (h *rueidisHold) call(script, key, token, deadline string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	end, _ := strconv.ParseInt(deadline, 10, 64)
	if token != h.token {
		h.begin(token)
	}
	last, known := h.deadlines[key]
	h.deadlines[key] = max(end, last)
	if known && end == last && script == "EVAL" {
		return h.rounds[key] // sent again, because the server did not know the script by its hash
	}
	if !known || end <= last {
		return 0
	}
	h.rounds[key]++
	if h.rounds[key] > h.round {
		h.decide(history.Unknown, history.Timeout)
		h.round, h.yes, h.no = h.rounds[key], 0, 0
		if h.lane != nil {
			h.op = h.lane.Call(history.Extend, -1)
		}
	}
	return h.rounds[key]
}

// begin forgets earlier attempts. While it waits, the library draws a token for each attempt, and undoes one attempt
// before the next.
func (h *rueidisHold) begin(token string) {
	h.decide(history.Unknown, history.Canceled)
	h.token, h.first, h.round = token, time.Now(), 0
	clear(h.deadlines)
	clear(h.rounds)
}

// answer adds a key's reply to the count of an extension. A majority of the keys decides.
func (h *rueidisHold) answer(round int, r rueidis.RedisResult) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if round != h.round {
		return
	}
	n, err := r.AsInt64()
	if reply, ok := rueidis.IsRedisErr(err); ok && reply.IsNoScript() {
		return // it will be sent again
	}
	switch {
	case err != nil:
	case n == 1:
		h.yes++
	default:
		h.no++
	}
	switch {
	case h.yes == rueidisMajority:
		h.decide(history.OK, history.None)
	case h.no == rueidisMajority:
		h.decide(history.Failed, history.Lost)
	}
}

// end releases the hold. The library is done with it on return.
func (h *rueidisHold) end() {
	h.cancel()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.decide(history.Unknown, history.Canceled)
}

func (h *rueidisHold) decide(outcome history.Outcome, reason history.Reason) {
	if h.op == nil {
		return
	}
	h.op.Token, h.op.TTL, h.op.Outcome, h.op.Reason = history.Hash(h.token), h.ttl, outcome, reason
	if outcome == history.OK {
		h.op.Until = history.Forever // until the context is cancelled
	}
	h.lane.Return(h.op)
	h.op = nil
}
