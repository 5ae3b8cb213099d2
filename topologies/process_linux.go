package topologies

import "syscall"

// childAttr ends a node with the thread that started it, which the spawner keeps until the topology is closed, and keeps
// an interrupt at the terminal from the node.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
