package fleet

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/topologies"
)

// starts starts an agent in a process of its own.
func (b *bench) starts(name string) {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	spawner := topologies.OpenSpawner()
	cmd := exec.CommandContext(b.t.Context(), self, "agent", b.Address(), name)
	cmd.Env = append(cmd.Environ(), agentVariable+"="+string(b.token))
	if err := spawner.Start(cmd); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		spawner.Close()
	})
}

// work is when the workers of a process returned from their stores.
func work(h *history.History, process int16) (stores []time.Duration) {
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Process == process && op.Kind == history.Store && op.Outcome == history.OK {
			stores = append(stores, op.Return)
		}
	}
	return stores
}

// silence is the longest time without a return, from the first to the last.
func silence(at []time.Duration) (longest time.Duration) {
	for i := range max(len(at)-1, 0) {
		longest = max(longest, at[i+1]-at[i])
	}
	return longest
}

// TestAnAgentSuffers stops an agent for a while, cuts another one from the servers, and kills that in the end: what an agent
// does not do itself is done to its worker process, nothing is lost but the one that was killed, and the other works on.
func TestAnAgentSuffers(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(o *Options) { o.Timeout = 3 * time.Second })
	const end = 5 * time.Second
	b.orders.Shape.End, b.orders.Shape.TTL, b.orders.Shape.Keys = end, 500*time.Millisecond, 2
	b.starts("a")
	b.starts("b")
	var mended, killed time.Duration
	h, report := b.play(func(s *crew.Session) {
		a, other := s.Processes[0].Agent, s.Processes[1].Agent
		do := func(at time.Duration, err error) {
			if err != nil {
				t.Errorf("at %v: %v", at, err)
			}
		}
		passes(t, s, 300*time.Millisecond)
		do(s.Clock.Now(), a.Pause(700*time.Millisecond))
		passes(t, s, 1200*time.Millisecond)
		do(s.Clock.Now(), other.Cut(true))
		passes(t, s, 2*time.Second)
		mended = s.Clock.Now()
		do(mended, other.Cut(false))
		passes(t, s, 3200*time.Millisecond)
		do(s.Clock.Now(), other.Kill())
		killed = s.Clock.Now()
	})
	h.Header.Keys = 2
	if err := h.Validate(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(report.Lost, "agent b was lost: nothing was heard of it for") || strings.Contains(report.Lost, "agent a") {
		t.Errorf("lost: %q", report.Lost)
	}
	one, two := work(h, 1), work(h, 2)
	if len(one) == 0 || len(two) == 0 {
		t.Fatalf("%d and %d stores", len(one), len(two))
	}
	if silence(one) < 650*time.Millisecond || silence(two) < 600*time.Millisecond {
		t.Errorf("a was silent for %v, b for %v", silence(one), silence(two))
	}
	if last := two[len(two)-1]; last < mended || last > killed+300*time.Millisecond || one[len(one)-1] < end-500*time.Millisecond {
		t.Errorf("b was mended at %v and killed at %v; the last store of a at %v, of b at %v", mended, killed, one[len(one)-1], last)
	}
}

// TestEachFrameTwice: a network that repeats what it carries changes nothing.
func TestEachFrameTwice(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(*Options) {})
	_, err := b.nc.Subscribe(frameSubject, b.frame)
	_, err2 := b.nc.Subscribe(finalSubject, b.final)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	b.join("a", nil)
	b.join("b", nil)
	h, report := b.play(nil)
	b.whole(h, &report)
	b.until("done; ")
}

// whole checks that nothing is missing from a history, and nothing is in it twice.
func (b *bench) whole(h *history.History, report *crew.Report) {
	b.t.Helper()
	if err := h.Validate(); err != nil {
		b.t.Error(err)
	}
	if n := visits(h); n != report.Begun || n == 0 || report.Lost != "" {
		b.t.Errorf("%d visits ended, %+v", n, report)
	}
}

// TestASlowCoordinator takes so long to write that the agents have done their work long before: they keep what is not
// written, and end when it is.
func TestASlowCoordinator(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(*Options) {})
	b.orders.Shape.End, b.every = 500*time.Millisecond, 700*time.Millisecond
	b.join("a", nil)
	b.join("b", nil)
	h, report := b.play(nil)
	b.whole(h, &report)
	b.until("done; ")
}

// TestACoordinatorThatComesBack vanishes in the middle of a run: the agents give that up by name, wait for the next
// coordinator, and serve it.
func TestACoordinatorThatComesBack(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(o *Options) { o.Timeout = 2 * time.Second })
	b.orders.Shape.End = 20 * time.Second
	b.join("a", nil)
	b.join("b", nil)
	c, err := b.Crew(t.Context(), b.orders, b.top.Spawn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Begin(nil); err != nil {
		t.Fatal(err)
	}
	o := b.o
	o.Listen = strings.TrimPrefix(b.Address(), "nats://")
	b.Fleet.Close()
	b.until("given up: nothing was heard of the coordinator for")
	_ = c.Close() // the connection is gone
	if b.Fleet, err = Open(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Fleet.Close)
	b.orders.Shape.End, b.orders.Prefix = 1500*time.Millisecond, "again:"
	h, report := b.play(nil)
	b.whole(h, &report)
}
