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

// host is a machine with agents, which share its clock.
type host struct {
	number int // 0 = the coordinator's machine
	mu     sync.Mutex
	track  track
}

// agent is the coordinator's view of an agent in a run.
type agent struct {
	hello
	*host
	r       *run
	number  int // counts from 0
	workers []int32
	feed    *history.Feed
	process *crew.Process

	scale     scale
	slack     time.Duration // largest difference between the clocks of its processes
	received  uint64        // number of frames
	written   uint64
	unwritten []time.Duration // for each frame that was received and not written: its UpTo, on the coordinator's clock
	upTo      time.Duration
	ops       int64   // number of operations received
	rate      float64 // operations per second
	kept      int     // bytes that were not written when it sent its last frame
	most      int
	heard     time.Time
	report    *crew.Report
	killed    bool   // a fault has killed it
	lost      string // time and reason of its loss; empty if it is not lost
}

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

// tell sends an order and ignores the content of the answer.
func (a *agent) tell(o order) error {
	_, err := a.order(o, orderTimeout)
	return err
}

// arm tells an agent the start time of the run.
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

// result returns the agent's part of the run's record.
func (a *agent) result() results.Agent {
	a.mu.Lock()
	defer a.mu.Unlock()
	return results.Agent{Name: a.Name, Host: a.Host, CPUs: a.CPUs, Workers: len(a.workers), Frames: int64(a.received),
		Ops: a.ops, Spool: int64(a.most),
		SameClock: a.track.same, Machine: a.host.number, Exchanges: a.track.exchanges,
		Doubt: int64(a.track.proven() + a.slack), Own: int64(a.slack), Lost: a.lost}
}

// lastFrames is the longest time for which frames of a killed agent may be under way.
const lastFrames = 2 * time.Second

// works tells whether an agent has not finished yet. An agent that is silent for too long becomes lost: its history
// ends with its last frame.
func (a *agent) works() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.report != nil || a.lost != "" {
		return false
	}
	silent := time.Since(a.heard)
	switch {
	case a.killed && silent >= min(a.r.f.o.Timeout, lastFrames):
		a.lost = "was killed by a fault"
	case silent < a.r.f.o.Timeout:
		return true
	default:
		a.lost = fmt.Sprintf("was lost: nothing was heard of it for %s", silent.Round(time.Millisecond))
	}
	a.lost += fmt.Sprintf("; its history ends at %.3f s", a.upTo.Seconds())
	if a.track.err != nil {
		a.lost += "; " + a.track.err.Error()
	}
	a.feed.End() // the later actions of its workers are unknown, so the history is partial
	return false
}

func (a *agent) signal(s syscall.Signal) error {
	return a.tell(order{Do: doSignal, Signal: int(s)})
}
