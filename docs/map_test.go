package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMapHasALineForEveryPackage: docs/architecture.md lists the packages that the operator is built of, each once, and no other.
func TestMapHasALineForEveryPackage(t *testing.T) {
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .+ \\|$").FindAllSubmatch(page, -1) {
		listed = append(listed, string(row[1]))
	}
	there := packages(t)
	for _, name := range there {
		if !slices.Contains(listed, name) {
			t.Errorf("package %s has no line in docs/architecture.md: say there what it is for", name)
		}
	}
	for i, name := range listed {
		switch {
		case !slices.Contains(there, name):
			t.Errorf("docs/architecture.md has a line for %s, where there is no package", name)
		case slices.Index(listed, name) != i:
			t.Errorf("docs/architecture.md has two lines for %s", name)
		}
	}
	if !slices.IsSorted(listed) {
		t.Error("the packages in docs/architecture.md are not in order")
	}
}

// packages are the folders of the main module with Go files, tests and what only tests use left out.
func packages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == "../test" || entry.Name() == "bin" || entry.Name() == "testdata" ||
			strings.HasPrefix(entry.Name(), ".") && path != ".."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		folder, err := filepath.Rel("..", filepath.Dir(path))
		if folder = filepath.ToSlash(folder); err == nil && !slices.Contains(all, folder) {
			all = append(all, folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
