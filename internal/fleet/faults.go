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

// faultTarget is the agent as faults act on it.
func (a *agent) faultTarget() *crew.Agent {
	return &crew.Agent{
		Name:  a.Name,
		Kill:  func() error { return a.tell(order{Do: doKill}) },
		Pause: func(d time.Duration) error { return a.tell(order{Do: doPause, For: d}) },
		Cut: func(cut bool) error {
			if cut {
				return a.tell(order{Do: doCut})
			}
			return a.tell(order{Do: doMend})
		},
	}
}

// cut cuts or restores the connections of the workers to all servers.
func (t *task) cut(cut bool) (err error) {
	for _, p := range t.processes() {
		err = errors.Join(err, p.Cut(cut))
	}
	return err
}

// killOrPause ends the agent at once, or stops it for a while: itself, and its worker process. Another process stops
// and continues the agent: a stopped one cannot continue itself, and one that stopped itself could be late, continued
// before it has stopped.
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
			_ = shell.Wait() // it has done what it was for
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
