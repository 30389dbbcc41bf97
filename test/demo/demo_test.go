package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// One Ctrl-C ends the demo at any moment, and nothing is left of it. One case tells the whole story first, and then opens the
// console as the demo says.
func TestInterrupt(t *testing.T) {
	demo := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", demo, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the demo: %v\n%s", err, out)
	}
	if err := cluster.Build(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	page := copyOfREADME(t)
	for name, test := range map[string]struct {
		args   []string
		after  string
		status int
	}{
		"building": {nil, "building the operator", 130},
		"starting": {nil, "done in", 130},
		"telling":  {nil, "$ kubectl apply -f " + sampleB, 130},
		"told":     {[]string{"-page", page}, "until you press Ctrl-C", 0},
		"merging":  {[]string{"merge"}, " in line", 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := func(string) {}
			if name == "told" {
				look = func(out string) { openConsole(t, out) }
			}
			status, out := interrupt(t, test.after, look, demo, test.args...)
			if status != test.status {
				t.Errorf("exit status %d, want %d, after:\n%s", status, test.status, out)
			}
			if name == "told" {
				compareExcerpts(t, readme, page)
			}
		})
	}
}

const readme = "../../README.md"

func copyOfREADME(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(page, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return page
}

// compareExcerpts compares what two pages show of the demo, but for times, ports and spaces, which differ from run to run.
func compareExcerpts(t *testing.T, want, got string) {
	t.Helper()
	measured := regexp.MustCompile(`\b[0-9.]+ ?s\b|\blocalhost:[0-9]+\b`)
	var excerpts []string
	for _, page := range []string{want, got} {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		shown, ok := markdown.Marked(string(content), pageTarget)
		if !ok {
			t.Fatalf("%s has no marks of %s", page, pageTarget)
		}
		excerpts = append(excerpts, strings.Join(strings.Fields(measured.ReplaceAllString(shown, "[figure]")), " "))
	}
	if excerpts[0] != excerpts[1] {
		t.Errorf("README.md shows\n%s\nand the demo printed\n%s\nrun %s", excerpts[0], excerpts[1], pageTarget)
	}
}

// openConsole reads the console with what the demo printed first: its address, and a line that prints a token.
func openConsole(t *testing.T, out string) {
	t.Helper()
	address, command := regexp.MustCompile(`(?m)^Console: (https://\S+)$`).FindStringSubmatchIndex(out),
		regexp.MustCompile(`(?m)^  (KUBECONFIG=.* create token .*)$`).FindStringSubmatch(out)
	if address == nil || command == nil || address[0] > strings.Index(out, "\n1. ") {
		t.Errorf("the demo does not begin with the console's address and how to sign in:\n%s", out)
		return
	}
	token, err := exec.CommandContext(t.Context(), "sh", "-c", command[1]).Output()
	if err != nil {
		t.Errorf("%s: %v", command[1], err)
		return
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	for page, shows := range map[string]string{"": "gpu-0", "jobs": "default/ctr", "jobs/default/ctr": "Running"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, out[address[2]:address[3]]+page, http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		response, err := client.Do(request)
		if err != nil {
			t.Errorf("open page %q of the console: %v", page, err)
			return
		}
		content, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(content), shows) {
			t.Errorf("page %q of the console, %s (%v), does not show %s:\n%s", page, response.Status, err, shows, content)
		}
	}
}

// interrupt runs the demo with a folder of its own for all its files, looks at what it has printed once that has some words, and
// interrupts it. It returns how the demo ended and what it printed.
func interrupt(t *testing.T, after string, look func(out string), demo string, args ...string) (int, string) {
	t.Helper()
	own := t.TempDir()
	// The programs of the cluster are built already.
	if err := os.Symlink(filepath.Join(filepath.Dir(cluster.DefaultKubeconfig()), "bin"), filepath.Join(own, "bin")); err != nil {
		t.Fatal(err)
	}
	temporary := filepath.Join(own, "tmp")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	out := &waiter{words: after, seen: make(chan struct{})}
	cmd := exec.CommandContext(t.Context(), demo, args...)
	cmd.Env = append(os.Environ(), "TIDELINE_CACHE="+own, "TMPDIR="+temporary, "ONESHOT=")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-out.seen:
	case err := <-ended:
		t.Fatalf("the demo ended (%v) before it said %q:\n%s", err, after, out)
	}
	look(out.String())
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatalf("the demo did not end within a minute of the interrupt:\n%s", out)
	}
	if err := left(own, temporary, filepath.Join(own, "clusters")); err != nil {
		t.Errorf("after the interrupt: %v", err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// left names processes that work in a folder or whose program is in it, and files that are in folders to be empty.
func left(work string, empty ...string) error {
	links, err := filepath.Glob("/proc/[0-9]*/[ce][wx][de]") // cwd and exe
	errs := []error{err}
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && strings.HasPrefix(path, work) {
			errs = append(errs, fmt.Errorf("process %s is left in %s", filepath.Base(filepath.Dir(link)), path))
		}
	}
	for _, folder := range empty {
		files, err := os.ReadDir(folder)
		if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, f := range files {
			errs = append(errs, fmt.Errorf("%s is left in %s", f.Name(), folder))
		}
	}
	return errors.Join(errs...)
}

// waiter is an output that tells when some words have been written to it.
type waiter struct {
	words string
	seen  chan struct{}

	mu      sync.Mutex
	written bytes.Buffer
}

func (w *waiter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := bytes.Contains(w.written.Bytes(), []byte(w.words))
	n, err := w.written.Write(p)
	if !before && bytes.Contains(w.written.Bytes(), []byte(w.words)) {
		close(w.seen)
	}
	return n, err
}

func (w *waiter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written.String()
}
