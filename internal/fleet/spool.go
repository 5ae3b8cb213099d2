package fleet

import (
	"sync"
	"time"
)

// How much an agent keeps that is not written yet, how many frames are under way at a time, and after what time one
// that was not received is sent again.
const (
	spoolMost = 256 << 20
	window    = 16
	resend    = 2 * time.Second
)

// spool keeps an agent's frames until the coordinator has written them.
type spool struct {
	nc *bus

	mu       sync.Mutex
	frames   [][]byte // the first is number written+1
	bytes    int
	written  uint64
	received uint64
	sent     uint64    // the last frame that was sent and may be on its way
	at       time.Time // when something was sent or received last
	lost     string    // why the coordinator takes nothing more
	moved    chan struct{}
}

func newSpool(nc *bus) *spool { return &spool{nc: nc, moved: make(chan struct{}, 1)} }

// add keeps a frame and sends it as soon as there is room on the way. Its number is one more than that of the last.
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
			return // there is no connection: again later
		}
		s.at = time.Now()
	}
}

// take reads how far the coordinator is.
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

// again sends once more what should have been received by now.
func (s *spool) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent > s.received && time.Since(s.at) > resend {
		s.sent = s.received
	}
	s.push()
}

func (s *spool) full() bool { return s.kept() >= spoolMost }

// kept is how many bytes are not written yet.
func (s *spool) kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// state is how many frames there were, and how many of them are written; lost says why no more will be.
func (s *spool) state() (all, written uint64, lost string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written + uint64(len(s.frames)), s.written, s.lost
}
