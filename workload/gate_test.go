package workload

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"hammerlock/history"
	"hammerlock/locks"
)

// passers start n workers that reach the point again and again until stop is done. They count how many had to die.
func passers(stop context.Context, g *Gate, n int, p Point) (died *atomic.Int32, wait func()) {
	died = new(atomic.Int32)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for stop.Err() == nil {
				if !g.pass(stop, p, int32(i), int32(i%3), 7) {
					died.Add(1)
				}
				<-time.After(70 * time.Microsecond)
			}
		})
	}
	return died, wg.Wait
}

// TestGateCatchesOneAtATime stops workers while others reach the point, in memory that could be shared.
func TestGateCatchesOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := GateIn(make([]byte, int(unsafe.Sizeof(gateWords{}))))
		if err != nil {
			t.Fatal(err)
		}
		stop, end := context.WithCancel(t.Context())
		died, wait := passers(stop, g, 8, Loaded)
		const catches = 100
		for i := range catches {
			key := int32(i%4 - 1) // AnyKey, 0, 1, 2
			c, err := g.Catch(t.Context(), Loaded, key)
			if err != nil {
				t.Fatal(err)
			}
			if key != AnyKey && c.Key != key || c.Worker%3 != c.Key || c.Hold != 7 {
				t.Fatalf("asked for key %d, got %+v", key, c)
			}
			if i%2 == 0 {
				c.Go()
				c.Die() // too late
			} else {
				c.Die()
			}
		}
		// The last workers get their orders before the others stop.
		<-time.After(time.Second)
		end()
		wait()
		if died.Load() != catches/2 {
			t.Errorf("%d died, want %d", died.Load(), catches/2)
		}
	})
}

// TestGateLetsPass waits for a worker that does not come: afterwards no worker is stopped.
func TestGateLetsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if _, err := g.Catch(ctx, Granted, AnyKey); !errors.Is(err, ErrNobody) {
			t.Errorf("got %v", err)
		}
		if !g.pass(t.Context(), Granted, 1, 1, 1) || !g.pass(t.Context(), Loaded, 1, 1, 1) {
			t.Error("a worker was told to die")
		}
	})
}

func TestGateNeedsMemory(t *testing.T) {
	for _, memory := range [][]byte{
		nil, make([]byte, int(unsafe.Sizeof(gateWords{}))-1), make([]byte, int(unsafe.Sizeof(gateWords{}))+8)[1:],
	} {
		if _, err := GateIn(memory); err == nil {
			t.Errorf("%d bytes were enough", len(memory))
		}
	}
}

// TestAPlaceThatStaysEmptyIsAnError lets a worker die that cannot be replaced. The dead worker makes no more
// visits, its lock is closed, and Run returns the error.
func TestAPlaceThatStaysEmptyIsAnError(t *testing.T) {
	for name, reopen := range map[string]func(int) (locks.Lock, error){
		"nobody": nil, "no connection": func(int) (locks.Lock, error) { return nil, io.ErrUnexpectedEOF },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{acquire: func(int) error { return nil }}
				clock := history.NewClock(0)
				crew := Workers{
					Shape: Shape{Workers: 1, Keys: 1, Wait: time.Minute, TTL: time.Minute, End: time.Minute, First: 6},
					Clock: clock, Counter: newMemoryCounter(), Pages: Pages("", 1, false),
					Gate: NewGate(), Reopen: reopen,
					Lanes: []*history.Lane{history.NewLane(clock, 0, 6, 64, nil)}, Locks: []locks.Lock{s},
				}
				go func() {
					c, err := crew.Gate.Catch(t.Context(), Loaded, AnyKey)
					if err != nil {
						t.Error(err)
						return
					}
					c.Die()
				}()
				for crew.Gate.words.armed.Load() == 0 {
					<-time.After(time.Millisecond)
				}
				due := crew.Run(t.Context(), t.Context())
				if due.Err == nil || !strings.Contains(due.Err.Error(), "take the place of worker 6, which died") {
					t.Errorf("got %v", due.Err)
				}
				if reopen != nil && !errors.Is(due.Err, io.ErrUnexpectedEOF) {
					t.Errorf("%v hides its cause", due.Err)
				}
				if crew.Locks[0] != nil {
					t.Error("a closed lock is still there")
				}
				if took := clock.Now(); took > 30*time.Second {
					t.Errorf("the worker went on for %v", took)
				}
			})
		})
	}
}
