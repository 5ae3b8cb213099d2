package driver

import (
	"fmt"
	"time"
)

// A ping is sent every pingEvery. While its reply is awaited, the time in which this process runs is measured in steps
// of beat. If the wait is longer than that time by more than stall, the machine was paused. Then the ping says nothing
// about the program.
const (
	pingEvery = 50 * time.Millisecond
	beat      = 10 * time.Millisecond
	stall     = 100 * time.Millisecond
)

// Ping is a round trip to the program while workers use it.
type Ping struct {
	Began time.Time
	Took  time.Duration
}

// Watch pings the program until done is closed, and passes every result to tell. It gives up a program that does not
// reply to a ping.
func (p *Process) Watch(done <-chan struct{}, tell func(Ping)) {
	next := time.Tick(pingEvery)
	for {
		select {
		case <-done:
			return
		case <-p.done:
			return
		case <-next:
		}
		if g, ok := p.Ping(done); ok {
			tell(g)
		}
	}
}

// Ping sends one ping and waits for its reply. It returns false if no reply comes, or if the machine was paused in the
// meantime. A program that does not reply in time is given up.
func (p *Process) Ping(done <-chan struct{}) (g Ping, ok bool) {
	g.Began = time.Now()
	c := newCall(opPing, true)
	if p.send(request{Op: opPing}, c) != nil {
		return g, false
	}
	next := time.Tick(beat)
	var ran time.Duration
	for last := g.Began; ; {
		answered := false
		select {
		case <-done:
			return g, false
		case <-p.done:
			return g, false
		case <-c.answer:
			answered = true
		case <-next:
		}
		now := time.Now()
		ran += min(now.Sub(last), 2*beat)
		last, g.Took = now, now.Sub(g.Began)
		if answered {
			return g, g.Took-ran <= stall
		}
		if ran > p.patience {
			p.fail(p.silence())
			return g, false
		}
	}
}

// silence is the error of a program that does not reply.
func (p *Process) silence() error {
	if n := p.output.bytes.Load(); n > 0 {
		return fmt.Errorf("it has not answered a ping for %s, and has written %d bytes without a newline: "+
			"every message ends with one, and standard output is flushed",
			p.patience, n)
	}
	return fmt.Errorf("it has not answered a ping for %s: it must answer while calls are under way, "+
		"and flush its standard output after every line", p.patience)
}
