package topologies

import "syscall"

// childAttr makes a node die with the thread that started it, which the nursery keeps for as long as the
// topology lives, and keeps an interrupt at the terminal from the node.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
