package topologies

import (
	"os/exec"
	"runtime"
)

// nursery starts processes from one operating-system thread and keeps that thread. Linux sends the
// parent-death signal when the thread that started a child ends, not the process: from ordinary goroutines
// children would die at random, when the runtime gives a thread up.
type nursery struct {
	births chan birth
	done   chan struct{}
}

type birth struct {
	cmd *exec.Cmd
	err chan error
}

func openNursery() *nursery {
	n := &nursery{births: make(chan birth), done: make(chan struct{})}
	go func() {
		defer close(n.done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for b := range n.births {
			b.err <- b.cmd.Start()
		}
	}()
	return n
}

func (n *nursery) start(cmd *exec.Cmd) error {
	b := birth{cmd, make(chan error)}
	n.births <- b
	return <-b.err
}

// close ends the thread and with it, on Linux, every child that is left.
func (n *nursery) close() {
	close(n.births)
	<-n.done
}
