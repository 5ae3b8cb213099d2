package driver

import (
	"syscall"
	"time"
)

// How long a program has to end after each step: it is asked to, its input ends, it gets a signal.
const endTimeout = 700 * time.Millisecond

// Close ends the program with everything that it has started. It returns when nothing of that is left.
func (p *Process) Close() { p.closing.Do(p.end) }

func (p *Process) end() {
	if !p.failed() {
		p.goodbye()
	}
	_ = p.input.Close() // whatever it answers is not read any more
	if !p.over() {
		_ = p.signal(syscall.SIGTERM)
		p.over()
	}
	_ = p.signal(syscall.SIGKILL) // those that it started are in its group
	<-p.ended
	_ = p.output.Close() // somebody who left the group may hold the other ends
	_ = p.errors.Close()
	<-p.read
	<-p.tail.done
	for _, r := range p.relays {
		_ = r.Close()
	}
	p.spawner.Close()
	_ = p.guard.Close() // it ends those that have left the group
}

// goodbye asks the program to end. It need not answer.
func (p *Process) goodbye() {
	c := newCall(opClose, true)
	if p.send(request{Op: opClose}, c) != nil {
		return
	}
	select {
	case <-c.answer:
	case <-p.ended:
	case <-p.done:
	case <-time.After(endTimeout):
	}
}

// over waits for the end of the program, for a while.
func (p *Process) over() bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(endTimeout):
		return false
	}
}

// signal reaches the program and everything in its group. If that is gone there is nobody to be reached.
func (p *Process) signal(s syscall.Signal) error { return syscall.Kill(-p.PID(), s) }
