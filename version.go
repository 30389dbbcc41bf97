package main

import (
	"fmt"
	"runtime"
)

// Stamped at build time with -ldflags "-X main.version=...".
var (
	version = "development"
	commit  = "unknown"
	date    = "unknown"
)

// versionLine is `tideline version`: what this program was built from and by.
func versionLine() string {
	return fmt.Sprintf("tideline %s (commit %s of %s; %s %s/%s)",
		version, commit, date, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
