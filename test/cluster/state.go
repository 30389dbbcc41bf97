package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A stateDir is the folder of one cluster: data, keys, logs. It is locked as
// long as the cluster lives.
type stateDir struct {
	path     string
	clusters string // the folder whose lock guards creation and removal; "" if the caller chose path
	lock     *dirLock
	owner    owner
}

// owner is kept in a stateDir to find the program that runs the cluster, and what
// to clean up after it when it was killed.
type owner struct {
	PID        int    `json:"pid"`
	Kubeconfig string `json:"kubeconfig"`
}

const (
	ownerFile      = "owner.json"
	kubeconfigFile = "kubeconfig"
)

// openStateDir creates and locks the folder of a new cluster, and removes what
// clusters left whose program was killed.
func openStateDir(ctx context.Context, o Options) (*stateDir, error) {
	clusters, err := clustersDir()
	if err != nil {
		return nil, err
	}
	guard, err := lockDir(ctx, clusters, nil)
	if err != nil {
		return nil, err
	}
	defer guard.unlock()
	if err := sweep(clusters); err != nil {
		return nil, err
	}

	s := &stateDir{path: o.Dir, clusters: clusters}
	switch {
	case o.Dir != "":
		s.clusters = ""
		err = os.MkdirAll(s.path, 0o700)
	case o.Kubeconfig != "":
		s.path = dirFor(clusters, o.Kubeconfig)
		err = os.MkdirAll(s.path, 0o700)
	default:
		s.path, err = os.MkdirTemp(clusters, "unnamed-*")
	}
	if err != nil {
		return nil, err
	}
	s.lock, err = tryLockDir(s.path)
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("a cluster with this kubeconfig or state folder already runs (process %d, kubeconfig %s): "+
			"use it, stop it first, or choose another path", readOwner(s.path).PID, readOwner(s.path).Kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	if err := s.begin(cmp.Or(o.Kubeconfig, filepath.Join(s.path, kubeconfigFile))); err != nil {
		s.lock.unlock()
		return nil, err
	}
	return s, nil
}

// begin empties the folder of what an earlier cluster left and notes the owner.
func (s *stateDir) begin(kubeconfig string) error {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		if readOwner(s.path).PID == 0 {
			return fmt.Errorf("%s holds files that are not a cluster's: give an empty folder", s.path)
		}
		if err := removeState(s.path); err != nil {
			return err
		}
	}
	s.owner = owner{PID: os.Getpid(), Kubeconfig: kubeconfig}
	content, err := json.Marshal(s.owner)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(s.path, ownerFile), content, 0o600)
}

// keep ends the cluster's hold of the folder and leaves the logs in it until the
// next start.
func (s *stateDir) keep() error {
	defer s.lock.unlock()
	return removeKubeconfig(s.path)
}

// remove ends the cluster's hold of the folder and removes it, unless it is the
// caller's.
func (s *stateDir) remove() error {
	if s.clusters == "" {
		return s.keep()
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	guard, err := lockDir(ctx, s.clusters, nil)
	if err != nil {
		return errors.Join(err, s.keep())
	}
	defer guard.unlock()
	defer s.lock.unlock()
	return errors.Join(removeState(s.path), os.Remove(s.path))
}

// clustersDir returns the folder of the state folders, creating it if need be.
func clustersDir() (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "clusters")
	return dir, os.MkdirAll(dir, 0o700)
}

// dirFor returns the state folder of the cluster with this kubeconfig.
func dirFor(clusters, kubeconfig string) string {
	sum := sha256.Sum256([]byte(kubeconfig))
	return filepath.Join(clusters, hex.EncodeToString(sum[:8]))
}

// LogDir returns the folder with the logs of the cluster that runs with this
// [Options.Kubeconfig].
func LogDir(kubeconfig string) (string, error) {
	clusters, err := clustersDir()
	return dirFor(clusters, kubeconfig), err
}

// sweep removes the state folders that no living program holds.
func sweep(clusters string) error {
	entries, err := os.ReadDir(clusters)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		dir := filepath.Join(clusters, e.Name())
		lock, err := tryLockDir(dir)
		if errors.Is(err, errLocked) {
			continue
		}
		if err == nil {
			err = errors.Join(removeState(dir), os.Remove(dir))
			lock.unlock()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removeState removes the kubeconfig of the cluster that had dir, and all that
// is in dir.
func removeState(dir string) error {
	err := removeKubeconfig(dir)
	entries, readErr := os.ReadDir(dir)
	err = errors.Join(err, readErr)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// removeKubeconfig removes the kubeconfig of the cluster that had dir, unless
// another cluster or the user has written to the same path since.
func removeKubeconfig(dir string) error {
	path := readOwner(dir).Kubeconfig
	ours, err := readIfExists(filepath.Join(dir, kubeconfigFile))
	if err != nil || len(ours) == 0 {
		return err
	}
	theirs, err := readIfExists(path)
	if err != nil || !bytes.Equal(ours, theirs) {
		return err
	}
	return os.Remove(path)
}

// readIfExists returns nothing for a file that does not exist.
func readIfExists(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// readOwner returns the zero owner for a folder that has none.
func readOwner(dir string) owner {
	var o owner
	if content, err := os.ReadFile(filepath.Join(dir, ownerFile)); err == nil {
		_ = json.Unmarshal(content, &o)
	}
	return o
}

// ErrNotRunning is returned by [Down] when there is no cluster to end.
var ErrNotRunning = errors.New("no cluster runs with this kubeconfig")

// Down ends the cluster that was started with this [Options.Kubeconfig] by
// asking the program that started it to end, and returns when everything of it
// is gone. The program is killed, and with it the cluster, if it has not ended
// after 30 s. What a cluster left whose program was killed is removed as well.
// The error is [ErrNotRunning] if there is no such cluster.
func Down(ctx context.Context, kubeconfig string) error {
	const grace = 30 * time.Second
	kubeconfig, err := filepath.Abs(kubeconfig)
	if err != nil {
		return err
	}
	clusters, err := clustersDir()
	if err != nil {
		return err
	}
	dir := dirFor(clusters, kubeconfig)
	lock, err := tryLockDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ErrNotRunning
	case errors.Is(err, errLocked):
		// The lock is held, so the process is not another one of the same number.
		if err := endOwner(ctx, dir, readOwner(dir).PID, grace); err != nil {
			return err
		}
		return sweepAll(ctx, clusters)
	case err != nil:
		return err
	}
	lock.unlock()
	return errors.Join(ErrNotRunning, sweepAll(ctx, clusters))
}

// endOwner ends the process that holds dir and waits until it has let go.
func endOwner(ctx context.Context, dir string, pid int, grace time.Duration) error {
	if pid == 0 {
		return fmt.Errorf("the cluster of %s is being created this moment: try again", dir)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("asking process %d to end its cluster: %w", pid, err)
	}
	patience, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	lock, err := lockDir(patience, dir, nil)
	if err != nil && patience.Err() != nil && ctx.Err() == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		lock, err = lockDir(ctx, dir, nil)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		lock.unlock()
	}
	return err
}

func sweepAll(ctx context.Context, clusters string) error {
	guard, err := lockDir(ctx, clusters, nil)
	if err != nil {
		return err
	}
	defer guard.unlock()
	return sweep(clusters)
}
