package history

import (
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"
)

func TestStampsOrderConcurrentCallers(t *testing.T) {
	clock := NewOrderedClock(0)
	const workers, each = 8, 20_000
	stamps := make([][]time.Duration, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				stamps[w] = append(stamps[w], clock.Stamp())
			}
		})
	}
	wg.Wait()
	seen := make(map[time.Duration]bool, workers*each)
	for w := range workers {
		for i, s := range stamps[w] {
			if seen[s] {
				t.Fatalf("stamp %v was given twice", s)
			}
			seen[s] = true
			if i > 0 && s <= stamps[w][i-1] {
				t.Fatalf("worker %d got %v after %v", w, s, stamps[w][i-1])
			}
		}
	}
}

// TestMergeIsCompleteAndOrdered drains while writers write: no operation may be lost, doubled or late.
func TestMergeIsCompleteAndOrdered(t *testing.T) {
	const workers, each = 5, 4000
	clock := NewOrderedClock(0)
	wake := make(chan struct{}, 1)
	lanes := []*Lane{NewSlowLane(clock, 0, 0, 64, wake), NewSlowLane(clock, 1, 1, 64, wake)}
	for w := len(lanes); w < workers; w++ {
		lanes = append(lanes, NewLane(clock, w, int32(w), 64, wake))
	}
	var wg sync.WaitGroup
	for _, l := range lanes {
		wg.Go(func() {
			for i := range each {
				op := l.Call(Acquire, int32(i))
				op.Value = int64(i)
				l.Return(op)
			}
		})
	}
	stopped := make(chan struct{})
	go func() { wg.Wait(); close(stopped) }()

	var got []Op
	var final time.Duration
	merge := NewMerge(clock, lanes)
	drain := func() {
		from := len(got)
		next := merge.Drain(func(op *Op) { got = append(got, *op) })
		for _, op := range got[from:] {
			if op.Return < final {
				t.Fatalf("%v returned at %v, but the history was complete to %v", op.ID, op.Return, final)
			}
		}
		final = max(final, next)
	}
	for running := true; running; {
		select {
		case <-wake:
			drain()
		case <-stopped:
			running = false
		}
	}
	merge.Flush(func(op *Op) { got = append(got, *op) })

	if len(got) != workers*each {
		t.Fatalf("got %d operations, want %d", len(got), workers*each)
	}
	next := make([]int64, workers)
	for i, op := range got {
		if i > 0 && op.Return <= got[i-1].Return {
			t.Fatalf("%v was handed on out of order", op.ID)
		}
		if op.Value != next[op.Worker] {
			t.Fatalf("worker %d: got operation %d, want %d", op.Worker, op.Value, next[op.Worker])
		}
		next[op.Worker]++
	}
}

func TestOpenCallHoldsLaterReturnsBack(t *testing.T) {
	clock := NewClock(0)
	a := NewLane(clock, 0, 0, 8, nil)
	b := NewLane(clock, 1, 1, 8, nil)
	merge := NewMerge(clock, []*Lane{a, b})
	count := func() (n int) { merge.Drain(func(*Op) { n++ }); return n }

	op := a.Call(Acquire, 0)
	b.Return(b.Call(Load, 0))
	if n := count(); n != 0 {
		t.Errorf("%d operations were final although an older call was open", n)
	}
	a.Return(op)
	if n := count(); n != 2 {
		t.Errorf("got %d operations after the call returned, want 2", n)
	}
}

// TestOpenCallOfASlowLaneHoldsNothingBack: a heal may take seconds, in which workers go on.
func TestOpenCallOfASlowLaneHoldsNothingBack(t *testing.T) {
	clock := NewOrderedClock(0)
	a := NewSlowLane(clock, 0, -1, 8, nil)
	b := NewLane(clock, 1, 1, 8, nil)
	merge := NewMerge(clock, []*Lane{a, b})
	var order []ID
	drain := func() time.Duration { return merge.Drain(func(op *Op) { order = append(order, op.ID) }) }

	heal := a.Call(Heal, -1)
	load := b.Call(Load, 0)
	returned := b.Return(load)
	want := []ID{load.ID, heal.ID}
	if final := drain(); final <= returned || !slices.Equal(order, want[:1]) {
		t.Errorf("complete to %v, with %v, although only a heal was open since before %v", final, order, returned)
	}
	a.Return(heal)
	if drain(); !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}

// TestASplitCallKeepsItsPlace: the first part returned before later operations of other lanes.
func TestASplitCallKeepsItsPlace(t *testing.T) {
	clock := NewOrderedClock(0)
	a, b := NewLane(clock, 0, 0, 8, nil), NewLane(clock, 1, 1, 8, nil)
	merge := NewMerge(clock, []*Lane{a, b})
	var order []ID
	drain := func() { merge.Drain(func(op *Op) { order = append(order, op.ID) }) }

	op := a.Call(Acquire, 0)
	first := op.ID
	later := b.Call(Load, 0)
	b.Return(later)
	drain()
	op = a.Split(op, op.Call+1)
	drain()
	if op.Kind != Acquire || op.ID == first || len(order) != 1 || order[0] != first {
		t.Errorf("%+v after %v", op, order)
	}
	a.Return(op)
	drain()
	if want := []ID{first, later.ID, op.ID}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}

// TestAnAbandonedLaneHoldsNothingBack: operations that a dead writer published are emitted in their place, even if
// they were not yet taken. Its open call comes at the end.
func TestAnAbandonedLaneHoldsNothingBack(t *testing.T) {
	clock := NewOrderedClock(0)
	dead := NewLane(clock, 0, 0, 8, nil)
	other := NewLane(clock, 1, 1, 8, nil)
	idle := NewLane(clock, 2, 2, 8, nil)
	merge := NewMerge(clock, []*Lane{dead, other, idle})
	var got []ID
	keep := func(op *Op) {
		got = append(got, op.ID)
	}
	record := func(l *Lane) ID {
		op := l.Call(Load, 0)
		id := op.ID
		l.Return(op)
		return id
	}
	want := []ID{record(other), record(dead)}
	merge.Drain(keep)
	want = append(want, record(dead), record(other), record(dead)) // taken after the death
	open := dead.Call(Acquire, 0)
	open.Outcome = OK // as if it was about to return
	at, last := open.Call, open.ID
	want = append(want, record(other), record(idle))
	if final := merge.Drain(keep); final != at || len(got) != 5 {
		t.Errorf("a call that is open since %v: complete to %v, %d operations", at, final, len(got))
	}
	merge.Abandon(0)
	if final := merge.Drain(keep); final <= at {
		t.Errorf("complete to %v, nothing but a dead call was open since %v", final, at)
	}
	if !slices.Equal(got, want) {
		t.Errorf("handed on %v, want %v", got, want)
	}
	want = append(want, record(other), last)
	var end Op
	merge.Flush(func(op *Op) { keep(op); end = *op })
	if !slices.Equal(got, want) || end.Return != Forever || end.Outcome != Unknown {
		t.Errorf("handed on %v, want %v; at the end %+v", got, want, end)
	}
}

func TestFlushReportsCallsWithoutReturn(t *testing.T) {
	clock := NewClock(0)
	lane := NewLane(clock, 0, 7, 8, nil)
	lane.Return(lane.Call(Acquire, 3))
	lane.Call(Store, 3).Outcome = OK
	var got []Op
	NewMerge(clock, []*Lane{lane}).Flush(func(op *Op) { got = append(got, *op) })
	if len(got) != 2 {
		t.Fatalf("got %d operations, want 2", len(got))
	}
	last := got[1]
	if last.Kind != Store || last.Return != Forever || last.Outcome != Unknown || last.Worker != 7 {
		t.Errorf("open call came out as %+v", last)
	}
}

func TestFullLaneWaitsForItsReader(t *testing.T) {
	clock := NewClock(0)
	wake := make(chan struct{}, 1)
	lane := NewLane(clock, 0, 0, 4, wake)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			lane.Return(lane.Call(Load, 0))
		}
	}()
	merge := NewMerge(clock, []*Lane{lane})
	n := 0
	for writing := true; writing; {
		select {
		case <-wake:
			merge.Drain(func(*Op) { n++ })
		case <-done:
			writing = false
		}
	}
	merge.Flush(func(*Op) { n++ })
	if n != 100 {
		t.Errorf("got %d operations, want 100", n)
	}
	if lane.Stalls() == 0 {
		t.Errorf("100 operations went through 4 slots without a stall")
	}
}

// TestCallAtTrustsAReading expects the given reading as the stamp, except with an ordered clock.
func TestCallAtTrustsAReading(t *testing.T) {
	lane := NewLane(NewClock(time.Hour), 0, 0, 8, nil)
	if op := lane.CallAt(Load, 1, 7); op.Call != 7 {
		t.Errorf("the call is at %v, the reading was 7 ns", op.Call)
	} else if at := lane.Return(op); at != op.Return || at < time.Hour {
		t.Errorf("returned %v, recorded %v", at, op.Return)
	}
	clock := NewOrderedClock(0)
	ordered := NewLane(clock, 0, 0, 8, nil)
	before := clock.Stamp()
	op := ordered.CallAt(Load, 1, before)
	if op.Call <= before {
		t.Errorf("an ordered call is at %v, the stamp before it was %v", op.Call, before)
	}
	ordered.ReturnAt(op, before)
	if op.Return <= op.Call {
		t.Errorf("called at %v, returned at %v", op.Call, op.Return)
	}
	if at := ordered.Mark(&Op{Kind: Lose}); at <= op.Return {
		t.Errorf("a mark returned at %v, after a return at %v", at, op.Return)
	}
	op = lane.CallAt(Load, 1, 7)
	lane.ReturnAt(op, 9)
	if op.Return != 9 {
		t.Errorf("returned at %v, the reading was 9 ns", op.Return)
	}
}

func TestHash(t *testing.T) {
	if Hash("") != 0 || Hash("a") == 0 || Hash("a") == Hash("b") {
		t.Errorf("Hash: %d %d %d", Hash(""), Hash("a"), Hash("b"))
	}
}

func TestIDNamesLaneAndNumber(t *testing.T) {
	lane := NewLane(NewClock(0), 41, 0, 4, nil)
	id := lane.Call(Load, 0).ID
	if id.Lane() != 41 || id.Number() != 1 || id.String() != "41.1" || ID(0).String() != "-" {
		t.Errorf("got lane %d, number %d, %q", id.Lane(), id.Number(), id)
	}
}

// BenchmarkRecord measures one operation of a visit. The writer makes two stamps, sets the outcome and publishes
// the operation. The reader takes operations out in batches.
func BenchmarkRecord(b *testing.B) {
	b.Run("call+return", func(b *testing.B) {
		clock := NewClock(0)
		wake := make(chan struct{}, 1)
		lane := NewLane(clock, 0, 0, 1<<10, wake)
		n := 0
		b.ReportAllocs()
		for b.Loop() {
			op := lane.Call(Load, 1)
			op.Outcome = OK
			lane.Return(op)
			if n++; n%256 == 0 { // the reader takes operations in batches
				lane.taken.Store(lane.written.Load() / 2)
			}
		}
	})
	b.Run("merge", func(b *testing.B) {
		clock := NewClock(0)
		lane := NewLane(clock, 0, 0, 1<<10, nil)
		merge := NewMerge(clock, []*Lane{lane})
		n := 0
		b.ReportAllocs()
		for b.Loop() {
			lane.Return(lane.Call(Load, 1))
			if n++; n%512 == 0 {
				merge.Drain(func(*Op) {})
			}
		}
	})
	b.ReportMetric(float64(unsafe.Sizeof(Op{})), "bytes/record")
}
