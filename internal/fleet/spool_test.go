package fleet

import (
	"testing"
)

// TestASpoolIsBounded: a spool keeps unwritten frames, drops written ones, and reports when it is full.
func TestASpoolIsBounded(t *testing.T) {
	s := newSpool(&bus{}) // without a connection nothing is sent
	big := make([]byte, spoolMost/4)
	for range 4 {
		if s.full() {
			t.Fatal("full too early")
		}
		s.add(big)
	}
	s.take(ack{Received: 4})
	if all, written, _ := s.state(); !s.full() || all != 4 || written != 0 {
		t.Errorf("received is not written: %d of %d", written, all)
	}
	s.take(ack{Received: 4, Written: 3})
	s.take(ack{Received: 2, Written: 1}) // an old acknowledgement
	if all, written, _ := s.state(); s.full() || all != 4 || written != 3 || len(s.frames) != 1 || s.bytes != len(big) {
		t.Errorf("%d of %d are written, %d bytes kept", written, all, s.bytes)
	}
	s.take(ack{Lost: "it was silent"})
	if _, _, lost := s.state(); lost != "it was silent" {
		t.Errorf("lost: %q", lost)
	}
}

// TestTokensAreLong: a token that could be guessed is refused.
func TestTokensAreLong(t *testing.T) {
	if _, err := ParseToken("secret\n"); err == nil {
		t.Error("a short token was taken")
	}
	if got, err := ParseToken(string(NewToken()) + "\n"); err != nil || len(got) < leastToken {
		t.Errorf("got %q, %v", got, err)
	}
}
