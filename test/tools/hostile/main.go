// Command hostile tries what docs/security.md says that an attacker may try, and prints a table of what was tried, by which
// tests, and whether it was contained. A row without a test that ran is not contained.
//
//	hostile [-scenarios=false]
//
// It runs in the root of the repository. Tests that the page names run by name; files of scenarios run whole, on a real API
// server and Volcano, with webhooks. Exit code: 0 if all is contained, else 1.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// way is a row of the page: what is tried, and which Go tests and files of scenarios show that it is contained.
type way struct {
	tries            string
	tests, scenarios []string
}

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	file     = regexp.MustCompile(`\]\(\.\./([\w/]+_test\.go)\)`)
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

func main() {
	scenarios := flag.Bool("scenarios", true, "run files of scenarios, on a cluster of their own")
	flag.Parse()
	contained, err := run(*scenarios)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
	}
	if err != nil || !contained {
		os.Exit(1)
	}
}

func run(scenarios bool) (contained bool, err error) {
	page, err := os.ReadFile(filepath.Join("docs", "security.md"))
	if err != nil {
		return false, err
	}
	ways := waysOf(string(page))
	packages, err := findTests()
	if err != nil {
		return false, err
	}
	passed := map[string]bool{}
	if err := runTests(ways, packages, passed); err != nil {
		return false, err
	}
	for _, path := range all(ways, func(w way) []string { return w.scenarios }) {
		if strings.HasPrefix(path, "test/integration/") {
			if scenarios {
				passed[path] = runScenarios(path)
			}
			continue
		}
		passed[path] = runFile(path)
	}
	contained = true
	for _, w := range ways {
		verdict, ran := "contained", 0
		for _, what := range slices.Concat(w.tests, w.scenarios) {
			ok, known := passed[what]
			switch {
			case !known && !scenarios:
			case !ok:
				verdict, contained = "NOT CONTAINED: "+what, false
			default:
				ran++
			}
		}
		if verdict == "contained" && ran == 0 {
			verdict = "not tried"
			contained = contained && !scenarios
		}
		fmt.Printf("%-100.100s  %s\n", w.tries, verdict)
	}
	return contained, nil
}

// waysOf reads the rows of tables whose last cell names tests.
func waysOf(page string) []way {
	var ways []way
	lines := bufio.NewScanner(strings.NewReader(page))
	inTable := false
	for lines.Scan() {
		cells := strings.Split(strings.Trim(lines.Text(), "| "), " | ")
		switch {
		case strings.HasPrefix(lines.Text(), "| tries to |"):
			inTable = true
		case !strings.HasPrefix(lines.Text(), "|"):
			inTable = false
		case inTable && len(cells) == 3:
			w := way{tries: cells[0]}
			for _, match := range testName.FindAllStringSubmatch(cells[2], -1) {
				w.tests = append(w.tests, match[1])
			}
			for _, match := range file.FindAllStringSubmatch(cells[2], -1) {
				w.scenarios = append(w.scenarios, match[1])
			}
			ways = append(ways, w)
		}
	}
	return ways
}

// all are what ways name, each once.
func all(ways []way, of func(way) []string) []string {
	var names []string
	for _, w := range ways {
		names = append(names, of(w)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// findTests finds the packages of all tests of the root module.
func findTests() (map[string]string, error) {
	packages := map[string]string{}
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
				packages[string(match[1])] = "./" + filepath.Dir(path)
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

// runTests runs the Go tests that are named, package by package, and notes which passed.
func runTests(ways []way, packages map[string]string, passed map[string]bool) error {
	by := map[string][]string{}
	for _, name := range all(ways, func(w way) []string { return w.tests }) {
		folder, known := packages[name]
		if !known {
			return fmt.Errorf("there is no test %s", name)
		}
		by[folder] = append(by[folder], name)
	}
	for folder, names := range by {
		args := []string{"test", "-count=1", "-json", "-run=^(" + strings.Join(names, "|") + ")$", folder}
		cmd := exec.CommandContext(context.Background(), "go", args...)
		if strings.HasPrefix(folder, "./test/project") { // a module of its own
			cmd.Args[len(cmd.Args)-1], cmd.Dir = "./"+strings.TrimPrefix(folder, "./test/project"), "test/project"
		}
		cmd.Stderr = os.Stderr
		out, _ := cmd.Output() // what failed is among the events
		events := json.NewDecoder(bytes.NewReader(out))
		for events.More() {
			var event struct{ Action, Test string }
			if err := events.Decode(&event); err != nil {
				return err
			}
			if event.Action == "pass" && slices.Contains(names, event.Test) {
				passed[event.Test] = true
			}
		}
	}
	return nil
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

// runScenarios runs a file of scenarios.
func runScenarios(path string) bool {
	return succeed(exec.CommandContext(context.Background(), "go", "tool", "ginkgo", "run", "--no-color", "--procs=3",
		"--silence-skips", "--fail-on-empty", "--focus-file="+filepath.Base(path)+"$", "./"+filepath.Dir(path)))
}

// succeed runs a command, and shows what it said if it failed.
func succeed(cmd *exec.Cmd) bool {
	out, err := cmd.CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v: %v\n%s\n", cmd.Args, err, out)
	}
	return err == nil
}
