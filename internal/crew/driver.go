package crew

import (
	"context"
	"errors"
	"syscall"
	"time"

	"hammerlock/history"
	"hammerlock/internal/driver"
	"hammerlock/locks"
)

// Driven has the measurements of a lock that runs in a separate program.
type Driven struct {
	Pings []time.Duration // round-trip times of pings to the program within the measurement
	// ClockUnread means that the program's wall clock was set, and that the program did not read it after that.
	ClockUnread bool
	driver.Conduct
}

// and returns the combined results of two processes; nil stands for a process without a program.
func (d *Driven) and(o *Driven) *Driven {
	if o == nil {
		return d
	}
	if d == nil {
		d = &Driven{Conduct: driver.Conduct{Failures: map[string]int64{}}}
	}
	d.Pings = append(d.Pings, o.Pings...)
	d.ClockUnread = d.ClockUnread || o.ClockUnread
	d.Late, d.LateBy = d.Late+o.Late, max(d.LateBy, o.LateBy)
	if d.Noise += o.Noise; d.Sample == "" {
		d.Sample = o.Sample
	}
	for text, n := range o.Failures {
		d.Failures[text] += n
	}
	return d
}

// startDriver starts the lock's program, if it has one. Each worker process has its own instance.
func (t *team) startDriver(ctx context.Context) (err error) {
	o := &t.orders
	if o.Lock.Program == nil {
		return nil
	}
	options := driver.Options{Topology: o.Topology, Sites: o.Sites, Source: o.Process + 1,
		Lease: max(o.Shape.TTL, o.Shape.Extend)}
	if t.skewed() {
		options.Env = o.Clock.Env()
		if err := o.Clock.Set(1, o.Shape.Skew); err != nil {
			return err
		}
	}
	t.driver, err = driver.Start(ctx, o.Lock, options)
	if err != nil {
		return err
	}
	t.orders.Lock.Open = func(e locks.Env) (locks.Lock, error) { return t.driver.Worker(e.Renewals), nil }
	return nil
}

// skewed tells whether the suite gives the program of this process a wrong wall clock.
func (t *team) skewed() bool { return t.orders.Clock != nil && t.orders.Process%2 == 1 }

// step sets the program's wrong wall clock, if it has one, from ahead to behind in the middle of the run. It records
// whether the program read the clock after that.
func (t *team) step(d *Driven, done <-chan struct{}) error {
	o := &t.orders
	if !t.skewed() {
		return nil
	}
	select {
	case <-time.After((o.From+o.To)/2 - t.crew.Clock.Now()):
		if err := o.Clock.Set(2, -o.Shape.Skew); err != nil {
			return err
		}
	case <-done:
		return nil
	}
	<-done
	read, err := o.Clock.Read(2)
	d.ClockUnread = !read
	return err
}

// drive watches the lock's program during the run. It returns contexts that end when the program breaks, because no
// call would return then. The returned function ends the watch and adds the results to a report.
func (t *team) drive(ctx, stop context.Context) (context.Context, context.Context, func(*Report)) {
	if t.driver == nil {
		return ctx, stop, func(*Report) {}
	}
	ctx, callOff := context.WithCancel(ctx)
	stop, end := context.WithCancel(stop)
	done, over := make(chan struct{}), make(chan struct{})
	var d Driven
	stepped := make(chan error, 1)
	go func() { stepped <- t.step(&d, done) }()
	go func() {
		defer close(over)
		t.driver.Watch(done, func(g driver.Ping) { t.pinged(&d, g) })
		if t.driver.Err() != nil {
			end()
			callOff()
		}
	}()
	return ctx, stop, func(r *Report) {
		close(done)
		<-over
		err := t.driver.Err()
		// the suite itself causes errors of a program whose clock it sets wrong
		if b, at, broke := t.driver.Broke(); broke && !t.skewed() {
			b.Process, b.At = int16(t.orders.Process), max(t.crew.Clock.At(at), 0)
			if r.Crashes = append(r.Crashes, b); !b.Lives {
				err = nil
			}
		}
		for i := range r.Hung {
			if h := &r.Hung[i]; h.GivenUp > 0 {
				h.Text = t.driver.Last()
			}
		}
		r.fail(errors.Join(err, <-stepped))
		end()
		callOff()
		d.Conduct = t.driver.Conduct()
		r.Driver = &d
	}
}

// pinged records a ping. A slow ping shows that the program was paused, which excuses the consequences of that pause.
func (t *team) pinged(d *Driven, g driver.Ping) {
	began, o := t.crew.Clock.At(g.Began), &t.orders
	if began >= o.From && began < o.To {
		d.Pings = append(d.Pings, g.Took)
	}
	if g.Took > max(gap, o.Shape.TTL/10) {
		t.pings.Mark(&history.Op{Kind: history.Gap, Key: -1, Worker: -1, Call: began, Outcome: history.OK,
			Reason: history.Timeout})
	}
}

// hearPings gives the team a lane for pings, if the lock has a program.
func (t *team) hearPings(lane func() *history.Lane) {
	if t.driver != nil {
		t.pings = lane()
	}
}

// home returns the process in which the lock runs: its program, or this process.
func (t *team) home() process {
	if t.driver != nil {
		return program(t.driver.PID())
	}
	return own{}
}

// endDriver waits until the worker process has ended the lock's program and itself. It does nothing
// if there is no program.
func (c *Process) endDriver() {
	if c.driver != 0 {
		_ = c.end(nil)
	}
}

// signalDriver sends a signal to the lock's program and its child processes.
func (c *Process) signalDriver(s syscall.Signal) error {
	if c.driver == 0 {
		return nil
	}
	if err := syscall.Kill(-c.driver, s); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
