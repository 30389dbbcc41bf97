// Package docs tests that what people read agrees with the code.
package docs

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
	"github.com/tideline-io/tideline/test/testutil/markdown"
)

const repository = ".."

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// pages are all pages, by their path from the root of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	all, err := markdown.Pages(os.DirFS(repository))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// words are the values of the constants in the API's conditions whose names begin with a prefix, each once.
func words(t *testing.T, prefix string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repository, "api", "v1beta1", "*_conditions.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no files of conditions: %v", err)
	}
	var values []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, prefix) {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
			return true
		})
	}
	if len(values) == 0 {
		t.Fatalf("the API has no constant %s…", prefix)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// paragraphs are the texts below the third-level headings of a page, by heading.
func paragraphs(t *testing.T, page string) map[string]string {
	t.Helper()
	texts, heading := map[string]string{}, ""
	for line := range strings.Lines(read(t, page)) {
		switch {
		case strings.HasPrefix(line, "### "):
			heading = strings.TrimSpace(line[len("### "):])
			if _, twice := texts[heading]; twice {
				t.Errorf("%s has two paragraphs %s", page, heading)
			}
			texts[heading] = ""
		case strings.HasPrefix(line, "#"):
			heading = ""
		case heading != "":
			texts[heading] += strings.TrimSpace(line)
		}
	}
	return texts
}

// Whoever sees a word in kubectl finds it in the troubleshooting page.
func TestEveryReasonHasItsParagraph(t *testing.T) {
	const page = "docs/troubleshooting.md"
	texts := paragraphs(t, page)
	known := slices.Concat(words(t, "Reason"), words(t, "Event"))
	for _, reason := range known {
		if len(texts[reason]) < 40 {
			t.Errorf("%s says too little of %s: %q", page, reason, texts[reason])
		}
	}
	for heading := range texts {
		if !slices.Contains(known, heading) {
			t.Errorf("%s explains %s, which no job says", page, heading)
		}
	}
}

func TestEveryConditionIsExplained(t *testing.T) {
	const page = "docs/reference/conditions.md"
	conditions := read(t, page)
	for _, condition := range words(t, "Condition") {
		if !regexp.MustCompile(`(?m)^\| ([A-Za-z]+, )?` + condition + `[ ,]`).MatchString(conditions) {
			t.Errorf("%s does not explain condition %s", page, condition)
		}
	}
}

func TestTiersAreThoseOfTheOperator(t *testing.T) {
	concepts := read(t, "docs/concepts.md")
	for _, tier := range config.DefaultTiers() {
		longest := "none"
		if tier.LongestRunSeconds > 0 {
			longest = fmt.Sprintf("%g h", tier.LongestRun().Hours())
		}
		row := fmt.Sprintf("| `%s` | `%s` | %d | `%s` | %d | %s | %s |\n",
			tier.Name, tier.ClassName(), tier.Priority, tier.SurplusClassName(), tier.SurplusPriority, tier.QoS, longest)
		if !strings.Contains(concepts, row) {
			t.Errorf("docs/concepts.md does not say %s", row)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	code    = regexp.MustCompile("(?s)```.*?```")
)

// anchors are the names by which a page's headings are linked.
func anchors(page string) []string {
	var names []string
	for _, h := range heading.FindAllStringSubmatch(code.ReplaceAllString(page, ""), -1) {
		name := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(h[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		content := read(t, page)
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(content, ""), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(match[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(repository, target)); errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s does not exist", page, match[1])
			} else if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s: %s has no heading %s", page, target, anchor)
			}
		}
	}
}

var (
	namedPath = regexp.MustCompile("`((?:api|bundle|config|controllers|docs|internal|test)/[^`\\s{}<>*]+)`")
	namedTest = regexp.MustCompile("`(Test[A-Z]\\w+)`")
	// elsewhere is what kubebuilder would make.
	elsewhere = []string{"internal/controller/"}
)

// Files, folders and tests that are named exist.
func TestWhatIsNamedExists(t *testing.T) {
	tests := testNames(t)
	for _, page := range pages(t) {
		content := code.ReplaceAllString(read(t, page), "")
		for _, match := range namedPath.FindAllStringSubmatch(content, -1) {
			_, err := os.Stat(filepath.Join(repository, match[1]))
			if errors.Is(err, fs.ErrNotExist) && !slices.Contains(elsewhere, match[1]) {
				t.Errorf("%s: %s does not exist", page, match[1])
			}
		}
		for _, match := range namedTest.FindAllStringSubmatch(content, -1) {
			if !tests[match[1]] {
				t.Errorf("%s: there is no test %s", page, match[1])
			}
		}
	}
}

// testNames are the names of all Go tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, folder := range []string{"api", "controllers", "internal", "main_test.go", "test"} {
		err := filepath.WalkDir(filepath.Join(repository, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			for _, match := range declared.FindAllStringSubmatch(string(content), -1) {
				names[match[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

func TestPagesAreListed(t *testing.T) {
	for _, page := range pages(t) {
		folder := "docs"
		if filepath.Dir(page) == "docs/decisions" {
			folder = filepath.Dir(page)
		}
		name, err := filepath.Rel(folder, page)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(page, folder+"/") && name != "README.md" && !strings.Contains(read(t, folder+"/README.md"), "("+name+")") {
			t.Errorf("%s/README.md does not list %s", folder, name)
		}
	}
}

var target = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)

func TestMakeTargetsExist(t *testing.T) {
	var targets []string
	for _, match := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets = append(targets, match[1])
	}
	for _, page := range pages(t) {
		for _, match := range regexp.MustCompile("(?m)(?:^|`)make ([a-z0-9-]+)").FindAllStringSubmatch(read(t, page), -1) {
			if !slices.Contains(targets, match[1]) {
				t.Errorf("%s: there is no make target %s", page, match[1])
			}
		}
	}
}

// manifests are the texts of a page that are whole YAML.
func manifests(page string) []string {
	var texts []string
	for _, block := range markdown.In("yaml", markdown.Blocks(page)) {
		if block.Note == "" {
			texts = append(texts, block.Text)
		}
	}
	return texts
}

// What a page shows of a file is what is in the file.
func TestPagesShowTheirFiles(t *testing.T) {
	for page, file := range map[string]string{
		"README.md":               "config/samples/smallest.yaml",
		"docs/elastic-pytorch.md": "docs/examples/elastic.yaml",
	} {
		shown := manifests(read(t, page))
		if content := read(t, file); !slices.Contains(shown, content) {
			t.Errorf("%s shows %q, %s is %q", page, shown, file, content)
		}
	}
}

// Every job and merge that is shown would be admitted.
func TestJobsAreValid(t *testing.T) {
	checked := checkShown(t, v1beta1.ElasticTrainingJobKind, crd.ElasticTrainingJob,
		func() any { return &v1beta1.ElasticTrainingJob{} })
	if checked < 4 {
		t.Errorf("only %d jobs were found in samples and pages", checked)
	}
	completed := func() any { // as the API server does, before it evaluates rules
		return &v1beta1.MergeJob{Spec: v1beta1.MergeJobSpec{
			MinReplicas: 1, MaxReplicas: 1, Store: v1beta1.ModelStore{Increments: "inc/", Full: "full/"},
		}}
	}
	if checkShown(t, v1beta1.MergeJobKind, crd.MergeJob, completed) == 0 {
		t.Error("no merge was found in samples and pages")
	}
	profile := func() any { return &v1beta1.ResourceQuotaProfile{} }
	if checkShown(t, v1beta1.ResourceQuotaProfileKind, crd.ResourceQuotaProfile, profile) == 0 {
		t.Error("no profile was found in samples and pages")
	}
	report := func() any { return &v1beta1.CostReport{} }
	if checkShown(t, v1beta1.CostReportKind, crd.CostReport, report) == 0 {
		t.Error("no report was found in samples and pages")
	}
}

// checkShown holds what is shown of a kind to its definition, and counts it.
func checkShown(t *testing.T, kind string, definition []byte, empty func() any) int {
	t.Helper()
	rules := specvalidation.New(definition, v1beta1.GroupVersion.Version)
	jobs := map[string][]byte{}
	samples, err := filepath.Glob(filepath.Join(repository, "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range samples {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		jobs[path] = content
	}
	for _, page := range pages(t) {
		for i, block := range manifests(read(t, page)) {
			jobs[page+" "+strconv.Itoa(i+1)] = []byte(block)
		}
	}
	checked := 0
	for where, content := range jobs {
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			if !bytes.Contains(document, []byte("kind: "+kind+"\n")) {
				continue
			}
			checked++
			job := empty()
			if err := yaml.UnmarshalStrict(document, job); err != nil {
				t.Errorf("%s: %v", where, err)
			}
			if problem, err := rules.CheckSpec(t.Context(), job); err != nil || problem != "" {
				t.Errorf("%s: %s%v", where, problem, err)
			}
		}
	}
	return checked
}
