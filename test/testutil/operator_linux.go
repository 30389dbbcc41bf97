package testutil

import "syscall"

// childAttributes keeps Ctrl-C from the child, which the suite stops itself, and has the kernel kill it if the suite is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
