package dashboard

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopped is how long the system may take to stop this process; one that nobody could bring back is not stopped.
const stopped = 300 * time.Millisecond

// suspend gives the terminal back to the shell until it brings this process to the foreground again. The whole
// suite stands still meanwhile, which the history has to say.
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
	timer := time.NewTimer(stopped)
	defer timer.Stop()
	if err := syscall.Kill(0, syscall.SIGTSTP); err == nil {
		select {
		case <-continued:
		case <-timer.C: // nobody stops a process that nobody could continue
		}
	}
	resume()
	d.foreground()
	if d.isClosing() && !foreground() {
		return // the screen is not ours any more; it is as the shell wants it
	}
	if err := d.screen.Resume(); err != nil {
		d.quit()
	}
}

// foreground waits until the terminal is ours again: the shell may have continued us in the background.
func (d *Dashboard) foreground() {
	ticker := time.NewTicker(redrawEvery)
	defer ticker.Stop()
	for !foreground() {
		select {
		case <-ticker.C:
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
