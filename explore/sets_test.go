package explore

import (
	"slices"
	"testing"

	"hammerlock/history"
)

// TestTheFirstVisitsCross: two clients request two pages in opposite order, and each page is judged.
func TestTheFirstVisitsCross(t *testing.T) {
	o := Defaults
	s, err := play(t, find(t, "multi"), &o, newKit(), nil, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := make([][]int32, 2) // by client: the pages of its first try
	for client := range int32(2) {
		for lane := client; lane < 4; lane += 2 {
			n := slices.IndexFunc(s.history.Ops, func(op history.Op) bool {
				return op.Kind == history.Acquire && op.Worker == lane
			})
			if n < 0 {
				t.Fatalf("worker %d never asked for a page", lane)
			}
			first[client] = append(first[client], s.history.Ops[n].Key)
		}
	}
	if !slices.Equal(first[0], []int32{1, 0}) || !slices.Equal(first[1], []int32{0, 1}) {
		t.Errorf("the first visits name the pages %v, want them in another order", first)
	}
	stored := map[int32]int64{}
	for _, op := range s.history.Ops {
		switch {
		case op.Kind == history.Store && op.Outcome == history.OK:
			stored[op.Key]++
		case op.Kind == history.Final && op.Value != stored[op.Key]:
			t.Errorf("page %d has %d views at the end, after %d stores", op.Key, op.Value, stored[op.Key])
		}
	}
	if stored[0] == 0 || stored[1] == 0 {
		t.Errorf("got the stores %v, want some of both pages", stored)
	}
}
