package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// measures is the code that each benchmark measures, and the program that does it.
var measures = map[string][]string{
	"make bench": {
		"controllers/elastictrainingjob", "internal/capacity/arbiter", "internal/training", "test/perf/speed",
	},
	"make bench-many": {
		"controllers/elastictrainingjob", "internal/capacity/arbiter", "internal/training", "test/perf/speed",
	},
	"make bench-merge":           {"internal/merging", "controllers/mergejob", "test/perf/merge"},
	"make bench-merge-line":      {"internal/merging", "internal/capacity", "test/perf/mergeline"},
	"make bench-merge-deadlocks": {"internal/merging", "internal/capacity", "test/perf/mergeline"},
	"make bench-merge-fewest":    {"internal/merging", "internal/capacity", "test/perf/mergeline"},
	"make bench-merge-agreement": {"internal/merging", "internal/capacity", "controllers/mergejob", "test/perf/mergeline"},
	"make bench-console":         {"internal/console", "controllers/elastictrainingjob", "test/perf/console"},
	"make bench-growth":          {"internal/training", "internal/capacity", "test/perf/growth"},
	"make bench-gain":            {"internal/training", "internal/capacity", "test/perf/growth"},
	"make bench-sizing":          {"internal/usage", "test/perf/sizing"},
	"make bench-outcome": {
		"internal/training", "internal/capacity", "config/volcano", "test/perf/outcome", "test/perf/scheduler",
	},
	"make bench-whatif": {
		"internal/capacity", "internal/quota", "config/volcano", "test/perf/outcome", "test/perf/scheduler",
	},
	"make bench-whatif-stock": {
		"internal/capacity", "internal/quota", "config/volcano", "test/perf/outcome", "test/perf/scheduler",
	},
	"make bench-forecast": {
		"internal/training", "internal/capacity", "config/volcano", "test/perf/outcome", "test/perf/scheduler",
	},
	"make bench-fragmentation": {"config/volcano", "test/perf/fragmentation", "test/perf/scheduler"},
	"make bench-repack":        {"internal/capacity", "test/perf/fragmentation"},
	"make bench-giveway":       {"config/volcano", "test/cluster/modules", "test/perf/giveway"},
}

var (
	beginMark = regexp.MustCompile(`<!-- begin: (make bench[a-z-]*) -->`)
	// A row with two figures side by side: what describes an experiment has one at most.
	figures  = regexp.MustCompile(`(?m)^\|.*\| *[0-9][^|]*\| *[0-9].*$`)
	atCommit = regexp.MustCompile(`at commits? ([0-9a-f]{7,40}(?:, [0-9a-f]{7,40})*)[ .,:;]`)
)

// unmeasured stands between the marks of a command that was not run for the page yet.
const unmeasured = "Not measured yet."

// A figure without its command and its commit cannot be tried again, nor doubted.
func TestTablesOfBenchmarksSayWhatTheyMeasured(t *testing.T) {
	seen := map[string]bool{}
	for _, page := range pages(t) {
		text := read(t, page)
		for _, m := range beginMark.FindAllStringSubmatch(text, -1) {
			command := m[1]
			seen[command] = true
			results, _ := markdown.Marked(text, command)
			if measures[command] == nil {
				t.Errorf("%s has results of %s, and measures does not say what it measures", page, command)
			}
			if strings.TrimSpace(results) != unmeasured && !atCommit.MatchString(results) {
				t.Errorf("%s: the results of %s do not say at which commit, as in \"at commit 1234abc.\"", page, command)
			}
			text = strings.Replace(text, results, "\n", 1)
		}
		if filepath.Dir(page) == "docs/benchmarks" {
			if row := figures.FindString(text); row != "" {
				t.Errorf("%s has a row of figures outside the marks of a command: %s", page, row)
			}
		}
	}
	for command, paths := range measures {
		if !seen[command] {
			t.Errorf("no page has results of %s", command)
		}
		if !strings.Contains(read(t, "Makefile"), "\n"+strings.TrimPrefix(command, "make ")+":") {
			t.Errorf("the Makefile has no target for %s", command)
		}
		for _, path := range paths {
			if _, err := os.Stat(filepath.Join(repository, path)); err != nil {
				t.Errorf("%s measures %s: %v", command, path, err)
			}
		}
	}
}

// Figures may be older than the code: a change need not measure anew what it hardly touches. So this warns, in the closing lines
// of test/run.sh, and fails not.
func TestOldBenchmarksAreToldOf(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range beginMark.FindAllStringSubmatch(read(t, page), -1) {
			results, _ := markdown.Marked(read(t, page), m[1])
			found := atCommit.FindStringSubmatch(results)
			if found == nil {
				continue // Nothing was measured, or the test above says so.
			}
			for commit := range strings.SplitSeq(found[1], ", ") {
				warning, err := ageOf(t.Context(), repository, page, commit, measures[m[1]])
				if err != nil {
					t.Skipf("without the history of the repository the age of figures is unknown: %v", err)
				}
				if warning != "" {
					warn(t, fmt.Sprintf("%s: the figures of %s are old: %s", page, m[1], warning))
				}
			}
		}
	}
}

func TestAgeOfBenchmarksIsFound(t *testing.T) {
	folder := t.TempDir()
	run := func(args ...string) string {
		said, err := git(t.Context(), folder, append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run("add", "-A")
		run("commit", "-qm", name+text)
	}
	age := func(commit string) string {
		said, err := ageOf(t.Context(), folder, "page.md", commit, []string{"code.go"})
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	run("init", "-q")
	write("code.go", "1")
	measured := run("rev-parse", "--short=8", "HEAD")
	const squashed = "00000001"
	write("page.md", "at commit "+squashed+".")
	if said := age(measured) + age(squashed); said != "" {
		t.Errorf("what did not change since is said to be old: %s", said)
	}
	write("other.go", "1")
	if said := age(measured); said != "" {
		t.Errorf("what changed elsewhere makes figures old: %s", said)
	}
	write("code.go", "2")
	for _, commit := range []string{measured, squashed} {
		if said := age(commit); !strings.Contains(said, "code.go changed in 1 commit since") {
			t.Errorf("after a change of the code, the age of %s is %q", commit, said)
		}
	}
}

// ageOf says what changed in the paths since a commit; nothing if nothing did. A commit that became part of another one counts as
// the one that brought its name onto the page.
func ageOf(ctx context.Context, folder, page, commit string, paths []string) (string, error) {
	base := commit
	if _, err := git(ctx, folder, "rev-parse", "-q", "--verify", commit+"^{commit}"); err != nil {
		brought, err := git(ctx, folder, "log", "--reverse", "--format=%h", "-S"+commit, "--", page)
		if err != nil {
			return "", err
		}
		base, _, _ = strings.Cut(brought, "\n")
		if base == "" {
			return "", fmt.Errorf("neither commit %s nor the one that brought it onto %s is there", commit, page)
		}
	}
	if shallow, err := git(ctx, folder, "rev-parse", "--is-shallow-repository"); err != nil || shallow == "true" {
		return "", errors.Join(errors.New("the history is not whole"), err)
	}
	var changed []string
	for _, path := range paths {
		// Tests beside the code do not change what it does.
		log, err := git(ctx, folder, "log", "--format=%h", base+"..HEAD", "--", path, ":(exclude,glob)**/*_test.go")
		if err != nil {
			return "", err
		}
		switch n := len(strings.Fields(log)); n {
		case 0:
		case 1:
			changed = append(changed, path+" changed in 1 commit")
		default:
			changed = append(changed, fmt.Sprintf("%s changed in %d commits", path, n))
		}
	}
	if changed == nil {
		return "", nil
	}
	return strings.Join(changed, ", ") + " since " + commit, nil
}

// git asks git about a folder, whoever owns it.
func git(ctx context.Context, folder string, args ...string) (string, error) {
	said, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-C", folder}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(said)), nil
}

// warn says something that fails nothing, also where the output of tests that pass is hidden.
func warn(t *testing.T, what string) {
	t.Helper()
	t.Log(what)
	path := os.Getenv("TIDELINE_WARNINGS")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintln(file, "warning: "+what)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}
