package topologies

import (
	"os/exec"
	"runtime"
)

// Spawner starts child processes that end with this process. Linux sends the parent-death signal when the thread that
// started the child ends, and Go's runtime may end a thread at any time. So a Spawner starts all children from one
// thread, which it keeps.
type Spawner struct {
	requests chan spawn
	done     chan struct{}
}

type spawn struct {
	cmd *exec.Cmd
	err chan error
}

// OpenSpawner starts a Spawner, which the caller must close.
func OpenSpawner() *Spawner {
	s := &Spawner{requests: make(chan spawn), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // never unlocked, so the thread ends with this goroutine
		for r := range s.requests {
			r.err <- r.cmd.Start()
		}
	}()
	return s
}

// Start starts a process in its own group, so that Ctrl-C at the terminal does not reach it. It uses only the
// Credential of cmd.SysProcAttr.
func (s *Spawner) Start(cmd *exec.Cmd) error {
	attr := childAttr()
	if cmd.SysProcAttr != nil {
		attr.Credential = cmd.SysProcAttr.Credential
	}
	cmd.SysProcAttr = attr
	r := spawn{cmd, make(chan error)}
	s.requests <- r
	return <-r.err
}

// Close ends the thread. On Linux every child that still runs ends too.
func (s *Spawner) Close() {
	close(s.requests)
	<-s.done
}
