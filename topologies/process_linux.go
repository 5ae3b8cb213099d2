package topologies

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr lets a node end with the thread that started it: the spawner keeps that thread until the topology is
// closed. It also keeps an interrupt at the terminal from the node.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// lateBound lets the kernel choose the port only when it knows both ends of a connection (IP_BIND_ADDRESS_NO_PORT in
// ip(7)). Otherwise each closed connection blocks its port for a minute for all connections of that address. Clients
// whose calls time out by the thousand would run out of ports.
func lateBound(_, _ string, c syscall.RawConn) error {
	var option error
	err := c.Control(func(fd uintptr) {
		option = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	return errors.Join(err, option)
}
