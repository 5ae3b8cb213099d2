package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/live"
	"hammerlock/topologies"
)

// starts starts an agent in a separate process.
func (b *bench) starts(name string) *os.Process {
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
	return cmd.Process
}

// TestAnAgentSuffers stops one agent for a while, cuts another from the servers, and kills that one at the end. Faults
// that an agent cannot inject into itself are injected into its worker process. Only the operations of the killed
// agent are lost, and the other agent works on.
func TestAnAgentSuffers(t *testing.T) {
	t.Parallel()
	live.Again(t, func(int) string { return suffered(t) })
}

func suffered(t *testing.T) (undecided string) {
	b := coordinator(t, func(o *Options) { o.Timeout = 4 * time.Second })
	b.orders.Shape.TTL, b.orders.Shape.Keys = 500*time.Millisecond, 2
	b.starts("a")
	victim := b.starts("b")
	do := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	var refused, mended, dead time.Duration
	h, report := b.play(func(p *playing) {
		a, other := p.Processes[0].Agent, p.Processes[1].Agent
		const long = 700 * time.Millisecond
		do(a.Pause(long))
		p.has("that the first one stood still", func(op history.Op) bool {
			return op.Process == 1 && op.Kind == history.Gap && op.Latency() > long*9/10
		})
		cut := p.Clock.Now()
		do(other.Cut(true))
		p.has("that the other one reaches no server", func(op history.Op) bool {
			refused = op.Return
			return op.Process == 2 && op.Kind == history.Acquire && op.Call > cut && op.Reason == history.Unreachable
		})
		p.by(1, refused)
		mended = p.Clock.Now()
		do(other.Cut(false))
		p.has("that it does again", func(op history.Op) bool {
			return op.Process == 2 && stores(&op) &&
				op.Call > mended
		})
		do(other.Kill())
		live.Wait(t, "the end of the agent", func() bool { return ended(victim.Pid) })
		dead = p.Clock.Now()
		p.until("its loss", func([]history.Op) bool { return p.Agents()[1].Lost != "" })
		if p.Agents()[0].Lost == "" {
			p.by(1, p.Clock.Now())
		}
	})
	if report.Fleet.Agents[0].Lost != "" {
		return report.Lost
	}
	if err := h.Validate(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(report.Lost, "agent b was killed by a fault; its history ends at") {
		t.Errorf("lost: %q", report.Lost)
	}
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Process == 2 && stores(op) && (op.Call > refused && op.Return < mended ||
			op.Return > dead+h.Bounds.Slack) {
			t.Errorf("b was cut off from %v to %v and dead at %v, and yet: %+v", refused, mended, dead, *op)
		}
	}
	return ""
}

func stores(op *history.Op) bool { return op.Kind == history.Store && op.Outcome == history.OK }

// ended tells whether a process is gone, or is a zombie.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// TestEachFrameTwice: a network that repeats messages changes nothing.
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

// whole checks that a history has each operation exactly once.
func (b *bench) whole(h *history.History, report *crew.Report) {
	b.t.Helper()
	if err := h.Validate(); err != nil {
		b.t.Error(err)
	}
	if n := visits(h); n != report.Begun || n == 0 || report.Lost != "" {
		b.t.Errorf("%d visits ended, %+v", n, report)
	}
}

// TestASlowCoordinator writes so slowly that the agents finish long before. They keep unwritten frames, and end when
// these are written.
func TestASlowCoordinator(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(*Options) {})
	b.every = 700 * time.Millisecond
	b.join("a", nil)
	b.join("b", nil)
	h, report := b.play(nil)
	b.whole(h, &report)
	b.until("done; ")
}

// TestACoordinatorThatComesBack: the coordinator vanishes during a run. The agents report that they give the run up.
// They wait for the next coordinator, and serve it.
func TestACoordinatorThatComesBack(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(o *Options) { o.Timeout = 2 * time.Second })
	b.join("a", nil)
	b.join("b", nil)
	c, _ := b.begin()
	o := b.o
	o.Timeout = live.Deadline / 2
	o.Listen = strings.TrimPrefix(b.Address(), "nats://")
	b.Fleet.Close()
	b.until("given up: nothing was heard of the coordinator for")
	_ = c.Close() // the connection is gone
	var err error
	if b.Fleet, err = Open(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Fleet.Close)
	b.orders.Prefix = "again:"
	h, report := b.play(nil)
	b.whole(h, &report)
}
