//go:build !linux

package topologies

import "syscall"

// childAttr gives the node a process group of its own, so that Ctrl-C at the terminal does not reach it. This
// system has no parent-death signal, so only the reaper ends the nodes of a suite that was killed.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// lateBound does nothing: only Linux has the socket option.
func lateBound(_, _ string, _ syscall.RawConn) error { return nil }
