package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newTestShell(t *testing.T, kubectl string) (*shell, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	s, err := newShell(&printer{out: &out}, t.TempDir(), t.TempDir(), kubectl, "the-kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	return s, &out
}

func TestShow(t *testing.T) {
	s, out := newTestShell(t, "kubectl")
	if err := s.show(t.Context(), "echo $KUBECONFIG; pwd >&2"); err != nil {
		t.Fatal(err)
	}
	if want := "\n$ echo $KUBECONFIG; pwd >&2\nthe-kubeconfig\n" + s.root + "\n"; out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// What a command said before it failed explains the failure.
func TestShowSaysWhatFailed(t *testing.T) {
	s, out := newTestShell(t, "kubectl")
	err := s.show(t.Context(), "echo no such thing; exit 3")
	if err == nil || err.Error() != `run "echo no such thing; exit 3": exit status 3` {
		t.Error(err)
	}
	if !strings.HasSuffix(out.String(), "\nno such thing\n") {
		t.Errorf("it shows %q", out)
	}
}

// An interrupt ends the children of the shell too.
func TestShowIsInterrupted(t *testing.T) {
	s, _ := newTestShell(t, "kubectl")
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(interrupted) })
	began := time.Now()
	if err := s.show(ctx, "sleep 60 | cat"); !errors.Is(err, interrupted) {
		t.Errorf("show = %v, want %v", err, interrupted)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Where no kubectl is on PATH, the one that was built is found under its name.
func TestShellFindsBuiltKubectl(t *testing.T) {
	built := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(built, []byte("#!/bin/sh\necho built kubectl $1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, out := newTestShell(t, built)
	if err := s.show(t.Context(), "kubectl version"); err != nil || !strings.Contains(out.String(), "built kubectl version") {
		t.Errorf("%v after %q", err, out)
	}
}
