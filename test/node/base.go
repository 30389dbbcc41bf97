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
	"strings"
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

// buildBase returns the layer of the base, which is made the first time: in about 8 minutes on two cores.
func buildBase(ctx context.Context, cache string, log io.Writer) (Layer, error) {
	file := filepath.Join(cache, "base-"+release+"-1.tar")
	if _, err := os.Stat(file); err == nil {
		return openLayer(file)
	}
	_, _ = fmt.Fprintf(log, "making the base of images, Debian %s with %s (about 8 min the first time) ... ", release, packages)
	began := time.Now()
	folder, err := os.MkdirTemp(cache, "base-")
	if err != nil {
		return Layer{}, err
	}
	root, unfinished := filepath.Join(folder, "root"), filepath.Join(folder, "base.tar")
	err = errors.Join(
		run(ctx, "debootstrap", "--variant=minbase", "--include="+packages, release, root),
		os.RemoveAll(root+"/var/cache/apt/archives"),
		os.RemoveAll(root+"/usr/share/doc"),
	)
	if err == nil {
		err = run(ctx, "tar", "--create", "--file="+unfinished, "--directory="+root, "--numeric-owner", "--one-file-system",
			"--exclude=./proc/*", "--exclude=./sys/*", "--exclude=./dev/*", ".")
	}
	if err == nil {
		err = os.Rename(unfinished, file)
	}
	if err = errors.Join(err, os.RemoveAll(folder)); err != nil {
		_, _ = fmt.Fprintln(log, "failed")
		return Layer{}, err
	}
	_, _ = fmt.Fprintf(log, "done in %s\n", time.Since(began).Round(time.Second))
	return openLayer(file)
}

// run runs a command; the error ends in the last of what it printed.
func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
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
