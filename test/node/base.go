//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// base is what the images of trainings are made on: Debian 12 with these packages.
const (
	release  = "bookworm"
	packages = "python3-torch,python3-numpy,openssh-server,openssh-client,openmpi-bin"
)

// baseEnv makes PyTorch 1.13 work under Python 3.11, whose dataclasses refuse its default for what torchrun redirects. Where it
// says nothing of a worker's output, that goes where the pod's does, as without it.
var baseEnv = []string{
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONUNBUFFERED=1",
	"PET_REDIRECTS=9:1", "PET_TEE=9:1",
	"OMP_NUM_THREADS=1",
}

// buildBase returns the layer of the base, which is made the first time: in three to eight minutes.
func buildBase(ctx context.Context, cache string, log io.Writer) (_ Layer, err error) {
	file := filepath.Join(cache, "base-"+release+"-1.tar")
	one, err := lock(ctx, filepath.Join(cache, "base.lock"), "the base of images, which another program makes", log)
	if err != nil {
		return Layer{}, err
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	if _, err := os.Stat(file); err == nil {
		return openLayer(file)
	}
	_, _ = fmt.Fprintf(log, "making the base of images, Debian %s with %s (a few minutes the first time) ... ", release, packages)
	began := time.Now()
	if err := makeBase(ctx, cache, file); err != nil {
		_, _ = fmt.Fprintln(log, "failed")
		return Layer{}, err
	}
	_, _ = fmt.Fprintf(log, "done in %s\n", time.Since(began).Round(time.Second))
	return openLayer(file)
}

// makeBase makes the tar file of the base, whole or not at all. Nobody else does at the same time.
func makeBase(ctx context.Context, cache, file string) (err error) {
	if err := removeUnfinished(cache); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(cache, unfinished)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	root, tar := filepath.Join(folder, "root"), filepath.Join(folder, "base.tar")
	if err := run(ctx, "debootstrap", "--variant=minbase", "--include="+packages, release, root); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(root+"/var/cache/apt/archives"), os.RemoveAll(root+"/usr/share/doc")); err != nil {
		return err
	}
	err = run(ctx, "tar", "--create", "--file="+tar, "--directory="+root, "--numeric-owner", "--one-file-system",
		"--exclude=./proc/*", "--exclude=./sys/*", "--exclude=./dev/*", ".")
	if err != nil {
		return err
	}
	// What is known of a former file must not be said of this one.
	if err := os.RemoveAll(digestFile(file)); err != nil {
		return err
	}
	return os.Rename(tar, file)
}

// unfinished is how the names of folders begin in which a base is made.
const unfinished = "base-"

// removeUnfinished removes the folders of programs that were killed when they made a base.
func removeUnfinished(cache string) error {
	entries, err := os.ReadDir(cache)
	errs := []error{err}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), unfinished) {
			errs = append(errs, os.RemoveAll(filepath.Join(cache, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// run runs a command in namespaces of processes and mounts, which end with it, and it with this program: neither outlives a
// program that is killed. The error ends in the last of what it printed.
func run(ctx context.Context, name string, args ...string) error {
	// The command is to end with the program, but the kernel ends it with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `mount -t proc none /proc && exec "$@"`, "sh", name}, args...)...)
	// Go makes mounts private when it unshares them, and not when it clones them.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return fmt.Errorf("%s: %w\n%s", name, err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
}

// Base is the image that others are made on. It has PyTorch, Open MPI and ssh.
func Base(ctx context.Context, log io.Writer) (Image, error) {
	cache, err := Cache()
	if err != nil {
		return Image{}, err
	}
	layer, err := buildBase(ctx, cache, log)
	return Image{Layers: []Layer{layer}, Env: baseEnv}, err
}

// Build makes an image of a base in place of the one that a Dockerfile names, and of what it copies from a folder. It knows no
// instructions but ARG, FROM, and COPY of a file. The layer is written to another folder.
func Build(base Image, folder, dockerfile, to string) (Image, error) {
	image := base
	image.Layers = append([]Layer(nil), base.Layers...)
	for line := range strings.Lines(dockerfile) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0, strings.HasPrefix(fields[0], "#"), fields[0] == "ARG", fields[0] == "FROM":
		case fields[0] == "COPY" && len(fields) == 3:
			content, err := os.ReadFile(filepath.Join(folder, fields[1]))
			if err != nil {
				return image, err
			}
			target := strings.TrimPrefix(fields[2], "/")
			layer, err := newLayer(to, fileOf{filepath.Dir(target) + "/", 0o755, nil}, fileOf{target, 0o644, content})
			if err != nil {
				return image, err
			}
			image.Layers = append(image.Layers, layer)
		default:
			return image, fmt.Errorf("no instruction %q: only ARG, FROM and COPY of one file are known here", strings.TrimSpace(line))
		}
	}
	return image, nil
}
