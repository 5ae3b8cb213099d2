//go:build !linux

package topologies

import "syscall"

// childAttr keeps Ctrl-C at the terminal from the node. This system has no parent-death signal, so only the reaper
// ends the nodes of a suite that was killed.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// lateBound does nothing: only Linux has the socket option.
func lateBound(_, _ string, _ syscall.RawConn) error { return nil }
