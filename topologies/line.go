package topologies

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Line simulates the network cable between one process and all servers. While it is unplugged, nothing is delivered and
// nothing fails. A connection that was used meanwhile stays dead. A nil Line is never unplugged.
type Line struct{ cut atomic.Bool }

// Cut unplugs the line, or plugs it in again.
func (l *Line) Cut(cut bool) { l.cut.Store(cut) }

func (l *Line) isCut() bool { return l != nil && l.cut.Load() }

// dial waits for the dial timeout if the line is unplugged.
func (l *Line) dial(ctx context.Context, within time.Duration) error {
	if !l.isCut() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	<-ctx.Done()
	return os.ErrDeadlineExceeded
}

// Via replaces the dial function of the site's clients, for servers in memory.
func (s *Site) Via(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Site {
	s.via = dial
	return s
}

// Over returns the site with a line that all its new connections go through.
func (s *Site) Over(l *Line) *Site {
	s.line = l
	return s
}
