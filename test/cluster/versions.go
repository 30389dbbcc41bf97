package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Variables of the environment that choose which of several versions a cluster
// is made of: one of those that a folder under modules/ is named by, as in
// TIDELINE_VOLCANO=1.14.1. The newest is the default.
const (
	VolcanoVariable    = "TIDELINE_VOLCANO"
	KubernetesVariable = "TIDELINE_KUBERNETES"
)

// moduleFolder returns the folder of the module that p is built of. Where p comes
// in several versions, it is the chosen one's.
func (p Part) moduleFolder(repo string) (string, error) {
	modules := filepath.Join(repo, "test", "cluster", "modules")
	if p.variable == "" {
		return filepath.Join(modules, p.folder()), nil
	}
	versions, err := p.versions(modules)
	if err != nil {
		return "", err
	}
	chosen := cmp.Or(strings.TrimPrefix(os.Getenv(p.variable), "v"), versions[0])
	if !slices.Contains(versions, chosen) {
		return "", fmt.Errorf("%s is %s, which is not supported: choose %s", p.variable, chosen, strings.Join(versions, " or "))
	}
	return filepath.Join(modules, p.name+"-"+chosen), nil
}

// folder returns the folder under modules/ of a part that comes in one version.
func (p Part) folder() string {
	if p.only == "" {
		return p.name
	}
	return p.name + "-" + p.only
}

// versions returns the versions of p that have a folder in modules, the newest
// first.
func (p Part) versions(modules string) ([]string, error) {
	folders, err := filepath.Glob(filepath.Join(modules, p.name+"-*"))
	if err != nil {
		return nil, err
	}
	parsed := map[string]*version.Version{}
	var versions []string
	for _, folder := range folders {
		v := strings.TrimPrefix(filepath.Base(folder), p.name+"-")
		if parsed[v], err = version.ParseSemantic(v); err != nil {
			return nil, fmt.Errorf("the name of %s does not end in a version: %w", folder, err)
		}
		versions = append(versions, v)
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("%s has no folder %s-VERSION", modules, p.name)
	}
	slices.SortFunc(versions, func(a, b string) int {
		if parsed[b].LessThan(parsed[a]) {
			return -1
		}
		return 1
	})
	return versions, nil
}

// amendedGoMod returns a go.mod to build p with, in a folder beside the programs:
// it replaces the module p.amends by a copy of it, with the files that are in the
// folder amend of moduleDir added. It returns "" for a version without that
// folder.
//
// A version needs this if it was made with a version of another module that no
// module proxy serves. The caller holds the lock of dir; the copy is made anew
// each time, so that one that was cut short is not built with.
func (p Part) amendedGoMod(ctx context.Context, moduleDir, dir string) (string, error) {
	added := filepath.Join(moduleDir, "amend")
	if _, err := os.Stat(added); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if _, err := goCommand(ctx, moduleDir, "mod", "download", p.amends); err != nil {
		return "", err
	}
	served, err := moduleSource(ctx, moduleDir, p.amends)
	if err != nil {
		return "", err
	}
	amended := filepath.Join(dir, "amended")
	source := filepath.Join(amended, filepath.FromSlash(p.amends))
	if err := os.RemoveAll(amended); err != nil {
		return "", err
	}
	for _, from := range []string{served, added} {
		if err := os.CopyFS(source, os.DirFS(from)); err != nil {
			return "", fmt.Errorf("copying %s: %w", p.amends, err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(moduleDir, name))
		if err != nil {
			return "", err
		}
		if err := writeFile(filepath.Join(amended, name), content, 0o644); err != nil {
			return "", err
		}
	}
	goMod := filepath.Join(amended, "go.mod")
	_, err = goCommand(ctx, moduleDir, "mod", "edit", "-replace="+p.amends+"="+source, goMod)
	return goMod, err
}
