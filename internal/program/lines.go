package program

import (
	"sync"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/wire"
	"hammerlock/internal/witness"
)

// mostLines limits the lines that wait to be printed. Beyond it, lines are dropped, because a slow output must not
// slow the watch down.
const mostLines = 1000

// lines keeps the output of a watch until the next tick. The goroutines that read traffic must not wait for the
// output.
type lines struct {
	mu     sync.Mutex
	all    []line
	missed int
}

type line struct {
	text      string
	violation bool
}

func (l *lines) add(text string, violation bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == mostLines {
		l.missed++
		return
	}
	l.all = append(l.all, line{text, violation})
}

// tell prints the lines that wait.
func (s *Source) tell() {
	s.lines.mu.Lock()
	all, missed := s.lines.all, s.lines.missed
	s.lines.all, s.lines.missed = nil, 0
	s.lines.mu.Unlock()
	if missed > 0 {
		all = append(all, line{human.Quantity(missed, "line") + " more came too fast to be told", false})
	}
	for _, l := range all {
		if s.spec.TapOnly {
			s.spec.Tell(l.text, l.violation)
		} else {
			s.spec.Say(l.text)
		}
	}
}

// hearing receives all traffic of a watch. It passes the traffic on to the Reader, and reports gaps in a stream to
// the user.
type hearing struct {
	*witness.Reader
	source *Source
}

// Event implements wire.Sink.
func (h hearing) Event(e wire.Event) {
	h.Reader.Event(e)
	s := h.source
	x := s.servers[e.Server]
	switch e.Kind {
	case wire.TapBegan:
		x.up.Store(true)
	case wire.TapLost:
		x.up.Store(false)
	}
	if s.spec.Command != "" || s.spec.Service || s.until.Load() > 0 {
		return // a planned fault or the end of the program explains the gap
	}
	at := s.started.Add(e.At).UTC().Format(time.RFC3339Nano) + " " + x.Addrs[0] + ": "
	switch {
	case e.Kind == wire.TapLost:
		x.lost = e.At
		s.lines.add(at+"its stream is not read any more: "+e.Text, false)
	case e.Kind == wire.TapBegan && x.lost > 0:
		what := "nothing is missing"
		switch {
		case e.Another:
			what = "it has another history, and what was done meanwhile was not seen"
		case e.Missing:
			what = "what was done meanwhile was not seen"
		}
		s.lines.add(at+"its stream is read again after "+human.Duration(e.At-x.lost)+": "+what, false)
		x.lost = 0
	}
}
