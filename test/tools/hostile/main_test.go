package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
)

func TestWaysOfAPage(t *testing.T) {
	const page = `
| attacker | what holds |
|---|---|
| a reader | nothing (` + "`TestNot`, [d](../test/d_test.go)" + `) |

| somebody | may |
|---|---|
| a reader | read (` + "`TestRead`" + `) |

| tries to | is stopped by | tests |
|---|---|---|
| read | a webhook | [a](../test/integration/a_test.go), ` + "`TestB`" + ` |
| write | the schema refuses it | ` + "`FuzzC`, `TestB`" + ` |
`
	want := []way{
		{tries: "a reader", tests: []string{"TestNot"}, scenarios: []string{"test/d_test.go"}},
		{tries: "read", tests: []string{"TestB"}, scenarios: []string{"test/integration/a_test.go"}},
		{tries: "write", refused: true, tests: []string{"FuzzC", "TestB"}},
	}
	if got := waysOf(page); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	got := namesOf(want, func(w way) []string { return w.tests })
	if !reflect.DeepEqual(got, []string{"FuzzC", "TestB", "TestNot"}) {
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
			if len(packages[name]) == 0 {
				t.Errorf("%s %s: there is no %s", w.number, w.tries, name)
			}
		}
		for _, path := range w.scenarios {
			file, number, numbered := strings.Cut(path, "#")
			content, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("%s %s: %v", w.number, w.tries, err)
			}
			if numbered && !strings.Contains(string(content), `("`+number+": ") {
				t.Errorf("%s %s: no spec of %s begins with %s", w.number, w.tries, file, number)
			}
			if !declared.Match(content) && !specs.Match(content) {
				t.Errorf("%s %s: %s has no test", w.number, w.tries, path)
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	outcomes := map[string]outcome{"TestA": ok, "TestB": failed, "TestC": skipped, "f_test.go": ok}
	for want, w := range map[string]way{
		"contained": {tests: []string{"TestA"}, scenarios: []string{"f_test.go"}}, "refused": {refused: true, tests: []string{"TestA"}},
		through + "TestB":         {tests: []string{"TestA", "TestC", "TestB"}},
		through + "other_test.go": {scenarios: []string{"other_test.go"}},
		untried + "TestC":         {tests: []string{"TestC", "TestA"}}, "not tried": {},
	} {
		if got, _ := w.verdict(outcomes, true); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	if got, _ := (way{scenarios: []string{"other_test.go"}}).verdict(outcomes, false); got != "not tried" {
		t.Error(got)
	}
	for want, w := range map[bool]way{true: {tests: []string{"TestA"}}, false: {tests: []string{"TestA", "TestC"}}} {
		if got := judge([]way{w}, outcomes, true); got != want {
			t.Errorf("%v: %t", w.tests, got)
		}
	}
}

func TestEventsOfTests(t *testing.T) {
	outcomes := map[string]outcome{}
	names := []string{"TestA", "TestB", "TestC", "TestD"}
	for _, events := range []string{
		`{"Action":"pass","Test":"TestA"}{"Action":"pass","Test":"TestB"}{"Action":"skip","Test":"TestC"}` +
			`{"Action":"pass","Test":"TestD"}{"Action":"fail","Test":"TestA/x"}{"Action":"pass"}`,
		`{"Action":"pass","Test":"TestA"}{"Action":"fail","Test":"TestB"}{"Action":"pass","Test":"TestC"}` +
			`{"Action":"run","Test":"TestD"}`,
	} {
		if err := noteEvents([]byte(events), names, outcomes); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]outcome{"TestA": ok, "TestB": failed, "TestC": skipped, "TestD": failed}
	if !reflect.DeepEqual(outcomes, want) {
		t.Errorf("%v: a name is as good as the worst of its packages", outcomes)
	}
}

func TestSpecsOfFiles(t *testing.T) {
	spec := func(file, container, text string, state types.SpecState) types.SpecReport {
		return types.SpecReport{
			LeafNodeText: text, LeafNodeType: types.NodeTypeIt, LeafNodeLocation: types.CodeLocation{FileName: "/x/" + file}, State: state,
			ContainerHierarchyLocations: []types.CodeLocation{{FileName: "/x/" + container}},
		}
	}
	outcomes := map[string]outcome{}
	noteSpecs("f", []string{"a_test.go", "b_test.go", "c_test.go"}, types.SpecReports{
		spec("a_test.go", "all_test.go", "is", types.SpecStatePassed), spec("a_test.go", "all_test.go", "", types.SpecStateSkipped),
		spec("b_test.go", "all_test.go", "T1: is", types.SpecStatePassed),
		spec("b_test.go", "all_test.go", "", types.SpecStatePanicked),
		spec("b_test.go", "all_test.go", "T12: is", types.SpecStatePassed),
		spec("b_test.go", "all_test.go", "T12: fails", types.SpecStateFailed),
		spec("c_test.go", "all_test.go", "T2: is", types.SpecStateSkipped),
	}, outcomes)
	want := map[string]outcome{
		"f/a_test.go": ok, "f/b_test.go": failed, "f/b_test.go#T1": ok, "f/b_test.go#T12": failed,
		"f/c_test.go": failed, "f/c_test.go#T2": failed,
	}
	if !reflect.DeepEqual(outcomes, want) {
		t.Errorf("%v", outcomes)
	}
}
