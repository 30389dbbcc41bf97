// Command hostile tries what docs/security.md says that an attacker may try, and the ways in which a review found that one user
// can hurt others, by their numbers. It prints tables of what was tried, by how many tests, and whether it was refused, or let in
// and contained. A row without a test that ran is neither.
//
//	hostile [-scenarios=false] [-only=test/integration/merge]
//
// It runs in the root of the repository. Tests run by name; files of scenarios run whole, on a real API server and Volcano, with
// webhooks. Exit code: 0 if nothing gets through, else 1.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/onsi/ginkgo/v2/types"
)

// way is something that may be tried, and which Go tests and files of scenarios show what becomes of it.
type way struct {
	// number is that of the review; empty for a row of the page.
	number, tries string
	// refused is true for what is not let in at all.
	refused          bool
	tests, scenarios []string
}

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	file     = regexp.MustCompile(`\]\(\.\./([\w/]+_test\.go)\)`)
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	// headOfWays begins a table with a way in each row. Its last cell names the tests.
	headOfWays = regexp.MustCompile(`^\| (tries to|who \| is trusted with|attacker \| what holds) \|`)
)

func main() {
	scenarios := flag.Bool("scenarios", true, "run files of scenarios, on a cluster of their own")
	only := flag.String("only", "", "run scenarios of this folder alone, and nothing else")
	flag.Parse()
	contained, err := run(*scenarios, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
	}
	if err != nil || !contained {
		os.Exit(1)
	}
}

func run(scenarios bool, only string) (contained bool, err error) {
	page, err := os.ReadFile(filepath.Join("docs", "security.md"))
	if err != nil {
		return false, err
	}
	rows := waysOf(string(page))
	ways := slices.Concat(rows, numbered)
	packages, err := findTests()
	if err != nil {
		return false, err
	}
	outcomes := map[string]outcome{}
	if only == "" {
		if err := runTests(ways, packages, outcomes); err != nil {
			return false, err
		}
	}
	folders := map[string][]string{}
	for _, path := range filesOf(ways) {
		if strings.HasPrefix(path, "test/integration/") {
			folders[filepath.Dir(path)] = append(folders[filepath.Dir(path)], filepath.Base(path))
			continue
		}
		if only == "" {
			outcomes[path] = outcomeOf(runFile(path))
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if scenarios && (only == "" || folder == only) {
			if err := runScenarios(folder, folders[folder], outcomes); err != nil {
				return false, err
			}
		}
	}
	fmt.Println("What docs/security.md says that an attacker may try, and what became of it:")
	all := scenarios && only == ""
	contained = judge(rows, outcomes, all)
	fmt.Println("\nWays in which one user can hurt others, by number, and which were tried with a user's rights:")
	return judge(numbered, outcomes, all) && contained, nil
}

// judge prints a line for each way, and tells whether none gets through.
func judge(ways []way, outcomes map[string]outcome, scenarios bool) (contained bool) {
	contained = true
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer func() { _ = out.Flush() }()
	for _, w := range ways {
		verdict, ran := w.verdict(outcomes, scenarios)
		contained = contained && (ran > 0 || !scenarios) && !strings.HasPrefix(verdict, through) && !strings.HasPrefix(verdict, untried)
		who := ""
		if slices.ContainsFunc(w.scenarios, impersonates) {
			who = "as a user"
		}
		_, _ = fmt.Fprintf(out, "%s\t%.90s\ttried by %d\t%s\t%s\n", w.number, w.tries, ran, who, verdict)
	}
	return contained
}

// impersonates tells whether specs act as somebody else than an administrator.
func impersonates(scenario string) bool { return slices.Contains(impersonating, fileOf(scenario)) }

// through begins the verdict on what gets through, and untried that on what this machine cannot try.
const through, untried = "GETS THROUGH: ", "not tried, for skipped here: "

// verdict is what became of a way, and how many tests and files of scenarios tried it.
func (w way) verdict(outcomes map[string]outcome, scenarios bool) (verdict string, ran int) {
	lacking := ""
	for _, what := range slices.Concat(w.tests, w.scenarios) {
		switch o := outcomes[what]; {
		case o == ok:
			ran++
		case o == skipped:
			lacking = untried + what
		case o == notRun && !scenarios:
		default:
			return through + what, ran
		}
	}
	switch {
	case lacking != "":
		return lacking, ran
	case ran == 0:
		return "not tried", 0
	case w.refused:
		return "refused", ran
	}
	return "contained", ran
}

// waysOf reads the rows of tables whose last cell names tests.
func waysOf(page string) []way {
	var ways []way
	lines := bufio.NewScanner(strings.NewReader(page))
	inTable := false
	for lines.Scan() {
		cells := strings.Split(strings.Trim(lines.Text(), "| "), " | ")
		switch {
		case headOfWays.MatchString(lines.Text()):
			inTable = true
		case !strings.HasPrefix(lines.Text(), "|"):
			inTable = false
		case inTable && !strings.HasPrefix(cells[0], "---"):
			w := way{tries: cells[0], refused: len(cells) > 2 && strings.Contains(cells[1], "refuse")}
			for _, match := range testName.FindAllStringSubmatch(cells[len(cells)-1], -1) {
				w.tests = append(w.tests, match[1])
			}
			for _, match := range file.FindAllStringSubmatch(cells[len(cells)-1], -1) {
				w.scenarios = append(w.scenarios, match[1])
			}
			ways = append(ways, w)
		}
	}
	return ways
}

// namesOf are what ways name, each once.
func namesOf(ways []way, of func(way) []string) []string {
	var names []string
	for _, w := range ways {
		names = append(names, of(w)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fileOf is the file of scenarios, without the number of some of its specs.
func fileOf(scenario string) string {
	path, _, _ := strings.Cut(scenario, "#")
	return path
}

// filesOf are the files of scenarios that ways name, each once.
func filesOf(ways []way) []string {
	return namesOf(ways, func(w way) []string {
		files := make([]string, len(w.scenarios))
		for i, s := range w.scenarios {
			files[i] = fileOf(s)
		}
		return files
	})
}

// findTests finds the packages of all tests of the root module. A name may be in several.
func findTests() (map[string][]string, error) {
	packages := map[string][]string{}
	for _, root := range []string{".", "api", "controllers", "internal", "test/project", "test/cluster", "test/testutil"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && root == "." && path != "." {
				return skipFolder(err)
			}
			if !strings.HasSuffix(path, "_test.go") {
				return nil
			}
			content, err := os.ReadFile(path)
			for _, match := range declared.FindAllSubmatch(content, -1) {
				packages[string(match[1])] = append(packages[string(match[1])], "./"+filepath.Dir(path))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return packages, nil
}

func skipFolder(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}

// outcome is what became of a test, or of all that have its name.
type outcome int

const (
	notRun outcome = iota
	// skipped lacked something on this machine, or failed nowhere and was skipped in one of its packages.
	skipped
	ok
	failed
)

// and is the outcome of two tests of one name: the worse one.
func (o outcome) and(other outcome) outcome {
	switch {
	case o == failed || other == failed:
		return failed
	case o == skipped || other == skipped:
		return skipped
	}
	return max(o, other)
}

// runTests runs the Go tests that are named, package by package, and notes what became of them. A name that several packages have
// is run in each.
func runTests(ways []way, packages map[string][]string, outcomes map[string]outcome) error {
	by := map[string][]string{}
	for _, name := range namesOf(ways, func(w way) []string { return w.tests }) {
		if len(packages[name]) == 0 {
			return fmt.Errorf("there is no test %s", name)
		}
		for _, folder := range packages[name] {
			by[folder] = append(by[folder], name)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(by)) {
		names := by[folder]
		args := []string{"test", "-count=1", "-json", "-run=^(" + strings.Join(names, "|") + ")$", folder}
		cmd := exec.CommandContext(context.Background(), "go", args...)
		if strings.HasPrefix(folder, "./test/project") { // a module of its own
			cmd.Args[len(cmd.Args)-1], cmd.Dir = "./"+strings.TrimPrefix(folder, "./test/project"), "test/project"
		}
		cmd.Stderr = os.Stderr
		out, _ := cmd.Output() // what failed is among the events
		if err := noteEvents(out, names, outcomes); err != nil {
			return err
		}
	}
	return nil
}

// noteEvents notes what `go test -json` says of tests of these names. One without an event did not come to its end.
func noteEvents(events []byte, names []string, outcomes map[string]outcome) error {
	here := map[string]outcome{}
	for _, name := range names {
		here[name] = failed
	}
	for decoder := json.NewDecoder(bytes.NewReader(events)); decoder.More(); {
		var event struct{ Action, Test string }
		if err := decoder.Decode(&event); err != nil {
			return err
		}
		if !slices.Contains(names, event.Test) {
			continue
		}
		switch event.Action {
		case "pass":
			here[event.Test] = ok
		case "skip":
			here[event.Test] = skipped
		}
	}
	for name, o := range here {
		outcomes[name] = outcomes[name].and(o)
	}
	return nil
}

func outcomeOf(passed bool) outcome {
	if passed {
		return ok
	}
	return failed
}

// runFile runs all tests that a file declares.
func runFile(path string) bool {
	content, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	var names []string
	for _, match := range declared.FindAllSubmatch(content, -1) {
		names = append(names, string(match[1]))
	}
	folder, pattern := "./"+filepath.Dir(path), "-run=^("+strings.Join(names, "|")+")$"
	cmd := exec.CommandContext(context.Background(), "go", "test", "-count=1", pattern, folder)
	if strings.HasPrefix(folder, "./test/project") {
		cmd = exec.CommandContext(context.Background(), "go", "test", "-count=1", pattern, ".")
		cmd.Dir = "test/project"
	}
	return len(names) > 0 && succeed(cmd)
}

// alone are the folders whose scenarios follow one another, because they share the whole cluster.
var alone = []string{"profile", "order", "sharing", "sizing", "report"}

// runScenarios runs files of scenarios of a folder on one cluster, and notes what became of each.
func runScenarios(folder string, files []string, outcomes map[string]outcome) error {
	dir, err := os.MkdirTemp("", "tideline-hostile-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	procs := "--procs=3"
	if slices.Contains(alone, filepath.Base(folder)) {
		procs = "--procs=1"
	}
	args := []string{"tool", "ginkgo", "run", "--no-color", procs, "--silence-skips", "--fail-on-empty", "--vet=off",
		"--json-report=report.json", "--output-dir=" + dir}
	for _, file := range files {
		args = append(args, "--focus-file=/"+file+"$")
	}
	succeed(exec.CommandContext(context.Background(), "go", append(args, "./"+folder)...))
	content, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // It did not compile, which is said.
	}
	var reports []types.Report
	if err == nil {
		err = json.Unmarshal(content, &reports)
	}
	for _, report := range reports {
		noteSpecs(folder, files, report.SpecReports, outcomes)
	}
	return err
}

// specNumber is a number of the review with which the text of a spec begins.
var specNumber = regexp.MustCompile(`^T\d+`)

// noteSpecs notes files as passed in which a spec ran and none failed, and the same of the specs of a file that bear a number.
func noteSpecs(folder string, files []string, specs types.SpecReports, outcomes map[string]outcome) {
	ran, broken := map[string]bool{}, map[string]bool{}
	for i := range specs {
		s := &specs[i]
		for _, at := range append(slices.Clone(s.ContainerHierarchyLocations), s.LeafNodeLocation) {
			file := filepath.Base(at.FileName)
			keys := []string{file}
			if number := specNumber.FindString(s.LeafNodeText); number != "" {
				keys = append(keys, file+"#"+number)
			}
			for _, key := range keys {
				ran[key] = ran[key] || s.State == types.SpecStatePassed && s.LeafNodeType == types.NodeTypeIt
				broken[key] = broken[key] || s.State.Is(types.SpecStateFailureStates)
			}
		}
	}
	for key := range ran {
		if slices.Contains(files, fileOf(key)) {
			outcomes[filepath.Join(folder, key)] = outcomeOf(ran[key] && !broken[key])
		}
	}
	for _, file := range files {
		outcomes[filepath.Join(folder, file)] = outcomeOf(ran[file] && !broken[file])
	}
}

// succeed runs a command, and shows what it said if it failed.
func succeed(cmd *exec.Cmd) bool {
	out, err := cmd.CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v: %v\n%s\n", cmd.Args, err, out)
	}
	return err == nil
}
