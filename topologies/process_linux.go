package topologies

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr ends a node with the thread that started it, which the spawner keeps until the topology is closed, and
// keeps an interrupt at the terminal from the node.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// lateBound lets the kernel choose the port of a connection whose address is given when it knows the other end, as
// ip(7) says of IP_BIND_ADDRESS_NO_PORT. Otherwise each closed connection keeps its port from all others of that
// address for a minute: clients whose calls time out by the thousand run out of ports, after a search for one that
// takes ever longer.
func lateBound(_, _ string, c syscall.RawConn) error {
	var option error
	err := c.Control(func(fd uintptr) {
		option = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	return errors.Join(err, option)
}
