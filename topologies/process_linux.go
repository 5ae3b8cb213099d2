package topologies

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr makes a node end with the thread that started it (PDEATHSIG): the Spawner keeps that thread until the
// topology is closed. The node also gets a process group of its own, so that Ctrl-C at the terminal does not reach it.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// lateBound sets IP_BIND_ADDRESS_NO_PORT, see ip(7): the kernel chooses the port when it knows both ends of the
// connection. Otherwise each closed connection blocks its port for a minute, and clients with thousands of timeouts
// run out of ports.
func lateBound(_, _ string, c syscall.RawConn) error {
	var option error
	err := c.Control(func(fd uintptr) {
		option = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	return errors.Join(err, option)
}
