package topologies

import (
	"syscall"
	"testing"
)

// TestABlockIsFreeWhileNoSocketListens: a bound socket that does not listen, such as a copy in a child process,
// does not prevent a server from using the port.
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
		copied, err := bind(b.ip(maxNodes-1), port)
		if err != nil || !b.free() {
			t.Fatalf("%v, or not free for a socket that does not listen", err)
		}
		l, err := listen(b.ip(maxNodes-1), port)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Close(copied); err != nil {
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
