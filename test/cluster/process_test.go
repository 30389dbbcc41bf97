package cluster

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func startShell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := StartProcess(t.TempDir(), "shell", "/bin/sh", []string{"-c", script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(0) })
	return p
}

func TestFreePortsAreDifferent(t *testing.T) {
	ports, err := FreePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if port <= 0 || seen[port] {
			t.Fatalf("ports %v: %d is given twice or is none", ports, port)
		}
		seen[port] = true
	}
}

// A process that dies at its start says why at once, not after a timeout.
func TestWaitForNamesTheProcessThatDied(t *testing.T) {
	p := startShell(t, "echo flag provided but not defined >&2; exit 3")
	err := new(Cluster).WaitFor(t.Context(), "nothing", func(context.Context) error { return errors.New("not yet") }, p)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"shell ended on its own", "exit status 3", p.logPath, "flag provided but not defined"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestPortTaken(t *testing.T) {
	taken := startShell(t, "echo listen tcp 127.0.0.1:1: bind: address already in use; exit 1")
	other := startShell(t, "exit 1")
	<-taken.done
	<-other.done
	if !taken.PortTaken() || other.PortTaken() {
		t.Errorf("portTaken: %v and %v, want true and false", taken.PortTaken(), other.PortTaken())
	}
}

func TestProcessesCollectGarbageAsTheSuiteDoes(t *testing.T) {
	t.Setenv("GOGC", "40")
	t.Setenv("TIDELINE_OTHER", "1")
	p := startShell(t, "echo of the suite: $GOGC $TIDELINE_OTHER.")
	<-p.done
	said, err := os.ReadFile(p.logPath)
	if err != nil || string(said) != "of the suite: 40 .\n" {
		t.Errorf("it said %q (%v)", said, err)
	}
}

func TestStopKillsAfterTheGrace(t *testing.T) {
	p := startShell(t, "trap '' TERM; while :; do sleep 0.1; done")
	began := time.Now()
	p.stop(200 * time.Millisecond)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping a process that ignores SIGTERM took %s", took)
	}
	if err := p.Failure(); err != nil {
		t.Errorf("a process that was stopped counts as failed: %v", err)
	}
}

func TestLastLines(t *testing.T) {
	for _, test := range []struct {
		text string
		n    int
		want string
	}{
		{"", 2, ""},
		{"a", 2, "a"},
		{"a\nb\nc\n", 2, "b\nc"},
		{"a\nb\nc\n", 9, "a\nb\nc"},
	} {
		if got := string(lastLines([]byte(test.text), test.n)); got != test.want {
			t.Errorf("lastLines(%q, %d) = %q, want %q", test.text, test.n, got, test.want)
		}
	}
}

func TestParallelReturnsTheFirstErrorAndEndsTheRest(t *testing.T) {
	first := errors.New("first")
	err := parallel(t.Context(),
		func(context.Context) error { return first },
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	)
	if !errors.Is(err, first) {
		t.Errorf("parallel = %v, want %v", err, first)
	}
	if err := parallel(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("parallel = %v, want nil", err)
	}
}
