package topologies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// State is what a node's process is doing.
type State uint8

// The states.
const (
	Down State = iota // not started, or it has ended
	Up
	Paused // it keeps its memory and answers nothing: stopped by a signal, or asleep
)

// String is the state's name.
func (s State) String() string { return [...]string{"down", "up", "paused"}[s] }

// Life is what the suite knows of a node's process without asking the server.
type Life struct {
	State State
	RunID string // of the server, as it was when the suite had started it; empty for the embedded one
	Ended string // how the process ended without a planned fault; empty if it did not
	// Emptied is how often the suite has emptied the server.
	Emptied int
}

// Life tells what the process is doing, and whether it ended unexpectedly.
func (n *Node) Life() Life {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := Life{State: Up, RunID: n.runID, Emptied: n.emptied}
	switch {
	case !n.topology.foreign() && !n.alive():
		l.State = Down
		if n.process != nil && !n.killed {
			l.Ended = n.process.ProcessState.String()
		}
	case n.paused, n.asleep.Load() > 0:
		l.State = Paused
	}
	return l
}

// State tells what the process is doing.
func (n *Node) State() State { return n.Life().State }

func (n *Node) spawn() error {
	logFile, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd, err := n.command()
	if err != nil {
		return errors.Join(err, logFile.Close())
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.dir, logFile, logFile
	cmd.Env = append(cmd.Environ(), n.shimEnv()...)
	err = errors.Join(n.topology.spawner.Start(cmd), logFile.Close())
	if err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	n.topology.reaper.Watch(cmd.Process.Pid)
	n.process, n.ended, n.paused, n.killed = cmd, make(chan struct{}), false, false
	n.pid.Store(int64(cmd.Process.Pid))
	if n.topology.network != nil {
		n.gate = &gate{network: n.topology.network, node: n}
	}
	go func(ended chan struct{}, g *gate) {
		_ = cmd.Wait() // its state tells how it ended
		_ = endGroup(cmd.Process.Pid)
		g.close()
		close(ended)
	}(n.ended, n.gate)
	return nil
}

// errWrapped is the error of a program that starts the server as a process of its own.
var errWrapped = errors.New("a program around the server must exec it")

// Kill ends the process at once, like a crash: nothing is saved, connections break.
func (n *Node) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.topology.foreign() {
		return errForeign
	}
	if !n.alive() {
		return errors.New("not running")
	}
	if n.mini != nil {
		n.mini.close()
		n.mini = nil
		return nil
	}
	return n.finish(syscall.SIGKILL)
}

// finish ends the process and returns when it has ended; the caller holds the lock. A stopped process would be killed
// too, but it is continued first so that its end is not delayed.
func (n *Node) finish(with syscall.Signal) error {
	n.killed = true
	all := n.family()
	if err := errors.Join(n.signal(syscall.SIGCONT), n.signal(with)); err != nil {
		return err
	}
	<-n.ended
	return await(all)
}

// Pause stops the process without ending it: its connections stay, it answers nothing.
func (n *Node) Pause() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.topology.foreign() {
		return errForeign
	}
	if !n.alive() || n.paused {
		return errors.New("not running")
	}
	if n.mini != nil {
		return errors.New("the embedded server cannot be paused")
	}
	n.paused = true
	return n.signal(syscall.SIGSTOP)
}

// Resume lets a paused process go on where it was.
func (n *Node) Resume() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() || !n.paused {
		return errors.New("not paused")
	}
	n.paused = false
	return n.signal(syscall.SIGCONT)
}

// Sleep keeps the server from doing anything for a while, as a slow command would, and returns when it is awake. It
// takes that time and no more, however busy the machine is: a script would take what it gets of the processor.
func (n *Node) Sleep(ctx context.Context, d time.Duration) error {
	n.asleep.Add(1)
	defer n.asleep.Add(-1)
	if n.topology.foreign() {
		if err := n.Do(ctx, "CLIENT", "PAUSE", d.Milliseconds(), "ALL").Err(); err != nil {
			return err
		}
		<-time.After(d)
		return nil
	}
	return n.Do(ctx, "DEBUG", "SLEEP", d.Seconds()).Err()
}

func (n *Node) alive() bool {
	if n.mini != nil {
		return true
	}
	if n.process == nil {
		return false
	}
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// signal reaches the server and every process that it has started.
func (n *Node) signal(s syscall.Signal) error {
	all := n.family()
	err := syscall.Kill(-n.process.Process.Pid, s)
	for _, pid := range slices.Concat(all, n.family()) {
		_ = syscall.Kill(pid, s) // it may have ended
	}
	return err
}

// endGroup ends what a process that has just ended leaves behind of its group.
func endGroup(leader int) error { return syscall.Kill(-leader, syscall.SIGKILL) }
