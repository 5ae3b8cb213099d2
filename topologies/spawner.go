package topologies

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one operating-system thread and keeps that thread. Linux sends the parent-death signal
// when the thread that started a child ends, not the process: children of ordinary goroutines would be killed whenever
// the runtime ends a thread.
type spawner struct {
	requests chan spawn
	done     chan struct{}
}

type spawn struct {
	cmd *exec.Cmd
	err chan error
}

func openSpawner() *spawner {
	s := &spawner{requests: make(chan spawn), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for r := range s.requests {
			r.err <- r.cmd.Start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	r := spawn{cmd, make(chan error)}
	s.requests <- r
	return <-r.err
}

// close ends the thread and with it, on Linux, every child that is left.
func (s *spawner) close() {
	close(s.requests)
	<-s.done
}
