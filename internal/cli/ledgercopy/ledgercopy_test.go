package ledgercopy

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

func read(ctx context.Context, at config.Ledger) (*ledger.Ledger, error) {
	return ledger.OpenToRead(ctx, ledger.Options{File: at.File})
}

func open(ctx context.Context, at config.Ledger) (*ledger.Ledger, error) {
	return ledger.Open(ctx, ledger.Options{File: at.File})
}

// configured is a configuration that names a ledger in a folder of its own; its path, and the ledger's.
func configured(t *testing.T) (configuration, file string) {
	t.Helper()
	folder := t.TempDir()
	file, configuration = filepath.Join(folder, "ledger.db"), filepath.Join(folder, "configuration.yaml")
	content := "apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\nledger: {file: " + file + "}\n"
	NewWithT(t).Expect(os.WriteFile(configuration, []byte(content), 0o600)).To(Succeed())
	return configuration, file
}

// keep records an hour of a pod.
func keep(t *testing.T, file, pod string) {
	t.Helper()
	g := NewWithT(t)
	l, err := open(t.Context(), config.Ledger{File: file})
	g.Expect(err).NotTo(HaveOccurred())
	noon := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	g.Expect(l.RecordEntries(t.Context(), ledger.Entries{Stays: []ledger.Stay{{
		Pod:   ledger.Pod{UID: pod, Namespace: "ads", Name: pod, User: "alice", Resources: ledger.Resources{"nvidia.com/gpu": 1000}},
		Begin: noon, End: noon.Add(time.Hour),
	}}})).To(Succeed())
	g.Expect(l.Close()).To(Succeed())
}

// pods are those that a ledger has.
func pods(t *testing.T, file string) []string {
	t.Helper()
	g := NewWithT(t)
	l, err := open(t.Context(), config.Ledger{File: file})
	g.Expect(err).NotTo(HaveOccurred())
	stays, err := l.OpenStays(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.Close()).To(Succeed())
	var names []string
	for _, s := range stays {
		names = append(names, s.Name)
	}
	return names
}

// run runs the command.
func run(t *testing.T, in io.Reader, args ...string) (code int, out []byte, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := cli.Root("tideline", Command(read, open))
	code = cli.Execute(t.Context(), root, append([]string{"ledger"}, args...), in, &stdout, &stderr)
	return code, stdout.Bytes(), stderr.String()
}

// What was saved through standard output or to a file is there again, in another ledger, and in the same after more had come.
func TestBackupIsRestored(t *testing.T) {
	g := NewWithT(t)
	configuration, file := configured(t)
	keep(t, file, "a")
	code, streamed, said := run(t, nil, "backup", "--config", configuration)
	g.Expect(code).To(BeZero(), said)
	g.Expect(said).To(MatchRegexp(`^Backed up \d rows to standard output\.\n$`))
	saved := filepath.Join(t.TempDir(), "ledger.backup")
	code, out, said := run(t, nil, "backup", "--config", configuration, saved)
	g.Expect(code).To(BeZero(), said)
	g.Expect(out).To(BeEmpty())
	info, err := os.Stat(saved)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), "names of people are in it")
	g.Expect(os.ReadDir(filepath.Dir(saved))).To(HaveLen(1), "nothing else is left")

	elsewhere, there := configured(t)
	code, _, said = run(t, bytes.NewReader(streamed), "restore", "--config", elsewhere, "-")
	g.Expect(code).To(BeZero(), said)
	g.Expect(said).To(ContainSubstring("Restart the operator"))
	g.Expect(pods(t, there)).To(ConsistOf("a"))

	keep(t, file, "b")
	code, _, said = run(t, nil, "restore", "--config", configuration, saved)
	g.Expect(code).To(Equal(cli.ExitFailed))
	g.Expect(said).To(ContainSubstring("has entries already, which the backup would replace: back it up, and give --replace"))
	g.Expect(pods(t, file)).To(ConsistOf("a", "b"))
	code, _, said = run(t, nil, "restore", "--config", configuration, "--replace", saved)
	g.Expect(code).To(BeZero(), said)
	g.Expect(pods(t, file)).To(ConsistOf("a"))
}

func TestWhatCannotBeCopied(t *testing.T) {
	g := NewWithT(t)
	configuration, file := configured(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"backup", "--config", configuration}, cli.ExitFailed, "there is no ledger here"},
		{[]string{"backup"}, cli.ExitFailed, "run the command where the operator runs"},
		{[]string{"backup", "a", "b"}, cli.ExitUsage, "name one file"},
		{[]string{"restore"}, cli.ExitUsage, "name one file"},
		{[]string{"restore", "--config", configuration, "/nowhere"}, cli.ExitFailed, "no such file"},
		{[]string{"restore", "--config", configuration, configuration}, cli.ExitFailed, "this is no backup of a ledger"},
		{[]string{"copy"}, cli.ExitUsage, "backup or restore"},
	} {
		code, _, said := run(t, nil, c.args...)
		g.Expect(said).To(ContainSubstring(c.says), "%v", c.args)
		g.Expect(code).To(Equal(c.code), "%v", c.args)
	}
	keep(t, file, "a")
	folder := filepath.Join(t.TempDir(), "none")
	code, _, _ := run(t, nil, "backup", "--config", configuration, filepath.Join(folder, "x"))
	g.Expect(code).To(Equal(cli.ExitFailed))
}
