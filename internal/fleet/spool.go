package fleet

import (
	"sync"
	"time"
)

// Limits of a spool: the bytes that it keeps, the number of frames that are sent without an acknowledgement, and the
// time after which a frame is sent again.
const (
	spoolMost = 256 << 20
	window    = 16
	resend    = 2 * time.Second
)

// spool keeps an agent's frames until the coordinator has written them.
type spool struct {
	nc *bus

	mu       sync.Mutex
	frames   [][]byte // frames[0] has the number written+1
	bytes    int
	written  uint64
	received uint64
	sent     uint64    // number of the last frame that was sent
	at       time.Time // time of the last frame sent or acknowledged
	lost     string    // reason why the coordinator accepts no more frames; empty = it still accepts them
	moved    chan struct{}
}

func newSpool(nc *bus) *spool { return &spool{nc: nc, moved: make(chan struct{}, 1)} }

// add keeps a frame, and sends it when fewer than window frames are unacknowledged. The number of the frame is one more
// than that of the previous frame.
func (s *spool) add(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = append(s.frames, b)
	s.bytes += len(b)
	s.push()
}

func (s *spool) push() {
	last := s.written + uint64(len(s.frames))
	for s.sent = max(s.sent, s.received, s.written); s.sent < last && s.sent < max(s.received,
		s.written)+window; s.sent++ {
		if s.nc.Publish(frameSubject, s.frames[s.sent-s.written]) != nil {
			return // there is no connection; a later push tries again
		}
		s.at = time.Now()
	}
}

// take handles an acknowledgement.
func (s *spool) take(a ack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Lost != "" {
		s.lost = a.Lost
	}
	if a.Received > s.received {
		s.received, s.at = a.Received, time.Now()
	}
	for s.written < a.Written && len(s.frames) > 0 {
		s.bytes -= len(s.frames[0])
		s.frames = s.frames[1:]
		s.written++
	}
	s.push()
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// again resends frames whose acknowledgement is overdue.
func (s *spool) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent > s.received && time.Since(s.at) > resend {
		s.sent = s.received
	}
	s.push()
}

func (s *spool) full() bool { return s.kept() >= spoolMost }

// kept returns the number of bytes that are not written yet.
func (s *spool) kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// state returns the number of frames so far, and how many of them the coordinator has written. If the coordinator
// accepts no more frames, lost is the reason; otherwise lost is empty.
func (s *spool) state() (all, written uint64, lost string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written + uint64(len(s.frames)), s.written, s.lost
}
