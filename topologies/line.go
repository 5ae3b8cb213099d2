package topologies

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Line simulates the network cable between one process and all servers. While it is unplugged, nothing is delivered
// and nothing fails. A connection that was used during that time stays dead. A nil Line is never unplugged.
type Line struct{ cut atomic.Bool }

// Cut unplugs the line (true) or plugs it in again (false).
func (l *Line) Cut(cut bool) { l.cut.Store(cut) }

func (l *Line) isCut() bool { return l != nil && l.cut.Load() }

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

// Over makes all new connections of the site go through a line, and returns the site.
func (s *Site) Over(l *Line) *Site {
	s.line = l
	return s
}
