package topologies

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Child is a program that runs: a server, the program of a service, of a user, or of a lock. It has a process group of
// its own, in which is what it starts, too. When it ends, the rest of the group is killed; both end with this process,
// however that ends.
type Child struct {
	cmd   *exec.Cmd
	ended chan struct{}

	spawner *Spawner // of Launch
	guard   *reaper
}

// Launch starts a program that belongs to no topology. The caller closes it.
func Launch(cmd *exec.Cmd) (c *Child, err error) {
	guard, err := startReaper("")
	if err != nil {
		return nil, err
	}
	spawner := OpenSpawner()
	cmd.Env = append(cmd.Env, guard.Mark())
	if c, err = startChild(cmd, spawner, guard, func() {}); err != nil {
		spawner.Close()
		return nil, errors.Join(err, guard.Close())
	}
	c.spawner, c.guard = spawner, guard
	return c, nil
}

// startChild starts a program. It calls after when the program and its group have ended.
func startChild(cmd *exec.Cmd, s *Spawner, r *reaper, after func()) (*Child, error) {
	if err := s.Start(cmd); err != nil {
		return nil, err
	}
	r.Watch(cmd.Process.Pid)
	c := &Child{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the error is ignored: ProcessState has the reason
		_ = c.Signal(syscall.SIGKILL)
		after()
		close(c.ended)
	}()
	return c, nil
}

// PID is the process that leads the group; 0 of no child.
func (c *Child) PID() int {
	if c == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// Ended is closed when the program has ended, and its group.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Alive tells whether the program runs or is paused.
func (c *Child) Alive() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// End says how the program has ended.
func (c *Child) End() *os.ProcessState { return c.cmd.ProcessState }

// Signal goes to the whole group. It does nothing if that has gone.
func (c *Child) Signal(s syscall.Signal) error {
	if err := syscall.Kill(-c.PID(), s); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// Kill ends the group at once, like a crash.
func (c *Child) Kill() error {
	if err := c.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.ended
	return nil
}

// Stop asks the group to end, and kills it after a while.
func (c *Child) Stop(within time.Duration) error {
	if err := errors.Join(c.Signal(syscall.SIGTERM), c.Signal(syscall.SIGCONT)); err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(within):
		return c.Kill()
	}
}

// Close ends, after Launch, what has left the group, too.
func (c *Child) Close() error {
	c.spawner.Close()
	return c.guard.Close()
}
