//go:build unix && !linux

package cluster

import "syscall"

// childAttributes gives a child a process group of its own, so that Ctrl-C
// reaches only this program, which then stops the children in order. Only Linux
// can also end the children of a program that was killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
