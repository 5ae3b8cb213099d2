package checker

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"hammerlock/history"
)

// TestLongHistories: if the arrays of a history lie in files, its verdicts are the same as with arrays in the heap.
// The test judges small histories of any kind, with faults, pauses, crashes and several processes. If memory is used
// after it was freed, the test crashes.
func TestLongHistories(t *testing.T) {
	verdicts := func(h history.History, large int) []Verdict {
		h.Space.Large = large
		h.Ops = clone(&h.Space, h.Ops)
		defer h.Space.Free()
		c, err := Prepare(&h)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Free()
		all, err := Judge(c)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	same := func(name string, seed int, h *history.History) {
		t.Helper()
		if heap, files := verdicts(*h, 0), verdicts(*h, 1); !reflect.DeepEqual(heap, files) {
			t.Fatalf("%s, seed %d: in files %+v; in the heap %+v", name, seed, files, heap)
		}
	}
	for seed := range many(800) {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		h := tiny(r.IntN)
		prepared(t, h)
		same("tiny", seed, h)
		same("lived", seed, lived(t, uint64(seed), nothingWrong))
		same("wrong", seed, lived(t, uint64(seed), wrong(seed%int(lateHolder)+1)))
	}
	for name, h := range map[string]*history.History{"synthetic": synthetic(5000), "processes": inProcesses(5000),
		"violated": violated(5000, 4, 20), "late": lateHolders(3000, 1e9),
		"refused writers": refusedWriters(2000), "for ever": heldForEver(2000)} {
		same(name, 0, h)
	}
}
