package topologies

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Line is the way of a process to all servers. While it is cut, nothing comes through, without an error, as when a
// cable is out; a connection that was used meanwhile stays mute for ever. A nil Line is never cut.
type Line struct{ cut atomic.Bool }

// Cut cuts or mends it.
func (l *Line) Cut(cut bool) { l.cut.Store(cut) }

func (l *Line) isCut() bool { return l != nil && l.cut.Load() }

// dial is what a dial meets: no answer if the line is cut.
func (l *Line) dial(ctx context.Context, within time.Duration) error {
	if !l.isCut() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	<-ctx.Done()
	return os.ErrDeadlineExceeded
}

// Via lets a function make all connections of clients to the site, where its servers are in no network.
func (s *Site) Via(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Site {
	s.via = dial
	return s
}

// Over lets all connections of clients to the site, made from now on, go over a line.
func (s *Site) Over(l *Line) *Site {
	s.line = l
	return s
}
