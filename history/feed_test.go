package history

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBatchesComeBack encodes and decodes operations of every kind: returned, open, and whole visits.
func TestBatchesComeBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var ops []Op
		at := time.Duration(0)
		for n := range rapid.IntRange(0, 30).Draw(r, "ops") {
			at += time.Duration(rapid.IntRange(0, 1e6).Draw(r, "later"))
			op := Op{ID: ID(3<<idLaneShift | n + 1), Kind: Kind(rapid.IntRange(int(Skip), int(Incident)).Draw(r,
				"kind")), Call: at,
				Return: at + time.Duration(rapid.IntRange(0, 1e6).Draw(r, "took")), Worker: 2, Key: -1, Process: 4}
			switch rapid.IntRange(0, 3).Draw(r, "which") {
			case 0:
				op.Kind, op.Began, op.Released, op.Until = Visit, at, op.Return, at+1
			case 1:
				op.Return = Forever
			case 2:
				op.Hold, op.Seen, op.Token, op.Fence, op.Value, op.TTL, op.Until, op.Outcome = op.ID, 77, 1<<63+5, -4,
					9, time.Second, at+time.Second, OK
			}
			ops = append(ops, op)
		}
		b := AppendOps([]byte("head"), ops)
		got, err := ParseOps(b[4:])
		if err != nil || !slices.Equal(got, ops) {
			r.Fatalf("%d bytes: %v\ngot  %+v\nwant %+v", len(b), err, got, ops)
		}
		if len(ops) > 0 {
			if _, err := ParseOps(b[4 : len(b)-1]); err == nil {
				r.Fatal("a torn batch was read")
			}
		}
	})
}

// TestFeedsHoldTheHistoryBack merges a lane and a feed. An operation is emitted only when the feed is complete up
// to its return. A feed that has ended delays nothing.
func TestFeedsHoldTheHistoryBack(t *testing.T) {
	clock := NewOrderedClock(time.Hour)
	lane, feed := NewLane(clock, 0, 0, 16, nil), &Feed{}
	m := NewMerge(clock, []*Lane{lane})
	m.Feeds = []*Feed{feed}
	var got []ID
	drain := func() time.Duration { return m.Drain(func(op *Op) { got = append(got, op.ID) }) }
	feed.Add([]Op{{ID: 101, Return: 10}, {ID: 102, Return: 20}}, []Op{{ID: 104, Kind: Store, Call: 15}}, 20)
	lane.Return(lane.Call(Load, 0))
	if final := drain(); final != 20 || !slices.Equal(got, []ID{101}) {
		t.Errorf("complete up to %d: %v", final, got)
	}
	// the second call began after the time up to which the feed is complete
	feed.Add(nil, []Op{{ID: 104, Kind: Store, Call: 15}, {ID: 106, Kind: Acquire, Call: 31}}, 30)
	if drain(); !slices.Equal(got, []ID{101, 102}) || feed.upTo != 30 {
		t.Errorf("got %v, complete up to %d", got, feed.upTo)
	}
	feed.End()
	if drain(); len(got) != 3 || got[2].Lane() != 0 {
		t.Errorf("the feed has ended: got %v", got)
	}
	var open []Op
	m.Flush(func(op *Op) { open = append(open, *op) })
	if len(open) != 1 || open[0].ID != 104 || open[0].Return != Forever || open[0].Outcome != Unknown {
		t.Errorf("open calls: %+v", open)
	}
}

// TestOpenCallsAreShown expects Open to emit the open calls and no others.
func TestOpenCallsAreShown(t *testing.T) {
	clock := NewOrderedClock(0)
	one, other := NewLane(clock, 0, 0, 4, nil), NewLane(clock, 1, 1, 4, nil)
	m := NewMerge(clock, []*Lane{one, other})
	one.Return(one.Call(Load, 3))
	call := one.Call(Store, 3)
	var got []Op
	m.Open(func(op *Op) { got = append(got, *op) })
	if len(got) != 1 || got[0].ID != call.ID || got[0].Return != Forever {
		t.Errorf("got %+v", got)
	}
}
