package fleet

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"hammerlock/history"
)

// find returns an agent of the current run; nil if there is no such agent.
func (f *Fleet) find(run, epoch string) *agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run == nil || f.run.id != run {
		return nil
	}
	for _, a := range f.run.agents {
		if a.Epoch == epoch {
			return a
		}
	}
	return nil
}

// frame receives a frame from an agent. A frame that was received before, or that comes too early, is ignored.
func (f *Fleet) frame(m *nats.Msg) {
	w, err := parseFrame(m.Data)
	if err != nil {
		return // the agent sends it again
	}
	a := f.find(w.Run, w.Agent)
	if a == nil {
		_ = send(f.nc, ackSubject+w.Agent, ack{Run: w.Run, Lost: "the coordinator has no such run"})
		return
	}
	a.take(&w)
	a.acknowledge()
}

// take adds a frame to the agent's feed. It refuses the frame while the agent's clock is not known well enough.
func (a *agent) take(w *frame) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost != "" || w.Number != a.received+1 {
		return
	}
	for _, e := range w.Exchanges {
		a.track.add(e)
		a.track.fix(e.A3)
	}
	a.track.fix(int64(w.last()) + a.scale.from)
	for _, ops := range [][]history.Op{w.Ops, w.Open} {
		for i := range ops {
			a.scale.op(&ops[i])
		}
	}
	if a.track.err != nil || a.track.doubt() > a.r.f.o.MaxSlack/2 {
		return
	}
	a.heard = time.Now()
	a.received++
	a.count(w)
	a.upTo = a.scale.time(w.UpTo)
	a.unwritten = append(a.unwritten, a.upTo)
	a.feed.Add(w.Ops, w.Open, a.upTo)
}

// rateOver is the time over which an agent's rate is averaged.
const rateOver = 2 * time.Second

func (a *agent) count(w *frame) {
	a.ops += int64(len(w.Ops))
	a.kept = w.Kept
	a.most = max(a.most, w.Kept)
	if more := a.scale.time(w.UpTo) - a.upTo; more > 0 && w.UpTo != history.Forever {
		new := 1 - math.Exp(-more.Seconds()/rateOver.Seconds())
		a.rate += new * (float64(len(w.Ops))/more.Seconds() - a.rate)
	}
}

func (a *agent) acknowledge() {
	a.mu.Lock()
	k := ack{Run: a.r.id, Received: a.received, Written: a.written, Lost: a.lost}
	a.mu.Unlock()
	_ = send(a.r.f.nc, ackSubject+a.Epoch, k) // an error does not matter: the next acknowledgement includes this one
}

// written tells the agents which of their frames are written to the file.
func (r *run) written(upTo time.Duration) {
	for _, a := range r.agents {
		a.mu.Lock()
		n := slices.IndexFunc(a.unwritten, func(t time.Duration) bool { return t > upTo })
		if n < 0 {
			n = len(a.unwritten)
		}
		a.unwritten = a.unwritten[n:]
		a.written += uint64(n)
		a.mu.Unlock()
		if n > 0 {
			a.acknowledge()
		}
	}
}

// final receives an agent's report. It accepts the report when all frames have arrived.
func (f *Fleet) final(m *nats.Msg) {
	var w final
	if json.Unmarshal(m.Data, &w) != nil {
		return
	}
	a := f.find(w.Run, w.Agent)
	if a == nil {
		respond(m, ack{Run: w.Run, Lost: "the coordinator has no such run"})
		return
	}
	a.mu.Lock()
	if a.received == w.Frames && a.lost == "" && a.report == nil {
		a.report = &w.Report
		a.feed.End()
	}
	a.heard = time.Now()
	k := ack{Run: w.Run, Received: a.received, Written: a.written, Lost: a.lost}
	a.mu.Unlock()
	respond(m, k)
	select {
	case a.r.moved <- struct{}{}:
	default:
	}
}

// proven returns how well the clocks of all processes agree. The suite itself is the first process.
func (r *run) proven() history.Agreement {
	doubts := []history.Doubt{{Own: r.doubt}}
	for _, a := range r.agents {
		a.mu.Lock()
		doubts = append(doubts, history.Doubt{Machine: a.host.number, Own: a.slack, Offset: a.track.proven()})
		a.mu.Unlock()
	}
	return history.Agree(doubts)
}
