package topologies

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Line is the network path of a process to all servers. While it is cut, nothing passes and nothing fails, as with an
// unplugged cable. A connection that was used meanwhile stays mute for ever. A nil Line is never cut.
type Line struct{ cut atomic.Bool }

// Cut cuts the line, or restores it.
func (l *Line) Cut(cut bool) { l.cut.Store(cut) }

func (l *Line) isCut() bool { return l != nil && l.cut.Load() }

// dial blocks until its timeout if the line is cut.
func (l *Line) dial(ctx context.Context, within time.Duration) error {
	if !l.isCut() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	<-ctx.Done()
	return os.ErrDeadlineExceeded
}

// Via replaces the dial function of the site's clients, for servers that are in no network.
func (s *Site) Via(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Site {
	s.via = dial
	return s
}

// Over returns the site with a line on which all its new connections depend.
func (s *Site) Over(l *Line) *Site {
	s.line = l
	return s
}
