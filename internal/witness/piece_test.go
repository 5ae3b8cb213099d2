package witness

import (
	"slices"
	"testing"

	"hammerlock/history"
)

// TestPieces: the pieces from a reader and its remaining operations form the same history as a reader with room for
// everything. It has as many operations, and the same causes of failures. No right lock is accused, even if the
// first pieces are missing.
func TestPieces(t *testing.T) {
	whole, same := 0, 0
	every := func(Lock) bool { return true }
	for seed := range uint64(60) {
		world := func() *world {
			w := newWorld(seed)
			w.plain, w.late = seed%2 == 1, []float64{0, 0.05, 0.2}[seed%3]
			w.run(2+int(seed%5), 60)
			return w
		}
		w := world()
		_, h := w.read(Options{Holder: Holder{By: Auto}})
		var all []*Piece
		r, _ := world().read(Options{Holder: Holder{By: Auto}, Rolling: true, Most: 100 + int(seed),
			Dropped: func(p *Piece) { all = append(all, p) }})
		all = append(all, r.Rest())
		head, want := &history.History{Header: h.Header}, failed(t, h)
		for n := range all {
			out := Join(head, all[n:], every)
			got := failed(t, out)
			if w.foreign == 0 && len(got) > 0 {
				t.Errorf("seed %d: behind piece %d a right run is accused: %v", seed, n, got)
			}
			if n > 0 {
				continue
			}
			if whole += len(want); slices.Equal(got, want) {
				same += len(want)
			}
			if len(out.Ops) != len(h.Ops) || all[len(all)-1].Number != len(all)-1 || len(all) < 2 {
				t.Errorf("seed %d: %d operations of %d, in %d pieces", seed, len(out.Ops), len(h.Ops), len(all))
			}
		}
		if none := Join(head, all, func(Lock) bool { return false }); len(none.Ops) > 0 {
			t.Errorf("seed %d: %d operations of no lock", seed, len(none.Ops))
		}
	}
	if same*10 < whole*9 || whole < 20 {
		t.Errorf("%d of %d causes are found in pieces", same, whole)
	}
}

// TestAReleaseThatIsDisownedLater: a release is already in a piece when its holder is answered that the lock
// is not its own. So the release was called by a client that held nothing.
func TestAReleaseThatIsDisownedLater(t *testing.T) {
	var all []*Piece
	r, _ := told(t, Options{Holder: Holder{By: Auto}, Rolling: true, Most: 100,
		Dropped: func(p *Piece) { all = append(all, p) }},
		"A 1 2 SET lock:1 a NX PX 20000 = OK", "! 3 SET lock:1 a PXAT +20001", "B 6 7 DEL lock:1 = 1", "! 8 DEL lock:1",
		"C 9 10 SET lock:1 c NX PX 20000 = OK", "! 11 SET lock:1 c PXAT +20009", "C 12 13 DEL lock:1 = 1",
		"! 14 DEL lock:1", "C 8000 8001 SET lock:2 d NX PX 100 = OK", "! 8002 SET lock:2 d PXAT +8100",
		"A 9000 9001 DEL lock:1 = 0")
	if len(all) == 0 || len(all[0].Ops) < 4 {
		t.Fatalf("%d pieces: the release is in none", len(all))
	}
	all = append(all, r.Rest())
	h := Join(&history.History{}, all, func(Lock) bool { return true })
	if got := failed(t, h); !slices.Contains(got, "exclusion: foreign-release") {
		t.Errorf("causes %q in %q", got, heard(h, "a", "c"))
	}
	if got := heard(h, "a", "c"); !slices.Contains(got, "release  ok") || !slices.Contains(got, "release a failed") {
		t.Errorf("operations %q", got)
	}
}
