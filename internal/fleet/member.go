package fleet

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/results"
)

// host is a machine on which agents run. They share its clock.
type host struct {
	number int // 0 = the coordinator's machine
	mu     sync.Mutex
	track  track
}

// agent is an agent of a run, as the coordinator sees it.
type agent struct {
	hello
	*host
	r       *run
	number  int // from 0
	workers []int32
	feed    *history.Feed
	process *crew.Process

	scale     scale
	slack     time.Duration // difference between the clocks of its processes
	received  uint64        // frames
	written   uint64
	unwritten []time.Duration // for each frame that was received and not written: the time up to which it is complete
	upTo      time.Duration
	ops       int64   // number of operations that it has sent
	rate      float64 // operations per second
	kept      int     // bytes that were not written when it sent the last frame
	most      int
	heard     time.Time
	report    *crew.Report
	lost      string // when and why it was lost
}

// order sends an order to an agent and waits for the answer.
func (a *agent) order(o order, within time.Duration) (answer, error) {
	o.Run = a.r.id
	got, err := ask[answer](a.r.f.nc, orderSubject+a.Epoch, o, within)
	if err != nil {
		return got, fmt.Errorf("no answer to %q within %s: %w", o.Do, within, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = time.Now()
	for _, e := range got.Exchanges {
		a.track.add(e)
	}
	if got.Error != "" {
		return got, errors.New(got.Error)
	}
	return got, nil
}

// tell sends an order whose answer does not matter.
func (a *agent) tell(o order) error {
	_, err := a.order(o, orderTimeout)
	return err
}

// arm tells an agent when the run begins.
func (a *agent) arm(within time.Duration) error {
	a.mu.Lock()
	lo, hi := a.track.bounds(a.track.at)
	at := a.r.zero - (lo + (hi-lo)/2)
	a.scale = scale{&a.track, at, a.r.zero}
	a.track.fix(at)
	a.mu.Unlock()
	_, err := a.order(order{Do: doArm, At: at}, within)
	return err
}

// result is the agent's part of the run's record.
func (a *agent) result() results.Agent {
	a.mu.Lock()
	defer a.mu.Unlock()
	return results.Agent{Name: a.Name, Host: a.Host, CPUs: a.CPUs, Workers: len(a.workers), Frames: int64(a.received),
		Ops: a.ops, Spool: int64(a.most),
		SameClock: a.track.same, Machine: a.host.number, Exchanges: a.track.exchanges,
		Doubt: int64(a.track.proven() + a.slack), Own: int64(a.slack), Lost: a.lost}
}

// works tells whether an agent has not finished yet. An agent that is silent for too long is lost: its history ends
// with what it has sent.
func (a *agent) works() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.report != nil || a.lost != "" {
		return false
	}
	silent := time.Since(a.heard)
	if silent < a.r.f.o.Timeout {
		return true
	}
	a.lost = fmt.Sprintf("was lost: nothing was heard of it for %s; its history ends at %.3f s",
		silent.Round(time.Millisecond), a.upTo.Seconds())
	if a.track.err != nil {
		a.lost += "; " + a.track.err.Error()
	}
	a.feed.End() // it is unknown what its workers did afterwards, so the history is partial
	return false
}

func (a *agent) signal(s syscall.Signal) error {
	return a.tell(order{Do: doSignal, Signal: int(s)})
}
