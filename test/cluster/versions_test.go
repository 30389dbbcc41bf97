package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modulesOf makes a source tree with these folders of modules, each empty.
func modulesOf(t *testing.T, folders ...string) (repo string) {
	t.Helper()
	repo = t.TempDir()
	for _, folder := range folders {
		if err := os.MkdirAll(filepath.Join(repo, "test", "cluster", "modules", folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return repo
}

func TestVersionIsChosenByVariable(t *testing.T) {
	const variable = "TIDELINE_TESTED_PART"
	repo := modulesOf(t, "tested-1.9.0", "tested-1.10.0", "tested-1.10.0-rc.1", "other-2.0.0")
	p := Part{name: "tested", variable: variable}
	for given, want := range map[string]string{
		"":            "tested-1.10.0",
		"1.9.0":       "tested-1.9.0",
		"v1.9.0":      "tested-1.9.0",
		"1.10.0-rc.1": "tested-1.10.0-rc.1",
	} {
		t.Setenv(variable, given)
		folder, err := p.moduleFolder(repo)
		if err != nil || filepath.Base(folder) != want {
			t.Errorf("%s=%s chooses %s, %v; want %s", variable, given, folder, err, want)
		}
	}
}

func TestUnknownVersionIsRefused(t *testing.T) {
	repo := modulesOf(t, "tested-1.9.0", "tested-1.10.0")
	t.Setenv("TIDELINE_TESTED_PART", "1.8.0")
	_, err := Part{name: "tested", variable: "TIDELINE_TESTED_PART"}.moduleFolder(repo)
	const want = "TIDELINE_TESTED_PART is 1.8.0, which is not supported: choose 1.10.0 or 1.9.0"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %q, want %q", err, want)
	}
}

// A part of one version is that version whatever is chosen for others that are
// built of the same module.
func TestPartOfOneVersion(t *testing.T) {
	repo := modulesOf(t, "tested-1.9.0", "tested-1.10.0", "single")
	for _, p := range []Part{{name: "tested", only: "1.9.0"}, {name: "single"}} {
		folder, err := p.moduleFolder(repo)
		if want := p.folder(); err != nil || filepath.Base(folder) != want {
			t.Errorf("the folder is %s, %v; want %s", folder, err, want)
		}
	}
}

func TestVersionWithoutAmendmentsIsBuiltAsItIs(t *testing.T) {
	goMod, err := Part{amends: "example.com/x"}.amendedGoMod(t.Context(), t.TempDir(), t.TempDir())
	if goMod != "" || err != nil {
		t.Errorf("it is built with %q, %v; want the go.mod of the module", goMod, err)
	}
}

// The module that Volcano 1.15.1 is amended by is whole, with its licence, and an
// attempt that was cut short before leaves nothing in it.
func TestAmendedModule(t *testing.T) {
	moduleDir, dir := filepath.Join("modules", "volcano-1.15.1"), t.TempDir()
	source := filepath.Join(dir, "amended", "volcano.sh", "apis")
	left := filepath.Join(source, "pkg", "left.go")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	goMod, err := volcanoPart.amendedGoMod(t.Context(), moduleDir, dir)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(goMod)
	if err != nil || !slices.Contains(strings.Fields(string(content)), source) {
		t.Errorf("%s does not replace the module by %s: %v", goMod, source, err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("a file of an earlier attempt is still there")
	}
	for _, file := range []string{"LICENSE", "go.mod", "pkg/apis/scheduling/v1beta1/labels.go",
		"pkg/apis/scheduling/v1beta1/queueallocationgate.go"} {
		if _, err := os.Stat(filepath.Join(source, file)); err != nil {
			t.Error(err)
		}
	}
}
