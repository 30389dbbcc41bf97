package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// emptyCache gives the test a cache of its own.
func emptyCache(t *testing.T) (clusters string) {
	t.Helper()
	t.Setenv("TIDELINE_CACHE", t.TempDir())
	clusters, err := clustersDir()
	if err != nil {
		t.Fatal(err)
	}
	return clusters
}

func mustOpen(t *testing.T, o Options) *stateDir {
	t.Helper()
	s, err := openStateDir(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestCacheDir(t *testing.T) {
	for _, test := range []struct{ own, xdg, home, want string }{
		{"/own", "/xdg", "/home/a", "/own"},
		{"", "/xdg", "/home/a", "/xdg/tideline"},
		{"", "", "/home/a", "/home/a/.cache/tideline"},
		{"", "relative is to be ignored", "/home/a", "/home/a/.cache/tideline"},
	} {
		t.Setenv("TIDELINE_CACHE", test.own)
		t.Setenv("XDG_CACHE_HOME", test.xdg)
		t.Setenv("HOME", test.home)
		if got, err := CacheDir(); err != nil || got != test.want {
			t.Errorf("CacheDir with %+v = %q, %v", test, got, err)
		}
	}
}

func TestOneClusterPerKubeconfig(t *testing.T) {
	emptyCache(t)
	o := Options{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	first := mustOpen(t, o)
	_, err := openStateDir(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("a second cluster with the same kubeconfig: %v, want an error that names the process", err)
	}
	if err := first.remove(); err != nil {
		t.Fatal(err)
	}
	if exists(first.path) {
		t.Errorf("%s is left", first.path)
	}
	if err := mustOpen(t, o).remove(); err != nil {
		t.Error(err)
	}
}

// What a killed program left is removed at the next start, and what another
// program holds is not.
func TestSweep(t *testing.T) {
	emptyCache(t)
	alive := mustOpen(t, Options{})
	kubeconfigs := t.TempDir()
	dead := mustOpen(t, Options{Kubeconfig: filepath.Join(kubeconfigs, "dead")})
	replaced := mustOpen(t, Options{Kubeconfig: filepath.Join(kubeconfigs, "replaced")})
	for _, s := range []*stateDir{dead, replaced} {
		for _, path := range []string{filepath.Join(s.path, kubeconfigFile), s.owner.Kubeconfig} {
			if err := os.WriteFile(path, []byte(kubeconfigHeader), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.lock.unlock() // as the kernel does when the program dies
	}
	if err := os.WriteFile(replaced.owner.Kubeconfig, []byte("another cluster's"), 0o600); err != nil {
		t.Fatal(err)
	}

	next := mustOpen(t, Options{})
	for path, want := range map[string]bool{
		alive.path:                true,
		next.path:                 true,
		dead.path:                 false,
		dead.owner.Kubeconfig:     false,
		replaced.path:             false,
		replaced.owner.Kubeconfig: true,
	} {
		if exists(path) != want {
			t.Errorf("%s exists: %v, want %v", path, !want, want)
		}
	}
	if err := errors.Join(alive.remove(), next.remove()); err != nil {
		t.Error(err)
	}
}

func TestOwnStateFolder(t *testing.T) {
	emptyCache(t)
	dir := t.TempDir()
	foreign := filepath.Join(dir, "thesis.tex")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStateDir(t.Context(), Options{Dir: dir}); err == nil || !exists(foreign) {
		t.Errorf("a folder with foreign files: %v, want an error and the files untouched", err)
	}

	dir = t.TempDir()
	if err := mustOpen(t, Options{Dir: dir}).remove(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "etcd.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, Options{Dir: dir})
	if exists(log) {
		t.Error("the log of the former cluster is left")
	}
	if err := again.remove(); err != nil || !exists(dir) {
		t.Errorf("the caller's folder was removed (%v)", err)
	}
}

func TestKubeconfigOfSomebodyElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Kubeconfig: path})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Start over a kubeconfig that is not ours: %v, want an error that names it", err)
	}
}

func TestDownWithoutCluster(t *testing.T) {
	emptyCache(t)
	if err := Down(t.Context(), filepath.Join(t.TempDir(), "kubeconfig")); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Down = %v, want %v", err, ErrNotRunning)
	}
}

func TestLockDirWaitsUntilUnlocked(t *testing.T) {
	dir := t.TempDir()
	first, err := tryLockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*pollInterval)
	defer cancel()
	if _, err := lockDir(short, dir, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("locking a locked folder = %v, want the context's error", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	second, err := lockDir(ctx, dir, first.unlock)
	if err != nil {
		t.Fatal(err)
	}
	second.unlock()
}
