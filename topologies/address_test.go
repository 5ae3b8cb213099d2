package topologies

import "testing"

// TestABlockIsFreeWhileNoSocketListens: a socket that has an address and does not listen is what is left of trying it.
func TestABlockIsFreeWhileNoSocketListens(t *testing.T) {
	b, err := claimBlock(false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.release(); err != nil {
			t.Error(err)
		}
	})
	front, back := b.port(maxNodes - 1)
	for _, port := range []int{front, back, front + busOffset, back + busOffset} {
		l, err := listen(b.ip(maxNodes-1), port)
		if err != nil {
			t.Fatal(err)
		}
		if b.free() {
			t.Errorf("free while %v is listened on", l.Addr())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if !b.free() {
			t.Errorf("not free when %v is listened on no more", l.Addr())
		}
	}
}
