package deployment

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

// TestAKeyThatExpiresWhileItIsReadIsGone: it is no lock that never expires, and neither is one whose time could not be
// read.
func TestAKeyThatExpiresWhileItIsReadIsGone(t *testing.T) {
	broken := errors.New("i/o timeout")
	for name, tt := range map[string]struct {
		token any
		left  any
		until func(read time.Duration) bool // nil = there is none
		err   error
	}{
		"it expires before it is read":       {token: redis.Nil},
		"it expires between the two answers": {token: "t1", left: int64(-2)},
		"its time is not read":               {token: "t1", left: broken, err: broken},
		"it never expires":                   {token: "t1", left: int64(-1), until: func(u time.Duration) bool { return u == history.Forever }},
		"it expires in a second":             {token: "t1", left: int64(1000), until: func(u time.Duration) bool { return u >= time.Second && u < time.Hour }},
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
