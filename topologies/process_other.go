//go:build !linux

package topologies

import "syscall"

// childAttr keeps an interrupt at the terminal from the node. There is no parent-death signal here: the
// reaper alone ends the nodes of a suite that was killed.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// lateBound does something on Linux only.
func lateBound(_, _ string, _ syscall.RawConn) error { return nil }
