package fleet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"hammerlock/internal/crew"
)

// faultTarget returns the agent in the form that faults need.
func (a *agent) faultTarget() *crew.Agent {
	return &crew.Agent{
		Name: a.Name,
		Kill: func() error {
			err := a.tell(order{Do: doKill})
			a.mu.Lock()
			defer a.mu.Unlock()
			a.killed = err == nil
			return err
		},
		Pause: func(d time.Duration) error { return a.tell(order{Do: doPause, For: d}) },
		Cut: func(cut bool) error {
			if cut {
				return a.tell(order{Do: doCut})
			}
			return a.tell(order{Do: doMend})
		},
	}
}

// cut cuts the network between the workers and all servers; false restores it.
func (t *task) cut(cut bool) (err error) {
	for _, p := range t.processes() {
		err = errors.Join(err, p.Cut(cut))
	}
	return err
}

// killOrPause kills the agent and its worker process, or pauses both. A shell process pauses and continues the agent,
// because a stopped agent cannot continue itself.
func (t *task) killOrPause(o *order) error {
	self := os.Getpid()
	if o.Do == doKill {
		return errors.Join(t.signal(syscall.SIGKILL), syscall.Kill(self, syscall.SIGKILL))
	}
	err := t.signal(syscall.SIGSTOP)
	if err == nil {
		shell := exec.Command("sh", "-c",
			fmt.Sprintf("kill -STOP %[1]d; sleep %.3[2]f; kill -CONT %[1]d", self, o.For.Seconds()))
		if err = t.w.o.Spawn(shell); err == nil {
			_ = shell.Wait() // an error does not matter, since the agent runs again
		}
	}
	return errors.Join(err, t.signal(syscall.SIGCONT))
}

func (t *task) signal(s syscall.Signal) error {
	do := map[syscall.Signal]func(*crew.Process) error{
		syscall.SIGSTOP: (*crew.Process).Stop, syscall.SIGCONT: (*crew.Process).Continue,
		syscall.SIGKILL: (*crew.Process).Kill,
	}[s]
	all := t.processes()
	if do == nil || all == nil {
		return fmt.Errorf("signal %d: unknown, or no worker yet", s)
	}
	var err error
	for _, p := range all {
		err = errors.Join(err, do(p))
	}
	return err
}
