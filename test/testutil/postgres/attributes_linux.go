package postgres

import "syscall"

// attributes have a process end with the one that started it, also if that crashes.
func attributes(who *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: who, Setpgid: true, Pdeathsig: syscall.SIGQUIT}
}
