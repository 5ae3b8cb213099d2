package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// interrupt is the reason why a command stops: a signal, or a key of the dashboard with the same effect.
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

// signals tells a command about interrupts. The first interrupt ends the context stop: visits in progress are still
// finished. The second cancels them (see interruptible).
type signals struct {
	stop  context.Context
	press func() // has the effect of an interrupt; called for a key
}

// interruptible adapts a function that runs plans. The first interrupt ends s.stop, and the second ends ctx.
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
	if !signal.Ignored(syscall.SIGHUP) { // programs started with "nohup", for example, ignore it
		signal.Notify(caught, syscall.SIGHUP)
	}
	quit, quitted := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quitted)
		for end := finish; ; end = abort {
			select {
			case s := <-caught:
				if s == syscall.SIGHUP && stop.Err() != nil {
					continue // a closing terminal sends this signal twice: the terminal and its shell do
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
		default: // the channel is full, so enough interrupts are pending
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
