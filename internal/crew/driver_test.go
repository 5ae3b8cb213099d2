package crew

import (
	"os/exec"
	"syscall"
	"testing"
)

// TestAFaultOfAProcessReachesItsDriver: a process and its driver are one application, so a fault hits both.
func TestAFaultOfAProcessReachesItsDriver(t *testing.T) {
	t.Parallel()
	program := exec.Command("sleep", "1000")
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	pid := program.Process.Pid
	c := Elsewhere(0, nil, func(syscall.Signal) error { return nil }, nil)
	c.driver = pid
	for _, step := range []struct {
		do   func() error
		want func(syscall.WaitStatus) bool
	}{
		{c.Stop, syscall.WaitStatus.Stopped},
		{c.Continue, syscall.WaitStatus.Continued},
		{c.Kill, func(s syscall.WaitStatus) bool { return s.Signaled() && s.Signal() == syscall.SIGKILL }},
	} {
		err := step.do()
		var s syscall.WaitStatus
		if _, failed := syscall.Wait4(pid, &s, syscall.WUNTRACED|syscall.WCONTINUED, nil); err != nil ||
			failed != nil ||
			!step.want(s) {
			t.Errorf("status %#x, %v, %v", s, err, failed)
		}
	}
	if err := c.Stop(); err != nil {
		t.Errorf("a driver that is gone: %v", err)
	}
}
