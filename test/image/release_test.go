package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checkout is a clone of the repository as it was committed.
func checkout(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "tideline")
	if said, err := exec.CommandContext(t.Context(), "git", "clone", "-q", repository, folder).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v: %s", err, said)
	}
	return folder
}

// release runs .ci/release there, with more in its environment.
func release(t *testing.T, folder string, env []string, arguments ...string) (said string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), ".ci/release", arguments...)
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// unpacked are the files of an archive, by name.
func unpacked(t *testing.T, archive string) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(read(t, archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for entries := tar.NewReader(plain); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name] = string(content)
	}
}

// The steps of a release run here as far as no registry is needed: a trial of the commit that is checked out.
func TestReleaseIsSignedCompleteAndRepeatable(t *testing.T) {
	folder, keys := checkout(t), t.TempDir()
	key, out := filepath.Join(keys, "key"), filepath.Join(folder, "bin", "release", "v9.9.9")
	makeKey := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	if said, err := makeKey.CombinedOutput(); err != nil {
		t.Skipf("there is no ssh-keygen here: %v: %s", err, said)
	}
	made := func() map[string]string {
		said, err := release(t, folder, []string{"UNTAGGED=1", "SIGNING_KEY=" + key}, "v9.9.9", "registry.example/tideline")
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		sums := map[string]string{}
		for line := range strings.Lines(string(read(t, filepath.Join(out, "SHA256SUMS")))) {
			sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			sums[name] = sum
		}
		return sums
	}
	sums := made()
	if got, want := slices.Sorted(maps.Keys(sums)), []string{
		"install.yaml", "provenance.json", "tideline-9.9.9.cdx.json", "tideline-9.9.9.tgz", "tideline-bundle-9.9.9.tgz",
		"tideline-linux-amd64", "tideline-linux-arm64",
	}; !slices.Equal(got, want) {
		t.Fatalf("the release has %v, want %v", got, want)
	}
	var provenance struct {
		Subject []struct {
			Name   string
			Digest map[string]string
		}
	}
	if err := json.Unmarshal(read(t, filepath.Join(out, "provenance.json")), &provenance); err != nil {
		t.Fatal(err)
	}
	for name, sum := range sums {
		content := sha256.Sum256(read(t, filepath.Join(out, name)))
		if hex.EncodeToString(content[:]) != sum {
			t.Errorf("the sum of %s is not %s", name, sum)
		}
	}
	for _, s := range provenance.Subject {
		if s.Digest["sha256"] != sums[s.Name] {
			t.Errorf("the provenance has another sum of %s", s.Name)
		}
	}
	if n := len(provenance.Subject); n != len(sums)-1 {
		t.Errorf("the provenance has %d files", n)
	}

	signers := filepath.Join(keys, "signers")
	if err := os.WriteFile(signers, append([]byte("release@tideline.io "), read(t, key+".pub")...), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := exec.CommandContext(t.Context(), "ssh-keygen", "-Y", "verify", "-n", "tideline-release", "-I", "release@tideline.io",
		"-f", signers, "-s", filepath.Join(out, "SHA256SUMS.sig"))
	verify.Stdin = bytes.NewReader(read(t, filepath.Join(out, "SHA256SUMS")))
	if said, err := verify.CombinedOutput(); err != nil {
		t.Errorf("the signature does not hold: %v: %s", err, said)
	}

	chart := unpacked(t, filepath.Join(out, "tideline-9.9.9.tgz"))
	bundle := unpacked(t, filepath.Join(out, "tideline-bundle-9.9.9.tgz"))
	for name, want := range map[string][2]string{
		"Chart.yaml":   {chart["tideline/Chart.yaml"], "version: 9.9.9\nappVersion: 9.9.9\n"},
		"values.yaml":  {chart["tideline/values.yaml"], "  repository: registry.example/tideline\n  tag: v9.9.9\n"},
		"the bundle":   {bundle["bundle/manifests/tideline.clusterserviceversion.yaml"], "image: registry.example/tideline:v9.9.9"},
		"install.yaml": {string(read(t, filepath.Join(out, "install.yaml"))), "image: registry.example/tideline:v9.9.9"},
	} {
		if !strings.Contains(want[0], want[1]) {
			t.Errorf("%s does not have %q", name, want[1])
		}
	}
	if again := made(); !maps.Equal(sums, again) {
		t.Errorf("the same commit makes other files: %v and %v", sums, again)
	}
}

// What is wrong is said before anything is made.
func TestReleaseThatCannotBe(t *testing.T) {
	folder := checkout(t)
	const image = "registry.example/tideline"
	trial := []string{"UNTAGGED=1"}
	for says, c := range map[string]struct {
		env       []string
		arguments []string
	}{
		"usage:":                      {nil, []string{"v1.0.0"}},
		"VERSION 1.0:":                {nil, []string{"1.0", image}},
		"IMAGE registry.example/a:1:": {nil, []string{"v1.0.0", "registry.example/a:1"}},
		"HEAD is not tagged v1.0.0":   {nil, []string{"v1.0.0", image}},
		"SIGNING_KEY /nowhere:":       {append(trial, "SIGNING_KEY=/nowhere"), []string{"v1.0.0", image}},
		"PUBLISH: a trial is not":     {append(trial, "PUBLISH=1"), []string{"v1.0.0", image}},
	} {
		if said, err := release(t, folder, c.env, c.arguments...); err == nil || !strings.Contains(said, says) {
			t.Errorf("%v: %v: %q, want %q", c.arguments, err, said, says)
		}
	}
	if made, err := filepath.Glob(filepath.Join(folder, "bin", "*")); err != nil || len(made) > 0 {
		t.Errorf("made %v (%v)", made, err)
	}
}
