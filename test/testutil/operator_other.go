//go:build !linux

package testutil

import "syscall"

// childAttributes keeps Ctrl-C from the child, which the suite stops itself. Only Linux can also kill the children of a suite
// that was killed.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
