package locks

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/topologies"
)

// Classify returns the outcome of a call, as far as its error proves it. Failed means that the call certainly had no
// effect. Unknown means that it may have had one.
func Classify(err error) (history.Outcome, history.Reason) {
	switch {
	case err == nil:
		return history.OK, history.None
	case err == ErrBusy, errors.Is(err, ErrBusy): // the usual error, found without the cost of errors.Is
		return history.Failed, history.Busy
	case errors.Is(err, ErrMaybeBusy):
		return history.Unknown, history.Busy
	case errors.Is(err, ErrLost):
		return history.Failed, history.Lost
	case errors.Is(err, ErrFenced):
		return history.Failed, history.Fenced
	case errors.Is(err, ErrRefused):
		return history.Failed, history.Refused
	case errors.Is(err, redis.TxFailedErr), errors.Is(err, ErrConflict):
		return history.Failed, history.Conflict
	case errors.Is(err, ErrCrashed):
		return history.Unknown, history.Crashed
	case errors.Is(err, ErrQuorum):
		return history.Failed, history.Quorum
	case errors.Is(err, topologies.ErrUnreachable), errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrClosed):
		return history.Failed, history.Unreachable
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return answered(err)
	}
	return history.Unknown, silence(err)
}

// refusals are the first words of the errors with which a server refuses to execute a command.
var refusals = []string{
	"READONLY", "CLUSTERDOWN", "NOREPLICAS", "LOADING", "MASTERDOWN", "CROSSSLOT",
	"OOM", "BUSY", "MISCONF", "NOAUTH", "WRONGPASS", "NOPERM", "EXECABORT",
}

func answered(err error) (history.Outcome, history.Reason) {
	for _, prefix := range []string{"NOSCRIPT", "MOVED", "ASK", "TRYAGAIN"} {
		if redis.HasErrorPrefix(err, prefix) { // the server works; the client must do something first
			return history.Failed, history.Other
		}
	}
	for _, prefix := range refusals {
		if redis.HasErrorPrefix(err, prefix) {
			return history.Failed, history.Refused
		}
	}
	return history.Unknown, history.Other // a script may have failed half-way
}

func silence(err error) history.Reason {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return history.Canceled
	case errors.Is(err, context.DeadlineExceeded), ok && timeout.Timeout():
		return history.Timeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return history.Dropped
	default:
		return history.Other
	}
}

// AfterGrant wraps the error of a second command that follows a successful one. Classify then returns Unknown
// instead of Failed, because the first command had an effect.
func AfterGrant(err error) error {
	if outcome, _ := Classify(err); outcome == history.Failed {
		return errAfterGrant{err.Error()}
	}
	return err
}

// errAfterGrant hides the wrapped error from errors.Is.
type errAfterGrant struct{ text string }

func (e errAfterGrant) Error() string { return "after the grant: " + e.text }
