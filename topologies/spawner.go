package topologies

import (
	"os/exec"
	"runtime"
)

// Spawner starts child processes that end with this process. It starts them from one operating-system thread and keeps
// that thread: Linux sends the parent-death signal when the thread that started a child ends. Children of ordinary
// goroutines would be killed whenever the runtime ends a thread.
type Spawner struct {
	requests chan spawn
	done     chan struct{}
}

type spawn struct {
	cmd *exec.Cmd
	err chan error
}

// OpenSpawner opens one. The caller closes it.
func OpenSpawner() *Spawner {
	s := &Spawner{requests: make(chan spawn), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for r := range s.requests {
			r.err <- r.cmd.Start()
		}
	}()
	return s
}

// Start starts a process in its own group, which an interrupt at the terminal does not reach. Only the credential among
// its attributes is used.
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

// Close ends the thread and with it, on Linux, every child that is left.
func (s *Spawner) Close() {
	close(s.requests)
	<-s.done
}
