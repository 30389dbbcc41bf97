package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
)

func TestWaysOfAPage(t *testing.T) {
	const page = `
| attacker | what holds |
|---|---|
| a reader | nothing (` + "`TestNot`" + `) |

| tries to | is stopped by | tests |
|---|---|---|
| read | a webhook | [a](../test/integration/a_test.go), ` + "`TestB`" + ` |
| write | the schema refuses it | ` + "`FuzzC`, `TestB`" + ` |
`
	want := []way{
		{tries: "read", tests: []string{"TestB"}, scenarios: []string{"test/integration/a_test.go"}},
		{tries: "write", refused: true, tests: []string{"FuzzC", "TestB"}},
	}
	if got := waysOf(page); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if got := namesOf(want, func(w way) []string { return w.tests }); !reflect.DeepEqual(got, []string{"FuzzC", "TestB"}) {
		t.Errorf("%v", got)
	}
}

// specs finds specs of Ginkgo.
var specs = regexp.MustCompile(`\b(It|Entry|DescribeTable)\(`)

// Each row of the threat model, and each way by its number, names tests that exist.
func TestEveryWayHasItsTests(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	page, err := os.ReadFile(filepath.Join("docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := findTests()
	if err != nil {
		t.Fatal(err)
	}
	rows := waysOf(string(page))
	if len(rows) < 40 || len(numbered) < 19 {
		t.Fatalf("read %d rows and %d ways", len(rows), len(numbered))
	}
	for _, w := range slices.Concat(rows, numbered) {
		if len(w.tests)+len(w.scenarios) == 0 {
			t.Errorf("%s %s: no test", w.number, w.tries)
		}
		for _, name := range w.tests {
			if packages[name] == "" {
				t.Errorf("%s %s: there is no %s", w.number, w.tries, name)
			}
		}
		for _, path := range w.scenarios {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Errorf("%s %s: %v", w.number, w.tries, err)
			}
			if !declared.Match(content) && !specs.Match(content) {
				t.Errorf("%s %s: %s has no test", w.number, w.tries, path)
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	passed := map[string]bool{"TestA": true, "TestB": false, "f_test.go": true}
	for want, w := range map[string]way{
		"contained": {tests: []string{"TestA"}, scenarios: []string{"f_test.go"}}, "refused": {refused: true, tests: []string{"TestA"}},
		through + "TestB": {tests: []string{"TestA", "TestB"}}, through + "other_test.go": {scenarios: []string{"other_test.go"}},
		"not tried": {},
	} {
		if got, _ := w.verdict(passed, true); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	if got, _ := (way{scenarios: []string{"other_test.go"}}).verdict(passed, false); got != "not tried" {
		t.Error(got)
	}
}

func TestSpecsOfFiles(t *testing.T) {
	spec := func(file, container string, state types.SpecState) types.SpecReport {
		return types.SpecReport{
			LeafNodeType: types.NodeTypeIt, LeafNodeLocation: types.CodeLocation{FileName: "/x/" + file}, State: state,
			ContainerHierarchyLocations: []types.CodeLocation{{FileName: "/x/" + container}},
		}
	}
	passed := map[string]bool{}
	noteSpecs("f", []string{"a_test.go", "b_test.go", "c_test.go"}, types.SpecReports{
		spec("a_test.go", "all_test.go", types.SpecStatePassed), spec("a_test.go", "all_test.go", types.SpecStateSkipped),
		spec("b_test.go", "all_test.go", types.SpecStatePassed), spec("b_test.go", "all_test.go", types.SpecStatePanicked),
		spec("c_test.go", "all_test.go", types.SpecStateSkipped),
	}, passed)
	want := map[string]bool{"f/a_test.go": true, "f/b_test.go": false, "f/c_test.go": false}
	if !reflect.DeepEqual(passed, want) {
		t.Errorf("%v", passed)
	}
}
