//go:build !linux

package topologies

import "syscall"

// childAttr keeps Ctrl-C at the terminal from reaching the node. There is no parent-death signal on this system: only
// the reaper ends the nodes of a suite that was killed.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// lateBound does nothing: the socket option exists on Linux only.
func lateBound(_, _ string, _ syscall.RawConn) error { return nil }
