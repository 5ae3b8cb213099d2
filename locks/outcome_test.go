package locks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/topologies"
)

// reply is an error reply of a server.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestClassify(t *testing.T) {
	t.Parallel()
	dial := fmt.Errorf("%w: %w", topologies.ErrUnreachable, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	cases := map[string]struct {
		err     error
		outcome history.Outcome
		reason  history.Reason
	}{
		"nothing wrong":   {nil, history.OK, history.None},
		"busy":            {fmt.Errorf("try: %w", ErrBusy), history.Failed, history.Busy},
		"lost":            {ErrLost, history.Failed, history.Lost},
		"aborted":         {fmt.Errorf("exec: %w", redis.TxFailedErr), history.Failed, history.Conflict},
		"a stale token":   {fmt.Errorf("store: %w", ErrFenced), history.Failed, history.Fenced},
		"stored between":  {ErrConflict, history.Failed, history.Conflict},
		"store refused":   {fmt.Errorf("%w: locked", ErrRefused), history.Failed, history.Refused},
		"killed":          {ErrCrashed, history.Unknown, history.Crashed},
		"after the grant": {AfterGrant(ErrBusy), history.Unknown, history.Other},
		"quorum":          {fmt.Errorf("2 of 5: %w", ErrQuorum), history.Failed, history.Quorum},
		"no connection":   {dial, history.Failed, history.Unreachable},
		"no pool":         {redis.ErrPoolTimeout, history.Failed, history.Unreachable},
		"replica": {reply("READONLY You can't write against a read only replica."), history.Failed,
			history.Refused},
		"cluster down":   {reply("CLUSTERDOWN Hash slot not served"), history.Failed, history.Refused},
		"another server": {reply("MOVED 866 127.0.0.1:7001"), history.Failed, history.Other},
		"no such script": {reply("NOSCRIPT No matching script. Please use EVAL."), history.Failed, history.Other},
		"loading":        {reply("LOADING Redis is loading the dataset in memory"), history.Failed, history.Refused},
		"script failed":  {reply("ERR user_script:1: boom"), history.Unknown, history.Other},
		"connection reset": {&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
			history.Unknown, history.Dropped},
		"end of file":   {io.EOF, history.Unknown, history.Dropped},
		"closed":        {net.ErrClosed, history.Unknown, history.Dropped},
		"read timeout":  {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, history.Unknown, history.Timeout},
		"deadline":      {context.DeadlineExceeded, history.Unknown, history.Timeout},
		"called off":    {context.Canceled, history.Unknown, history.Canceled},
		"anything else": {errors.New("surprise"), history.Unknown, history.Other},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if outcome, reason := Classify(c.err); outcome != c.outcome || reason != c.reason {
				t.Errorf("got %s %s, want %s %s", outcome, reason, c.outcome, c.reason)
			}
		})
	}
}
