package topologies

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"hammerlock/topologies/links"
)

// owner returns the node that opened a connection. It looks for the process that has the socket, because servers
// other than Redis cannot bind a source address. If the connection is already closed, the result is
// links.Unidentified.
func (t *Topology) owner(conn *net.TCPConn) links.Party {
	inode := socket(conn.RemoteAddr().(*net.TCPAddr), conn.LocalAddr().(*net.TCPAddr))
	if inode == "" {
		return links.Unidentified
	}
	for _, n := range t.Nodes {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", n.pid.Load()))
		for _, file := range files {
			if name, err := os.Readlink(file); err == nil && name == "socket:["+inode+"]" {
				return links.Party(n.Name)
			}
		}
	}
	return links.Unidentified
}

// socket returns the inode of the local socket with these two addresses; empty if there is none, or no /proc.
func socket(from, to *net.TCPAddr) string {
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	ends := [2]string{kernelAddr(from), kernelAddr(to)}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 9 && f[1] == ends[0] && f[2] == ends[1] {
			return f[9]
		}
	}
	return ""
}

// kernelAddr formats an address as in /proc/net/tcp, see proc(5).
func kernelAddr(a *net.TCPAddr) string {
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(a.IP.To4()), a.Port)
}
