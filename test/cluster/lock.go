package cluster

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// A dirLock is an exclusive lock on a folder itself: there is no lock file to be
// left behind, and it ends with the program that holds it. Children do not
// inherit it.
type dirLock struct{ dir *os.File }

// errLocked means that another program, or another cluster of this one, holds
// the lock.
var errLocked = errors.New("locked")

// tryLockDir locks dir or returns errLocked at once.
func tryLockDir(dir string) (*dirLock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errLocked
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &dirLock{f}, nil
}

// lockDir locks dir, waiting for it as long as ctx lasts. It calls waiting once
// if it must wait.
func lockDir(ctx context.Context, dir string, waiting func()) (*dirLock, error) {
	for {
		lock, err := tryLockDir(dir)
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

func (l *dirLock) unlock() { _ = l.dir.Close() }
