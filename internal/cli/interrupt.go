package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// interrupt is the cause of a stop: a signal, or a key with the same effect.
type interrupt struct {
	signal syscall.Signal
	key    bool
}

func (i interrupt) Error() string {
	if i.key {
		return "ended by a key"
	}
	return "interrupted by " + unix.SignalName(i.signal)
}

// signals has the interrupts of a command. After the first, visits in progress are finished; the second cancels them.
type signals struct {
	stop  context.Context
	press func() // called for a key that has the effect of a signal
}

// interruptible is for commands that run plans. The first interrupt ends signals.stop, the second ends ctx.
func interruptible(do func(ctx context.Context, s signals, args []string) int) func(context.Context, []string) int {
	return func(base context.Context, args []string) int {
		ctx, s, done := onSignals(base)
		defer done()
		return do(ctx, s, args)
	}
}

func onSignals(base context.Context) (ctx context.Context, s signals, done func()) {
	ctx, abort := context.WithCancelCause(base)
	stop, finish := context.WithCancelCause(ctx)
	caught, pressed := make(chan os.Signal, 4), make(chan struct{}, 4)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup, for example, ignores it
		signal.Notify(caught, syscall.SIGHUP)
	}
	quit, quitted := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quitted)
		for end := finish; ; end = abort {
			select {
			case s := <-caught:
				if s == syscall.SIGHUP && stop.Err() != nil {
					continue // when a terminal is closed, both the terminal and its shell send this signal
				}
				end(interrupt{signal: s.(syscall.Signal)})
			case <-pressed:
				end(interrupt{syscall.SIGINT, true})
			case <-quit:
				return
			}
		}
	}()
	press := func() {
		select {
		case pressed <- struct{}{}:
		default: // the channel is full: it has enough interrupts
		}
	}
	return ctx, signals{stop, press}, func() {
		signal.Stop(caught)
		close(quit)
		<-quitted
		finish(nil)
		abort(nil)
	}
}
