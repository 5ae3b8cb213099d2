package dashboard

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopTimeout is the longest time that suspend waits for the system to stop this process. If no shell could continue
// the process, the system does not stop it.
const stopTimeout = 300 * time.Millisecond

// suspend gives the terminal to the shell, and stops the suite until the shell brings it back to the foreground. The
// history records the time in between.
func (d *Dashboard) suspend() {
	resume := func() {}
	if c := d.control.Load(); c != nil && c.Pause != nil {
		resume = c.Pause("the suite was suspended at the terminal")
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := d.screen.Suspend(); err != nil {
		resume()
		return
	}
	if err := syscall.Kill(0, syscall.SIGTSTP); err == nil {
		select {
		case <-continued:
		case <-time.After(stopTimeout): // the system did not stop the process
		}
	}
	resume()
	d.foreground()
	if d.isClosing() && !foreground() {
		return // the shell has the terminal
	}
	if err := d.screen.Resume(); err != nil {
		d.quit()
	}
}

// foreground waits until this process has the terminal again. The shell may have continued the process in the
// background.
func (d *Dashboard) foreground() {
	again := time.Tick(redrawEvery)
	for !foreground() {
		select {
		case <-again:
		case <-d.closing:
			return
		}
	}
}

func foreground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return true
	}
	defer func() { _ = tty.Close() }()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
