package topologies

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Child is a running program, in its own process group: a server, a service under test, or a lock. When the program
// ends, the rest of its group is killed. The group also ends with this process, even if this process is killed.
type Child struct {
	cmd   *exec.Cmd
	ended chan struct{}

	spawner *Spawner // set by Launch only
	guard   *reaper
}

// Launch starts a program that belongs to no topology. The caller must close the Child.
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

// startChild starts a program. The function after is called when the program and its group have ended.
func startChild(cmd *exec.Cmd, s *Spawner, r *reaper, after func()) (*Child, error) {
	if err := s.Start(cmd); err != nil {
		return nil, err
	}
	r.Watch(cmd.Process.Pid)
	c := &Child{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // ProcessState has the reason
		_ = c.Signal(syscall.SIGKILL)
		after()
		close(c.ended)
	}()
	return c, nil
}

// PID returns the number of the process that leads the group; 0 if c is nil.
func (c *Child) PID() int {
	if c == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// Ended returns a channel that is closed when the program and its group have ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

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

// End returns how the program has ended.
func (c *Child) End() *os.ProcessState { return c.cmd.ProcessState }

// Signal sends a signal to the whole group. It is no error if the group has ended.
func (c *Child) Signal(s syscall.Signal) error {
	if err := syscall.Kill(-c.PID(), s); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// Kill kills the group, like a crash.
func (c *Child) Kill() error {
	if err := c.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.ended
	return nil
}

// Stop asks the group to end (SIGTERM), and kills it if it has not ended in time.
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

// Close is only for a Child of Launch. It kills the program, including processes that have left its group.
func (c *Child) Close() error {
	c.spawner.Close()
	return c.guard.Close()
}
