package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/results"
)

// run is a Crew: the agents that work on a run.
type run struct {
	f       *Fleet
	id      string
	orders  crew.Orders
	agents  []*agent
	local   []*child
	session crew.Session
	gate    *gate
	zero    int64 // start of the run, on this machine's clock
	doubt   time.Duration
	moved   chan struct{} // signals that an agent has finished
}

// Time limits for agents to become ready, and to answer an order. The lead is the time from the announcement of a
// run's start to that start.
const (
	readyTimeout = 40 * time.Second
	orderTimeout = 5 * time.Second
	lead         = 500 * time.Millisecond
	tries        = 4 // each try has twice the lead of the one before
)

// Crew is a crew.Maker. It waits for the agents and prepares them.
func (f *Fleet) Crew(ctx context.Context, o crew.Orders, spawn crew.Spawn) (_ crew.Crew, err error) {
	r := &run{f: f, id: rand.Text()[:10], orders: o, moved: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if f.o.Local {
		for i := range f.o.Count {
			c, err := f.start(i, spawn)
			if err != nil {
				return nil, fmt.Errorf("start agent %d: %w", i+1, err)
			}
			r.local = append(r.local, c)
		}
	}
	here, err := f.wait(ctx)
	if err != nil {
		return nil, err
	}
	hosts := map[string]*host{machine(): {track: track{same: true}}}
	for i, h := range here {
		// an agent that cannot identify its clock counts as a separate machine
		if h.Machine == "" || hosts[h.Machine] == nil {
			hosts[h.Machine] = &host{number: i + 1}
		}
		from, to := crew.Share{First: i, Count: 1, Of: len(here)}.Workers(o.Shape.Workers)
		a := &agent{hello: h, host: hosts[h.Machine], r: r, number: i, feed: &history.Feed{}, heard: time.Now()}
		a.workers = o.Numbers(from, to)
		a.process = crew.Elsewhere(i+1, a.workers, a.signal, a.faultTarget())
		r.agents = append(r.agents, a)
	}
	f.mu.Lock()
	f.run = r
	f.mu.Unlock()
	return r, r.ready(ctx)
}

// each calls a function for all agents in parallel. The error names the agents that failed.
func (r *run) each(do func(*agent) error) error {
	errs := make([]error, len(r.agents))
	var all sync.WaitGroup
	for i, a := range r.agents {
		all.Go(func() {
			if err := do(a); err != nil {
				errs[i] = fmt.Errorf("agent %s: %w", a.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// ready sends the plan to every agent. It waits until the agent has its workers, sees the same servers, and has a
// clock that is known well enough.
func (r *run) ready(ctx context.Context) error {
	views, err := serverViews(ctx, &r.orders)
	if err != nil {
		return err
	}
	return r.each(func(a *agent) error {
		p := &plan{Run: r.id, Orders: r.orders, Lock: r.orders.Lock.Name, Counter: r.orders.Counter.Spec.Name,
			Share: crew.Share{First: a.number, Count: 1, Of: len(r.agents)}, Timeout: r.f.o.Timeout}
		p.Orders.Process = 1 // process 0 is the suite itself
		sum, err := p.sum()
		if err != nil {
			return err
		}
		got, err := a.order(order{Do: doPlan, Plan: p}, readyTimeout)
		switch {
		case err != nil:
			return err
		case got.Plan != sum:
			return fmt.Errorf("it has another plan: %s, not %s", got.Plan, sum)
		case !slices.Equal(got.Views, views):
			return fmt.Errorf("it sees other servers: %s, here %s", strings.Join(got.Views, ", "),
				strings.Join(views, ", "))
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.slack = got.Slack
		lo, hi := a.track.bounds(a.track.at)
		if doubt := time.Duration(hi-lo) / 2; a.track.err == nil && doubt > r.f.o.MaxSlack/2 {
			return fmt.Errorf("its clock is known within %s only, --max-slack %s allows half of that", doubt,
				r.f.o.MaxSlack)
		}
		return a.track.err
	})
}

// Begin implements crew.Crew. It arms all agents, that is, it tells them when the run begins,
// and returns at that time.
func (r *run) Begin(wake chan<- struct{}) (*crew.Session, error) {
	for try, ahead := 1, lead; ; try, ahead = try+1, 2*ahead {
		begun := time.Now()
		r.zero = crew.Monotonic() + int64(ahead)
		err := r.each(func(a *agent) error { return a.arm(ahead) })
		if err == nil && time.Since(begun) < ahead*3/4 {
			break
		}
		if try == tries {
			return nil, errors.Join(err,
				fmt.Errorf("not all agents were armed in time, %s before the beginning", ahead))
		}
	}
	if err := r.each(func(a *agent) error { return a.tell(order{Do: doGo}) }); err != nil {
		return nil, err
	}
	<-time.After(time.Duration(r.zero - crew.Monotonic()))
	r.open(wake)
	return &r.session, nil
}

// open makes the session. The agents number their lanes as worker processes do; the lanes made here only reserve these
// numbers.
func (r *run) open(wake chan<- struct{}) {
	s := &r.session
	s.Clock, r.doubt = crew.ClockFrom(r.zero, r.orders.Judged)
	for i := range r.orders.Lanes(len(r.agents)) {
		s.Lanes = append(s.Lanes, history.NewLane(s.Clock, i, -1, 2, wake))
	}
	r.gate = &gate{r: r, turn: make(chan struct{}, 1)}
	s.Gate, s.Written, s.Proven, s.Agents = r.gate, r.written, r.proven, r.live
	known := r.proven()
	for i, a := range r.agents {
		if !a.track.same {
			known.Doubts[i+1].Offset, s.Rate = r.f.o.MaxSlack/2, 3*drift
		}
		s.Feeds, s.Processes = append(s.Feeds, a.feed), append(s.Processes, a.process)
	}
	known = history.Agree(known.Doubts)
	s.Slack, s.Doubts = known.Slack, known.Doubts
}

// Run implements crew.Crew. It waits for the reports of all agents that are not lost.
func (r *run) Run(ctx, stop context.Context) (crew.Report, error) {
	all := func(do string) func() {
		return func() {
			// an error does not matter: a silent agent is lost
			_ = r.each(func(a *agent) error { return a.tell(order{Do: do}) })
		}
	}
	defer context.AfterFunc(stop, all(doStop))()
	defer context.AfterFunc(ctx, all(doEnd))()
	again := time.Tick(r.f.o.Timeout / 10)
	for {
		left := 0
		for _, a := range r.agents {
			if a.works() {
				left++
			}
		}
		if left == 0 {
			break
		}
		select {
		case <-r.moved:
		case <-again:
		}
	}
	return r.total()
}

func (r *run) total() (total crew.Report, err error) {
	var lost []string
	total.Fleet = &results.Fleet{Slack: int64(r.proven().Slack)}
	for _, a := range r.agents {
		total.Fleet.Agents = append(total.Fleet.Agents, a.result())
		if a.lost != "" {
			lost = append(lost, "agent "+a.Name+" "+a.lost)
		} else if total.Add(a.report); a.report.Error != "" {
			err = errors.Join(err, fmt.Errorf("agent %s: %s", a.Name, a.report.Error))
		}
	}
	total.Lost = strings.Join(lost, "; ")
	return total, err
}

func (r *run) live() (all []results.LiveAgent) {
	for _, a := range r.agents {
		now := results.LiveAgent{Agent: a.result()}
		a.mu.Lock()
		now.Rate, now.UpTo, now.Spool = a.rate, a.upTo, int64(a.kept)
		a.mu.Unlock()
		all = append(all, now)
	}
	return all
}

// RoundTrips implements crew.Crew. It returns false, because agents report round trips only at the end.
func (r *run) RoundTrips() (int64, bool) { return 0, false }

// Close implements crew.Crew. It tells agents to end. The run stays known until the next run, so that late messages
// are answered.
func (r *run) Close() error {
	if r.gate != nil {
		defer r.gate.all.Wait()
	}
	_ = r.each(func(a *agent) error { // an error does not matter: an agent that hears nothing ends
		if a.lost != "" {
			return nil
		}
		err := a.tell(order{Do: doEnd})
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.report == nil {
			a.lost = "was told to end"
		}
		return err
	})
	for _, c := range r.local {
		c.end()
	}
	return nil
}
