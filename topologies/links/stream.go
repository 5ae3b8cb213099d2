package links

import (
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	chunkSize  = 16 << 10
	queueDepth = 1024 // length of the queue of a delayed path; when the queue is full, TCP slows the sender down
)

// stream copies the bytes of one direction of a connection. When a delay begins, it puts the bytes into a queue
// instead. The writer of the queue waits until each chunk is due.
type stream struct {
	c        *connection
	path     *path
	from, to Conn
	commands bool // the bytes go from a client to a node

	queue   chan chunk
	pending atomic.Int64 // number of chunks that were queued and not yet written
	last    time.Time    // time at which the last chunk of the queue is due
	writer  sync.WaitGroup
}

type chunk struct {
	bytes []byte
	due   time.Time
	held  *holds // the rule that delays the chunk; nil = none
}

func (s *stream) run() {
	err := s.copy()
	if s.commands {
		close(s.c.left)
	}
	if s.queue != nil {
		close(s.queue)
		s.writer.Wait()
	}
	// a blocked path does not pass on the end of the stream either
	if !s.c.passable(s.path) {
		return
	}
	if !errors.Is(err, io.EOF) || s.to.CloseWrite() != nil {
		s.c.end()
	}
}

func (s *stream) copy() error {
	buf := make([]byte, chunkSize)
	for {
		n, err := s.from.Read(buf)
		if n > 0 {
			if err := s.pass(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

var errMuted = errors.New("an answer is lost")

func (s *stream) pass(b []byte) error {
	v := s.path.verdict.Load()
	if s.commands {
		if len(v.loses) > 0 && !s.c.muted.Load() {
			s.c.mute(v.loses, b)
		}
	} else if s.c.muted.Load() {
		s.c.end()
		return errMuted
	}
	held := s.held(v, b)
	if len(v.delays) == 0 && s.pending.Load() == 0 && held == nil {
		return s.write(b)
	}
	return s.enqueue(b, v, held)
}

// write waits while the path is blocked, and then writes.
func (s *stream) write(b []byte) error {
	if !s.c.passable(s.path) {
		return net.ErrClosed
	}
	_, err := s.to.Write(b)
	return err
}

func (s *stream) enqueue(b []byte, v *verdict, held *holds) error {
	if s.queue == nil {
		s.queue = make(chan chunk, queueDepth)
		s.writer.Go(s.drain)
	}
	due := time.Now()
	for _, d := range v.delays {
		due = due.Add(d.draw())
	}
	if due.Before(s.last) {
		due = s.last
	}
	s.last = due
	s.pending.Add(1)
	select {
	case s.queue <- chunk{slices.Clone(b), due, held}:
		return nil
	case <-s.c.done:
		return net.ErrClosed
	}
}

func (s *stream) drain() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for c := range s.queue {
		if wait := time.Until(c.due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-s.c.done:
			}
		}
		if c.held != nil {
			c.held.wait(s.c, timer)
		}
		if s.write(c.bytes) != nil {
			s.c.end()
		}
		s.pending.Add(-1)
	}
}

// jitter draws the delays of one rule on one path. The same seed gives the same delays.
type jitter struct {
	latency, most time.Duration
	oneIn         int

	mu   sync.Mutex
	rand *rand.Rand
}

func newJitter(r Rule, from, to Party) *jitter {
	h := fnv.New64a()
	_, _ = io.WriteString(h, string(from)+">"+string(to))
	return &jitter{latency: r.Latency, most: r.Jitter, oneIn: r.OneIn, rand: rand.New(rand.NewPCG(r.Seed, h.Sum64()))}
}

func (j *jitter) draw() time.Duration {
	if j.most == 0 && j.oneIn < 2 {
		return j.latency
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.oneIn > 1 && j.rand.IntN(j.oneIn) > 0 {
		return 0
	}
	return j.latency + time.Duration(j.rand.Int64N(int64(j.most)+1))
}

// mute decides whether to drop the reply to a command, which is about to be forwarded.
func (c *connection) mute(loses []*rule, b []byte) {
	if !c.asks(b) {
		return
	}
	for _, r := range loses {
		if left := r.replies.Add(-1); left >= 0 {
			c.muted.Store(true)
			if left == 0 && r.Spent != nil {
				r.Spent()
			}
			return
		}
	}
}
