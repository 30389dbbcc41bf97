//go:build !linux

// Command prepare says that this machine can have no node.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "a node needs Linux, and Debian 12 at that: this is %s\n", runtime.GOOS)
	os.Exit(1)
}
