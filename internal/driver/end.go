package driver

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"hammerlock/history"
)

// endTimeout is how long a program may take to end after each step: a request, the end of its input, a signal.
const endTimeout = 700 * time.Millisecond

// Close ends the program with everything that it has started, and returns when nothing of that is left.
func (p *Process) Close() {
	if p != nil {
		p.closing.Do(p.end)
	}
}

func (p *Process) end() {
	if !p.failed() {
		p.goodbye()
	}
	_ = p.input.Close() // the program reads the end of its input
	if !p.over() {
		_ = p.child.Stop(endTimeout)
	}
	_ = p.output.Close() // a process that has left the group may hold the other ends
	_ = p.errors.Close()
	<-p.read
	<-p.tail.done
	for _, r := range p.relays {
		_ = r.Close()
	}
	_ = p.child.Close()
}

// goodbye asks the program to end. It need not reply.
func (p *Process) goodbye() {
	c := newCall(opClose, true)
	if p.send(request{Op: opClose}, c) != nil {
		return
	}
	select {
	case <-c.answer:
	case <-p.child.Ended():
	case <-p.done:
	case <-time.After(endTimeout):
	}
}

// over waits up to endTimeout for the end of the program. It returns whether the program has ended.
func (p *Process) over() bool {
	select {
	case <-p.child.Ended():
		return true
	case <-time.After(endTimeout):
		return false
	}
}

// Broke returns how and when the program ended on its own. If the program survived a panic, Broke returns
// what the program printed, and when. It returns false if neither happened.
func (p *Process) Broke() (b history.Breakdown, at time.Time, broke bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broke.Text != "" {
		return p.broke, p.brokeAt, true
	}
	b = history.Breakdown{Lives: true,
		Text: "the program that has the lock goes on, and said that a part of it panicked"}
	b.Said, at = p.tail.alarmed()
	return b, at, b.Said != nil
}

// Last returns the last line that the program wrote to its standard error.
func (p *Process) Last() string {
	lines := p.tail.last()
	return lines[len(lines)-1]
}

// faulty lists the signals by which a program ends through its own fault.
var faulty = []syscall.Signal{syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL,
	syscall.SIGTRAP, syscall.SIGSYS}

// ownEnd notes how the program has ended, unless it was killed or out of memory.
func (p *Process) ownEnd() {
	state, ok := p.child.End().Sys().(syscall.WaitStatus)
	said, _ := p.tail.alarmed()
	if said == nil {
		said = p.tail.last()
	}
	starved := slices.ContainsFunc(said, func(l string) bool {
		return strings.Contains(l, "out of memory") || strings.Contains(l, "MemoryError")
	})
	if !ok || starved || !state.Exited() && !slices.Contains(faulty, state.Signal()) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broke, p.brokeAt = history.Breakdown{Text: fmt.Sprintf("the program that has the lock ended unexpectedly (%s)",
		p.child.End()), Said: said}, time.Now()
}
