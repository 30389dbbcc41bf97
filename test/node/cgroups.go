//go:build linux

package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const cgroupFolder = "/sys/fs/cgroup"

// hierarchies are the folders of all controllers, one of them with the second version of cgroups.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupFolder, "cgroup.controllers")); err == nil {
		return []string{cgroupFolder}, nil
	}
	return filepath.Glob(cgroupFolder + "/*")
}

// makeCgroup makes a cgroup of every controller, in which kubelet makes those of pods.
func makeCgroup(name string) error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range folders {
		folder := filepath.Join(h, name)
		if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := weigh(folder); err != nil {
			return err
		}
		// With the first version, a cgroup has no CPUs and no memory of nodes until it is told.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			all, err := os.ReadFile(filepath.Join(h, file))
			if err == nil && filepath.Base(h) == "cpuset" {
				err = os.WriteFile(filepath.Join(folder, file), all, 0o600)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// weigh gives the node four times the CPU of any one process beside it, by either version of cgroups: a machine that also
// compiles would leave a node, which is one group however many pods it has, next to nothing.
func weigh(folder string) error {
	for file, weight := range map[string]string{"cpu.shares": "4096", "cpu.weight": "400"} {
		file = filepath.Join(folder, file)
		if _, err := os.Stat(file); err != nil {
			continue
		}
		if err := os.WriteFile(file, []byte(weight), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroups removes those that begin with a prefix, with all below them; none of them has a process any more.
func removeCgroups(prefix string) error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range folders {
		tops, err := filepath.Glob(filepath.Join(h, prefix+"*"))
		errs = append(errs, err)
		for _, top := range tops {
			errs = append(errs, removeCgroup(top))
		}
	}
	return errors.Join(errs...)
}

// removeCgroup removes the folders of a cgroup, the deepest first: the files in them go by themselves.
func removeCgroup(top string) error {
	var folders []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil // what is gone meanwhile need not be removed
	})
	errs := []error{err}
	for _, folder := range slices.Backward(folders) {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// processesOf are those of a container, as seen from outside.
func processesOf(container string) ([]string, error) {
	processes, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range processes {
		content, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(content), container) {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	return found, nil
}
