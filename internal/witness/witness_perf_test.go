package witness

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"hammerlock/internal/wire"
)

// inFlight reads a lock of a program with all commands in flight: each is sent before the first is answered. Of each
// three commands, one is granted the lock, one is refused, and one releases it.
func inFlight(tb testing.TB, commands int) {
	r := NewReader(Options{Locks: []string{"lock:*"}, Epoch: time.UnixMilli(1_700_000_000_000), Most: 1 << 22})
	r.Event(wire.Event{Kind: wire.TapBegan})
	asked := make([]*wire.Request, commands)
	for i := range asked {
		token := strconv.Itoa(i / 3)
		args := []string{"SET", "lock:1", token, "NX", "PX", "60000"}
		switch i % 3 {
		case 1:
			args[2] += "-refused"
		case 2:
			args = []string{"DEL", "lock:1"}
		}
		asked[i] = &wire.Request{Conn: 1, Number: int64(i), Args: args, Call: time.Duration(i + 1)}
		r.Sent(asked[i])
	}
	at := time.Duration(commands)
	for i, q := range asked {
		at += time.Microsecond
		switch i % 3 {
		case 0:
			until := strconv.FormatInt(1_700_000_060_000+at.Milliseconds(), 10)
			r.Effect(&wire.Effect{At: at, Args: []string{"SET", "lock:1", q.Args[2], "PXAT", until}})
			q.Reply = wire.Reply{Kind: wire.Simple, Text: "OK"}
		case 1:
			q.Reply = wire.Reply{Kind: wire.Nil}
		case 2:
			r.Effect(&wire.Effect{At: at, Args: q.Args})
			q.Reply = wire.Reply{Kind: wire.Integer, Int: 1}
		}
		at += time.Microsecond
		q.Return = at
		r.Request(q)
	}
	r.Tick(at + time.Minute)
	want := int64(commands / 3)
	if sums, _ := r.Sums(); sums.Grants != want || sums.Releases != want || sums.Refused != want || sums.Ambiguous > 0 {
		tb.Errorf("of %d commands: %+v", commands, sums)
	}
}

// least returns the time for a command, in the best of three turns.
func least(tb testing.TB, commands int) time.Duration {
	all := []time.Duration{}
	for range 3 {
		begun := time.Now()
		inFlight(tb, commands)
		all = append(all, time.Since(begun)/time.Duration(commands))
	}
	return slices.Min(all)
}

// TestCommandsInFlight: they are read correctly, however many there are.
func TestCommandsInFlight(t *testing.T) {
	inFlight(t, 3000)
}

// TestAloneCommandsInFlight: a command takes no longer if ten times as many are in flight.
func TestAloneCommandsInFlight(t *testing.T) {
	if a, b := least(t, 6000), least(t, 60_000); b > 4*a {
		t.Errorf("%v a command of 6000 in flight, %v of 60 000", a, b)
	}
}

// BenchmarkWitnessInFlight measures the reader's time for a command of a pipeline.
func BenchmarkWitnessInFlight(b *testing.B) {
	for _, n := range []int{6000, 60_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(least(b, n).Nanoseconds()), "ns/command")
			}
		})
	}
}
