package convert

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

const othersPage = "../../../docs/convert-others.md"

var updatePage = flag.Bool("update-page", false, "write what examples of docs/convert-others.md become into it")

// section is what the page has between a comment and the next one, which ends it.
func section(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(othersPage)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "<!-- "+name+" -->\n")
	table, _, ended := strings.Cut(after, "<!-- end -->")
	if !found || !ended {
		t.Fatalf("the page has no section %s", name)
	}
	return table
}

// rowsOf are the cells of a table's rows, without its head.
func rowsOf(table string) [][]string {
	var rows [][]string
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "); len(cells) > 1 {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows[1:]
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// codeNames are the code spans of a cell.
func codeNames(cell string) []string {
	var all []string
	for _, found := range codeSpan.FindAllStringSubmatch(cell, -1) {
		all = append(all, found[1])
	}
	return all
}

// fieldsOf are the names that a type's fields have in JSON, each behind a prefix, those of inlined types included.
func fieldsOf(prefix string, of any) []string {
	var all []string
	kind := reflect.TypeOf(of)
	for i := range kind.NumField() {
		f := kind.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && strings.Contains(options, "inline") {
			all = append(all, fieldsOf(prefix, reflect.Zero(f.Type).Interface())...)
			continue
		}
		all = append(all, prefix+name)
	}
	return all
}

// hasEveryField fails unless the first column of a table names each of the fields, and nothing else.
func hasEveryField(t *testing.T, name string, fields []string) {
	t.Helper()
	var listed []string
	for _, row := range rowsOf(section(t, name)) {
		listed = append(listed, codeNames(row[0])...)
	}
	for _, f := range fields {
		if !slices.Contains(listed, f) {
			t.Errorf("%s: the table has no row for %s: say what becomes of it", name, f)
		}
	}
	for i, f := range listed {
		if !slices.Contains(fields, f) || slices.Index(listed, f) != i {
			t.Errorf("%s: the table has a row for %s, which the kind does not have, or has two", name, f)
		}
	}
}

func TestPageHasEveryFieldOfVolcanoJob(t *testing.T) {
	hasEveryField(t, "fields: Volcano Job", slices.Concat(
		fieldsOf("", batch.JobSpec{}), fieldsOf("tasks[].", batch.TaskSpec{}),
		fieldsOf("volumes[].", batch.VolumeSpec{}), fieldsOf("policies[].", batch.LifecyclePolicy{}),
	))
}

func TestPageHasEveryFieldOfTrainJob(t *testing.T) {
	hasEveryField(t, "fields: TrainJob", slices.Concat(fieldsOf("", TrainJobSpec{}), fieldsOf("trainer.", Trainer{})))
	hasEveryField(t, "fields: runtime", slices.Concat(
		fieldsOf("", TrainingRuntimeSpec{}), fieldsOf("mlPolicy.", MLPolicy{}), fieldsOf("template.spec.", JobSetSpec{})))
}

func TestPageHasEveryFieldOfMPIJob(t *testing.T) {
	hasEveryField(t, "fields: MPIJob", fieldsOf("", MPIJobSpec{}))
}

func TestPageHasEveryPluginOfVolcano(t *testing.T) {
	known := append(sortedKeys(foreign), pluginEnv, pluginSvc, pluginSSH, pluginMPI, pluginPyTorch, pluginTensorFlow)
	var listed []string
	for _, row := range rowsOf(section(t, "plugins")) {
		listed = append(listed, codeNames(row[0])...)
	}
	for _, name := range known {
		if !slices.Contains(listed, name) {
			t.Errorf("the page does not say what becomes of the plugin %s", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "--") {
			t.Errorf("the page speaks of a plugin %s, which is not converted", name)
		}
	}
}

// The table of policies is what the code does.
func TestPageHasEveryPolicyOfVolcano(t *testing.T) {
	var want [][]string
	for _, event := range sortedKeys(happenings) {
		want = append(want, []string{"`" + string(event) + "`", inCode(happenings[event]...)})
	}
	for _, action := range sortedKeys(actions) {
		var ours []v1beta1.FailureAction
		if a := actions[action]; a != "" {
			ours = append(ours, a)
		}
		want = append(want, []string{"`" + string(action) + "`", inCode(ours...)})
	}
	if have := rowsOf(section(t, "policies")); !reflect.DeepEqual(have, want) {
		t.Errorf("the page has\n%q\nwant\n%q", have, want)
	}
}

func inCode[T ~string](words ...T) string {
	if len(words) == 0 {
		return "none"
	}
	var spans []string
	for _, w := range words {
		spans = append(spans, "`"+string(w)+"`")
	}
	return strings.Join(spans, ", ")
}

// Each example of the page becomes what the page shows.
func TestOthersPageShowsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile(othersPage)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)\n```yaml\n(apiVersion.*?\n)```\n\nbecomes\n\n```yaml\n(.*?\n)```\n\n" +
		"with these notes:\n\n```\n(.*?\n)```\n")
	written, found := page, 0
	for _, e := range example.FindAllSubmatch(page, -1) {
		found++
		var stdout, stderr bytes.Buffer
		run(bytes.NewReader(e[1]), &stdout, &stderr, "-f", "-")
		notes := strings.ReplaceAll(stderr.String(), stdinPath+":", "job.yaml:")
		if *updatePage {
			shown := slices.Concat([]byte("\n```yaml\n"), e[1], []byte("```\n\nbecomes\n\n```yaml\n"), stdout.Bytes(),
				[]byte("```\n\nwith these notes:\n\n```\n"), []byte(notes), []byte("```\n"))
			written = bytes.Replace(written, e[0], shown, 1)
			continue
		}
		if stdout.String() != string(e[2]) || notes != string(e[3]) {
			t.Errorf("prints\n%s\nand says\n%s\nIf that is right: go test ./internal/cli/convert -run TestOthersPage -update-page",
				&stdout, notes)
		}
	}
	if found == 0 {
		t.Error("the page has no example")
	}
	if *updatePage {
		if err := os.WriteFile(othersPage, written, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
