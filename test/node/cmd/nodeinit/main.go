//go:build linux

// Command nodeinit is process 1 of a node: it prepares the namespaces that it was started in, runs the programs of the node
// there, obeys orders on its standard input, and ends with all programs when that ends. See [inside].
package main

import (
	"fmt"
	"os"

	"github.com/tideline-io/tideline/test/node/inside"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: nodeinit CONFIGURATION")
		os.Exit(2)
	}
	if err := inside.Run(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
