package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const rootModule = "github.com/tideline-io/tideline"

// repository returns the root of the source tree around the working directory,
// in which the modules to build and the scheduler configuration are.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte("module "+rootModule+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of %s: change into one first", start, rootModule)
		}
	}
}

// CacheDir returns the folder for programs and running clusters, outside of the
// work tree: ${TIDELINE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tideline}.
func CacheDir() (string, error) {
	if dir := os.Getenv("TIDELINE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	// Not os.UserCacheDir: on a Mac too, the documented place is ~/.cache.
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tideline"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("neither TIDELINE_CACHE nor XDG_CACHE_HOME nor HOME is set: set one of them to a writable folder")
	}
	return filepath.Join(home, ".cache", "tideline"), nil
}

// DefaultKubeconfig returns where the localcluster command keeps the kubeconfig
// of a cluster that is given no other: in the cache, or "" if there is no place
// for a cache.
func DefaultKubeconfig() string {
	cache, err := CacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "kubeconfig")
}

// writeFile writes aside and renames, because some of the files are watched and
// none may be seen half written.
func writeFile(name string, content []byte, mode os.FileMode) error {
	aside, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = aside.Write(content)
	err = errors.Join(err, aside.Chmod(mode), aside.Close())
	if err == nil {
		err = os.Rename(aside.Name(), name)
	}
	if err != nil {
		_ = os.Remove(aside.Name())
	}
	return err
}

// lastLines returns at most n last lines of text.
func lastLines(text []byte, n int) []byte {
	text = bytes.TrimRight(text, "\n")
	for i := len(text); i > 0; {
		i = bytes.LastIndexByte(text[:i], '\n')
		if n--; n == 0 || i < 0 {
			return text[i+1:]
		}
	}
	return text
}
