package testutil

import (
	"errors"
	"os"
	"path/filepath"
)

// Environment is the environment of somebody who uses a cluster by its kubeconfig, with kubectl and other programs, given by
// their paths, on PATH under their own names. A name without a folder is on PATH already. What kubectl caches goes to dir.
func Environment(dir, kubeconfig string, programs ...string) ([]string, error) {
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return nil, err
	}
	var errs []error
	for _, program := range programs {
		if filepath.IsAbs(program) {
			errs = append(errs, os.Symlink(program, filepath.Join(bin, filepath.Base(program))))
		}
	}
	return append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(dir, "kubectl-cache")), errors.Join(errs...)
}
