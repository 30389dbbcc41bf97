package cluster

import "syscall"

// childAttributes gives a child a process group of its own, so that Ctrl-C
// reaches only this program, which then stops the children in order, and has
// the kernel kill it when this program dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
