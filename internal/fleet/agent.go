package fleet

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"hammerlock/internal/crew"
)

// AgentOptions configure an agent.
type AgentOptions struct {
	Join    string // nats://host:port of the coordinator, or of existing servers that the coordinator uses, too
	Token   Token
	Login   Login
	Name    string // empty = the machine's name
	Version string
	Known   crew.Catalogue
	Spawn   crew.Spawn   // starts worker processes
	Say     func(string) // called with lines that report progress

	machine string // for tests: replaces the name of its clock
	views   []string
}

// worker is an agent. It works on one task at a time.
type worker struct {
	o       AgentOptions
	me      hello
	nc      *bus
	clock   *bus // a second connection, because a large frame ahead of a clock message would delay that message
	pending sync.WaitGroup

	mu   sync.Mutex
	task *task // nil if there is none
}

// helloEvery is the time between two announcements of an agent, and between two tries to reconnect.
const helloEvery = time.Second

// errRefused means that a coordinator cannot use the agent.
var errRefused = errors.New("refused")

// Work is the main loop of an agent. It joins a coordinator and works for it until ctx ends. While there is no
// coordinator, it waits. It returns an error if the agent can never work for the existing coordinator.
func Work(ctx context.Context, o AgentOptions) error {
	w := &worker{o: o, me: introduce(o.Name, rand.Text(), o.Version)}
	if o.machine != "" {
		w.me.Machine = o.machine
	}
	said := ""
	for ctx.Err() == nil {
		err := w.connect(ctx)
		if err == nil {
			said = ""
			err = w.serve(ctx)
			w.disconnect()
		}
		if errors.Is(err, errToken) || errors.Is(err, nats.ErrAuthorization) || errors.Is(err, errRefused) {
			return err
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			o.Say(fmt.Sprintf("waiting for a coordinator at %s: %s", o.Join, said))
		}
		pause(ctx, helloEvery)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (w *worker) connect(ctx context.Context) (err error) {
	if w.nc, err = connect(w.o.Join, w.me.Name, w.o.Token, w.o.Login); err != nil {
		return err
	}
	if w.clock, err = connect(w.o.Join, w.me.Name, w.o.Token, w.o.Login); err != nil {
		w.nc.Close()
		return err
	}
	_, err = w.nc.Subscribe(orderSubject+w.me.Epoch, func(m *nats.Msg) { w.pending.Go(func() { w.obey(ctx, m) }) })
	_, err2 := w.nc.Subscribe(ackSubject+w.me.Epoch, w.acknowledged)
	if err = errors.Join(err, err2, w.nc.Flush()); err != nil {
		w.disconnect()
	}
	return err
}

func (w *worker) disconnect() {
	w.nc.Close()
	w.clock.Close()
}

// serve announces the agent while it has no task, until ctx ends or the connection is closed.
func (w *worker) serve(ctx context.Context) error {
	w.o.Say(fmt.Sprintf("agent %s has joined %s and waits for work", w.me.Name, w.o.Join))
	defer w.pending.Wait()
	defer w.drop("it was told to end")
	for ctx.Err() == nil && !w.nc.IsClosed() {
		if t := w.current(); t == nil {
			got, err := ask[welcome](w.nc, joinSubject, w.me, helloEvery)
			if err == nil && got.Refused != "" {
				return fmt.Errorf("%w: %s", errRefused, got.Refused)
			}
		} else if t.done() {
			w.drop("")
		}
		pause(ctx, helloEvery/4)
	}
	return nil
}

func (w *worker) current() *task {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.task
}

// drop ends the current task, if there is one, and reports why the task was given up.
func (w *worker) drop(why string) {
	w.mu.Lock()
	t := w.task
	w.task = nil
	w.mu.Unlock()
	if t == nil {
		return
	}
	if why = t.close(why); why != "" {
		w.o.Say(fmt.Sprintf("run %s was given up: %s", t.plan.Run, why))
	}
}

func (w *worker) acknowledged(m *nats.Msg) {
	var a ack
	if t := w.current(); json.Unmarshal(m.Data, &a) == nil && t != nil && t.plan.Run == a.Run {
		t.hear()
		t.spool.take(a)
	}
}

// obey executes an order, and sends the answer.
func (w *worker) obey(ctx context.Context, m *nats.Msg) {
	var o order
	if err := json.Unmarshal(m.Data, &o); err != nil {
		respond(m, answer{Error: "not an order: " + err.Error()})
		return
	}
	var got answer
	var err error
	t := w.current()
	switch {
	case o.Do == doPlan:
		got, err = w.begin(ctx, o.Plan)
	case t == nil || t.plan.Run != o.Run:
		if o.Do != doEnd && o.Do != doStop {
			err = errors.New("it does not work for that run any more")
		}
	case o.Do == doEnd:
		t.settle(ctx)
		w.drop("the coordinator has ended it")
	default:
		t.hear()
		got, err = t.obey(ctx, &o)
		got.Exchanges = t.exchanged()
	}
	if err != nil {
		got.Error = err.Error()
	}
	respond(m, got)
	if err == nil && (o.Do == doKill || o.Do == doPause) {
		err = errors.Join(w.nc.Flush(), t.killOrPause(&o))
		if err != nil {
			t.giveUp(err.Error())
		}
	}
}

func (w *worker) begin(ctx context.Context, p *plan) (got answer, err error) {
	w.drop("the coordinator has another run")
	if p == nil {
		return got, errors.New("no plan")
	}
	if got.Plan, err = p.sum(); err != nil {
		return got, err
	}
	if err := p.resolve(w.o.Known); err != nil {
		return got, err
	}
	t, err := newTask(ctx, w, p)
	if err != nil {
		return got, err
	}
	if got.Views, err = serverViews(ctx, &p.Orders); err != nil {
		t.close("")
		return got, err
	}
	if w.o.views != nil {
		got.Views = w.o.views
	}
	w.mu.Lock()
	w.task = t
	w.mu.Unlock()
	got.Slack, got.Exchanges = t.crew.Slack(), t.exchanged()
	from, to := p.Share.Workers(p.Orders.Shape.Workers)
	w.o.Say(fmt.Sprintf("run %s: lock %s, %d of %d workers", p.Run, p.Lock, to-from, p.Orders.Shape.Workers))
	return got, nil
}
