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

// State tells whether a process runs.
type State uint8

// The states.
const (
	Down State = iota // not started, or ended
	Up
	Paused // the process keeps its memory and answers nothing, because of SIGSTOP or a command that sleeps
)

// String returns the state's name.
func (s State) String() string { return [...]string{"down", "up", "paused"}[s] }

// Life is what the suite knows about a node's process without a request to the server.
type Life struct {
	State State
	RunID string // run id of the server at its start; empty for an in-memory server
	Ended string // how the process ended; empty if it runs or the suite ended it
	// Emptied is the number of times that the suite has deleted all keys of the server.
	Emptied int
}

func (n *Node) Life() Life {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := Life{State: Up, RunID: n.runID, Emptied: n.emptied}
	switch {
	case !n.topology.foreign() && !n.alive():
		l.State = Down
		if n.child != nil && !n.killed {
			l.Ended = n.child.End().String()
		}
	case n.paused, n.asleep.Load() > 0:
		l.State = Paused
	}
	return l
}

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
	g := n.gate
	if n.topology.network != nil {
		g = &gate{network: n.topology.network, node: n}
	}
	child, err := startChild(cmd, n.topology.spawner, n.topology.reaper, func() { g.close() })
	if err = errors.Join(err, logFile.Close()); err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	n.child, n.gate, n.paused, n.killed = child, g, false, false
	n.pid.Store(int64(child.PID()))
	return nil
}

// errWrapped means that the configured program starts the server as a child process. It must exec the server.
var errWrapped = errors.New("a program around the server must exec it")

// Kill sends SIGKILL, like a crash: nothing is saved, and connections break.
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

// finish sends a signal and waits for the end of the process. Before that, it continues the process, because a
// stopped process would not react. The caller holds the mutex.
func (n *Node) finish(with syscall.Signal) error {
	n.killed = true
	all := n.family()
	if err := errors.Join(n.signal(syscall.SIGCONT), n.signal(with)); err != nil {
		return err
	}
	<-n.child.Ended()
	return await(all)
}

// Pause stops the process (SIGSTOP). Connections stay open, and no request is answered.
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

// Resume continues a paused process (SIGCONT).
func (n *Node) Resume() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() || !n.paused {
		return errors.New("not paused")
	}
	n.paused = false
	return n.signal(syscall.SIGCONT)
}

// Sleep blocks the server for a given time and returns when the server answers again. It uses DEBUG SLEEP, because
// a long script would take longer on a busy machine. Attached servers get CLIENT PAUSE.
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

func (n *Node) alive() bool { return n.mini != nil || n.child.Alive() }

// signal sends a signal to the server and to all its descendants.
func (n *Node) signal(s syscall.Signal) error {
	all := n.family()
	err := n.child.Signal(s)
	for _, pid := range slices.Concat(all, n.family()) {
		_ = syscall.Kill(pid, s) // the process may have ended
	}
	return err
}
