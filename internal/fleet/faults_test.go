package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/workload"
)

// TestAWorkerIsCaughtOnItsMachine catches a worker on the first agent that has one, and kills its process. It lets a
// worker of the other agent continue.
func TestAWorkerIsCaughtOnItsMachine(t *testing.T) {
	t.Parallel()
	b := coordinator(t, func(*Options) {})
	b.orders.Shape.TTL, b.orders.Shape.Keys = 300*time.Millisecond, 6
	b.join("a", nil)
	b.join("b", nil)
	var first *workload.Caught
	var killed time.Duration
	h, _ := b.play(func(p *playing) {
		var err error
		if first, err = p.Gate.Catch(t.Context(), workload.Loaded, workload.AnyKey); err != nil {
			t.Fatal(err)
		}
		if err := p.Processes[first.Worker/3].Kill(); err != nil {
			t.Error(err)
		}
		killed = p.Clock.Now()
		first.Die()
		next, err := p.Gate.Catch(t.Context(), workload.Granted, workload.AnyKey)
		if err != nil || next.Worker/3 == first.Worker/3 {
			t.Fatalf("caught %+v after %+v: %v", next, first, err)
		}
		next.Go()
		nobody, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if c, err := p.Gate.Catch(nobody, workload.Between, workload.AnyKey); !errors.Is(err, workload.ErrNobody) {
			t.Errorf("caught %+v, %v", c, err)
		}
		p.by(int16(1+next.Worker/3), killed)
	})
	if err := h.Validate(); err != nil {
		t.Error(err)
	}
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Worker >= 0 && op.Worker/3 == first.Worker/3 && op.Return != history.Forever &&
			op.Return > killed+h.Bounds.Slack {
			t.Fatalf("killed at %v, and yet it worked: %+v", killed, *op)
		}
	}
}

// TestNothingStartsLate: an agent refuses an order to begin that comes after the start time, or without a start time.
func TestNothingStartsLate(t *testing.T) {
	k := &task{}
	if err := k.start(); err == nil || err.Error() != "it is not armed" {
		t.Errorf("got %v", err)
	}
	if err := k.arm(crew.Monotonic() - 1); !errors.Is(err, errLate) {
		t.Errorf("got %v", err)
	}
	k.armed = crew.Monotonic() - 1
	if err := k.start(); !errors.Is(err, errLate) {
		t.Errorf("got %v", err)
	}
}
