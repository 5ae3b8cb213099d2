package known

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"hammerlock/history"
)

// rueidisHold tracks a hold by the commands that the library sends. The library itself reveals neither the token nor
// the renewals of a hold.
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
	round     int              // number of the last extension
	op        *history.Op      // last extension, until its outcome is known; then nil
	yes, no   int
}

// rueidisMajority is the number of keys that a hold needs, of the library's default of three keys.
const rueidisMajority = 2

type rueidisHoldKey struct{}

func newRueidisHold(key string, ttl time.Duration, lane *history.Lane) *rueidisHold {
	return &rueidisHold{key: key, ttl: ttl, lane: lane, deadlines: map[string]int64{}, rounds: map[string]int{}}
}

// within adds the hold to the context of the library's commands. The new context is not cancelled with ctx, because
// the hold lasts longer than the call that requested it.
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

// observed is a client of the library. It reports each command for a hold to that hold, and then sends the command.
type observed struct{ rueidis.Client }

func (o observed) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	h, ok := ctx.Value(rueidisHoldKey{}).(*rueidisHold)
	args := cmd.Commands()
	if !ok || len(args) != 6 { // the hold's commands are: EVALSHA script 1 key token deadline
		return o.Client.Do(ctx, cmd)
	}
	round := h.call(args[0], args[3], args[4], args[5])
	r := o.Client.Do(ctx, cmd)
	if round > 0 {
		h.answer(round, r)
	}
	return r
}

// call notes a command before it is sent. It returns the number of the extension that the command belongs to; 0 = no
// extension. The first command to a key requests the hold, and a command with an unchanged deadline extends nothing.
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

// begin forgets the earlier attempts of a waiting library. Each attempt has a new token, and the library undoes an
// attempt before it makes the next one.
func (h *rueidisHold) begin(token string) {
	h.decide(history.Unknown, history.Canceled)
	h.token, h.first, h.round = token, time.Now(), 0
	clear(h.deadlines)
	clear(h.rounds)
}

// answer counts one key's reply to an extension. The extension is decided when a majority of the keys agree.
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

// end releases the hold. When end returns, the library sends no more commands for this hold.
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
