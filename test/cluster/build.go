package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Build builds every program a cluster needs that is not in the cache yet, and
// kubectl where none is on PATH. The cache is
// ${TIDELINE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tideline}/bin; its folders
// are named by version, so a second run builds nothing. Progress goes to log.
//
// A first run takes about 10 minutes on two cores and needs a Go module proxy.
// Runs at the same time wait for each other instead of building twice.
func Build(ctx context.Context, log io.Writer) error {
	if _, err := buildParts(ctx, log); err != nil {
		return err
	}
	_, err := Kubectl(ctx, log)
	return err
}

// BuildObjectStore builds what [Cluster.StartObjectStore] starts, which is no
// part of every cluster: about 3 minutes on two cores the first time.
func BuildObjectStore(ctx context.Context, log io.Writer) error {
	_, err := objectStorePart.Build(ctx, log)
	return err
}

// BuildNode builds what package node runs beside the programs of Debian, kubelet
// and CoreDNS, and returns their paths: about 4 minutes on two cores the first
// time.
func BuildNode(ctx context.Context, log io.Writer) (kubelet, coredns string, err error) {
	repo, err := repository()
	if err != nil {
		return "", "", err
	}
	k, err := kubeletPart.build(ctx, repo, log)
	if err != nil {
		return "", "", err
	}
	d, err := corednsPart.build(ctx, repo, log)
	return k.Program("kubelet"), d.Program("coredns"), err
}

// Build builds what is not in the cache yet of a part that not every cluster has.
func (p Part) Build(ctx context.Context, log io.Writer) (Built, error) {
	repo, err := repository()
	if err != nil {
		return Built{}, err
	}
	return p.build(ctx, repo, log)
}

// Kubectl returns the command to run: kubectl if it is on PATH, else the path of
// one that is built into the cache the first time.
func Kubectl(ctx context.Context, log io.Writer) (string, error) {
	if _, err := exec.LookPath("kubectl"); err == nil {
		return "kubectl", nil
	}
	repo, err := repository()
	if err != nil {
		return "", err
	}
	b, err := kubectlPart.build(ctx, repo, log)
	if err != nil {
		return "", err
	}
	return b.Program("kubectl"), nil
}

// Built says where the programs and files of one part are.
type Built struct {
	dir      string
	prebuilt map[string]string // programs taken from elsewhere, by name
}

// Program is the path of a program.
func (b Built) Program(name string) string {
	if found, ok := b.prebuilt[name]; ok {
		return found
	}
	return filepath.Join(b.dir, name)
}

// file returns the content of a file copied out of the part's module.
func (b Built) file(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(b.dir, cachedName(name)))
}

// Objects returns the objects in manifests copied out of the part's module.
func (b Built) Objects(manifests ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, name := range manifests {
		content, err := b.file(name)
		if err != nil {
			return nil, err
		}
		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
			o := &unstructured.Unstructured{}
			err := decoder.Decode(&o.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", name, err)
			}
			if len(o.Object) > 0 {
				objects = append(objects, o)
			}
		}
	}
	return objects, nil
}

// cachedName flattens a path inside a module to a file name.
func cachedName(file string) string {
	return strings.ReplaceAll(file, "/", "-")
}

// buildParts builds what is missing of clusterParts and returns them by name.
func buildParts(ctx context.Context, log io.Writer) (map[string]Built, error) {
	repo, err := repository()
	if err != nil {
		return nil, err
	}
	parts := make(map[string]Built, len(clusterParts))
	for _, p := range clusterParts {
		if parts[p.name], err = p.build(ctx, repo, log); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// build makes sure that all programs and files of p are in the cache.
func (p Part) build(ctx context.Context, repo string, log io.Writer) (Built, error) {
	moduleDir, err := p.moduleFolder(repo)
	if err != nil {
		return Built{}, err
	}
	version, err := requiredVersion(filepath.Join(moduleDir, "go.mod"), p.module)
	if err != nil {
		return Built{}, err
	}
	cache, err := CacheDir()
	if err != nil {
		return Built{}, err
	}
	b := Built{
		dir:      filepath.Join(cache, "bin", cacheKey(p.name, version)),
		prebuilt: p.prebuilt(ctx, version),
	}
	if p.complete(b) {
		return b, nil
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return Built{}, err
	}
	lock, err := lockDir(ctx, b.dir, func() {
		_, _ = fmt.Fprintf(log, "waiting for another program that builds %s %s\n", p.name, version)
	})
	if err != nil {
		return Built{}, err
	}
	defer lock.unlock()
	if err := p.buildMissing(ctx, b, moduleDir, version, log); err != nil {
		return Built{}, err
	}
	return b, p.copyFiles(ctx, moduleDir, b.dir)
}

// buildMissing builds the programs that are not there.
func (p Part) buildMissing(ctx context.Context, b Built, moduleDir, version string, log io.Writer) error {
	missing := p.missing(b)
	if len(missing) == 0 {
		return nil
	}
	goMod, err := p.amendedGoMod(ctx, moduleDir, b.dir)
	if err != nil {
		return err
	}
	for _, prog := range missing {
		if err := p.buildProgram(ctx, prog, moduleDir, goMod, version, b.dir, log); err != nil {
			return err
		}
	}
	return nil
}

// cacheKey names the folder of one version of a part for this machine.
func cacheKey(name, version string) string {
	return strings.Join([]string{name, version, runtime.GOOS, runtime.GOARCH}, "-")
}

// missing returns the programs that must be built.
func (p Part) missing(b Built) []program {
	var missing []program
	for _, prog := range p.programs {
		if _, err := os.Stat(b.Program(prog.name)); err != nil {
			missing = append(missing, prog)
		}
	}
	return missing
}

// complete reports whether nothing of p must be built or copied.
func (p Part) complete(b Built) bool {
	for _, f := range p.files {
		if _, err := os.Stat(filepath.Join(b.dir, cachedName(f))); err != nil {
			return false
		}
	}
	return len(p.missing(b)) == 0
}

// prebuilt returns those of p's programs that setup-envtest has installed in the
// folder KUBEBUILDER_ASSETS in the same minor version.
func (p Part) prebuilt(ctx context.Context, version string) map[string]string {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return nil
	}
	found := map[string]string{}
	for _, prog := range p.programs {
		name := filepath.Join(assets, prog.name)
		out, err := exec.CommandContext(ctx, name, "--version").Output()
		firstLine, _, _ := bytes.Cut(out, []byte("\n"))
		if err == nil && bytes.Contains(firstLine, []byte(majorMinor(version)+".")) {
			found[prog.name] = name
		}
	}
	return found
}

// buildProgram builds into a temporary file and renames it, so that a program in
// the cache is always whole. A goMod that is not "" replaces the module's own.
func (p Part) buildProgram(ctx context.Context, prog program, moduleDir, goMod, version, dir string, log io.Writer) error {
	_, _ = fmt.Fprintf(log, "building %s %s (about %s the first time) ... ", prog.name, version, prog.takes)
	began := time.Now()
	target := filepath.Join(dir, prog.name)
	unfinished := target + ".unfinished"
	defer func() { _ = os.Remove(unfinished) }()

	ldflags := "-s -w"
	if p.ldflags != nil {
		ldflags += " " + p.ldflags(version)
	}
	if _, err := goCommand(ctx, moduleDir, "build", "-modfile="+goMod, "-trimpath", "-buildvcs=false", "-ldflags", ldflags,
		"-tags", p.tags, "-o", unfinished, prog.pkg); err != nil {
		_, _ = fmt.Fprintln(log, "failed")
		return fmt.Errorf("building %s %s: %w", prog.name, version, err)
	}
	if err := os.Rename(unfinished, target); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(log, "done in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// copyFiles copies p's files out of the module cache, which may be cleaned
// between two runs.
func (p Part) copyFiles(ctx context.Context, moduleDir, dir string) error {
	if len(p.files) == 0 {
		return nil
	}
	source, err := moduleSource(ctx, moduleDir, p.module)
	if err != nil {
		return err
	}
	for _, f := range p.files {
		content, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(path.Clean(f))))
		if err != nil {
			return fmt.Errorf("copying the files of %s: %w", p.module, err)
		}
		if err := writeFile(filepath.Join(dir, cachedName(f)), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// moduleSource returns the folder in the module cache that has the files of a
// module.
func moduleSource(ctx context.Context, moduleDir, module string) (string, error) {
	out, err := goCommand(ctx, moduleDir, "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return "", fmt.Errorf("finding the files of %s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// goCommand runs the go command in one of the modules. The error ends in what
// the command printed.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	// go leaves its work folder behind when it is interrupted.
	work, err := os.MkdirTemp("", "tideline-go-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// The result must depend on the module alone, not on how the user builds.
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOTMPDIR="+work)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	// An interrupt ends go build without leaving its compilers behind.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("the go command is not on PATH: install Go (the version in go.mod or later)")
	case err != nil:
		return nil, fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, lastLines(stderr.Bytes(), 15))
	}
	return out, nil
}

// requiredVersion returns the version of module that the go.mod file requires.
func requiredVersion(goMod, module string) (string, error) {
	content, err := os.ReadFile(goMod)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", goMod, module)
}
