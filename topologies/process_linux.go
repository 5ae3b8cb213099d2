package topologies

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr makes a node end with the thread that started it (PDEATHSIG). The Spawner keeps that thread until the
// topology is closed. Ctrl-C at the terminal does not reach the node.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// lateBound sets IP_BIND_ADDRESS_NO_PORT, see ip(7): the kernel chooses the port when both ends of a connection are
// known. Otherwise each closed connection would block its port for a minute for all connections of that source address.
// Clients whose calls time out by the thousand would run out of ports.
func lateBound(_, _ string, c syscall.RawConn) error {
	var option error
	err := c.Control(func(fd uintptr) {
		option = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	return errors.Join(err, option)
}
