package docs

import (
	"flag"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/internal/platform/config"
)

const configurationPage = "docs/configuration.md"

// fields are the paths of all fields of a configuration with their values, those of a list's items as path[].field and empty.
func fields(path string, of reflect.Value) map[string]any {
	all := map[string]any{}
	for i, name := range config.FieldNames(of.Type()) {
		switch field, at := of.Field(i), path+name; {
		case field.Kind() == reflect.Struct:
			for below, value := range fields(at+".", field) {
				all[below] = value
			}
		case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct:
			all[at] = nil
			for below := range fields(at+"[].", reflect.Zero(field.Type().Elem())) {
				all[below] = nil
			}
		case field.Kind() == reflect.Map || path == "" && i < 2: // what the reader is referred to, or must write
			all[at] = nil
		default:
			all[at] = field.Interface()
		}
	}
	return all
}

// Every field has its row with its default, and every row has its field.
func TestEveryFieldOfTheConfigurationIsExplained(t *testing.T) {
	_, table, found := strings.Cut(read(t, configurationPage), "\n## Fields\n")
	if !found {
		t.Fatalf("%s has no chapter on fields", configurationPage)
	}
	known := fields("", reflect.ValueOf(*config.DefaultConfiguration()))
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| [^|]* \\| .* \\|$").FindAllStringSubmatch(table, -1) {
		path, shown := row[1], row[2]
		want, exists := known[path]
		if !exists {
			t.Errorf("%s explains %s, which is no field", configurationPage, path)
			continue
		}
		delete(known, path)
		if want == nil {
			continue
		}
		said := reflect.New(reflect.TypeOf(want))
		err := yaml.Unmarshal([]byte(strings.Trim(shown, "`")), said.Interface())
		if err != nil || !reflect.DeepEqual(said.Elem().Interface(), want) {
			t.Errorf("%s says that %s is %s by default, and it is %#v", configurationPage, path, shown, want)
		}
	}
	for path := range known {
		t.Errorf("%s does not explain %s", configurationPage, path)
	}
}

func TestEveryFlagOfTheConfigurationIsListed(t *testing.T) {
	page := read(t, configurationPage)
	known := fields("", reflect.ValueOf(*config.DefaultConfiguration()))
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	config.DefaultConfiguration().AddFlags(flags)
	rows := regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| `([a-zA-Z.]+)`").FindAllStringSubmatch(page, -1)
	var listed []string
	for _, row := range rows {
		listed = append(listed, row[1])
		if _, exists := known[row[2]]; !exists {
			t.Errorf("%s: --%s is said to override %s, which is no field", configurationPage, row[1], row[2])
		}
	}
	flags.VisitAll(func(f *flag.Flag) {
		if !slices.Contains(listed, f.Name) {
			t.Errorf("%s does not list --%s", configurationPage, f.Name)
		}
		listed = slices.DeleteFunc(listed, func(name string) bool { return name == f.Name })
	})
	if len(listed) > 0 {
		t.Errorf("%s lists %v, which are no flags of the configuration", configurationPage, listed)
	}
}

func TestConfigurationsThatAreShownLoad(t *testing.T) {
	shown := 0
	for _, page := range pages(t) {
		for _, block := range manifests(read(t, page)) {
			if strings.Contains(block, "kind: "+config.Kind+"\n") {
				shown++
				if _, err := config.Load(page, []byte(block)); err != nil {
					t.Errorf("%v in\n%s", err, block)
				}
			}
		}
	}
	if shown < 3 {
		t.Errorf("only %d configurations were found in pages", shown)
	}
}

// The file that is installed has every field, with its default; only the ledger has a place there, because it is mounted there.
func TestInstalledConfigurationIsTheDefault(t *testing.T) {
	const path = "config/manager/configuration.yaml"
	content := read(t, path)
	installed, err := config.Load(path, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	want := config.DefaultConfiguration()
	want.Ledger.File = installed.Ledger.File
	if !reflect.DeepEqual(installed, want) || !strings.Contains(read(t, configurationPage), "`"+want.Ledger.File+"`") {
		t.Errorf("%s says %+v, the defaults are %+v", path, installed, want)
	}
	// What a list that is empty may have stands behind it in comments.
	example := strings.NewReplacer(": []\n# - ", ":\n- ", "\n# - ", "\n- ").Replace(content)
	if _, err := config.Load(path, []byte(example)); err != nil {
		t.Error(err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(example), &tree); err != nil {
		t.Fatal(err)
	}
	for field := range fields("", reflect.ValueOf(*config.DefaultConfiguration())) {
		if !has(tree, field) {
			t.Errorf("%s does not show %s", path, field)
		}
	}
}

// has tells whether a tree, or any item of its lists, has a field.
func has(tree map[string]any, path string) bool {
	name, below, nested := strings.Cut(path, ".")
	if list, isList := strings.CutSuffix(name, "[]"); isList {
		items, _ := tree[list].([]any)
		return slices.ContainsFunc(items, func(item any) bool { return has(item.(map[string]any), below) })
	}
	value, given := tree[name]
	if !nested {
		return given
	}
	object, _ := value.(map[string]any)
	return has(object, below)
}
