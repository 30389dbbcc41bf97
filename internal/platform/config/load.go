package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Load reads a configuration file. name is its path, for errors. What the file leaves out has its default. The error has one
// sentence per line for everything that is wrong: file, field, value, and what it must be.
func Load(name string, content []byte) (*Configuration, error) {
	c := DefaultConfiguration()
	found := c.read(content)
	if err := found.sentences(func(string) string { return name }); err != nil {
		return nil, err
	}
	return c, nil
}

// read fills the configuration with what a file says, and completes and checks it.
func (c *Configuration) read(content []byte) problems {
	root, found := parseYAML(content, "apiVersion: "+APIVersion+" and kind: "+Kind)
	if root == nil {
		return found
	}
	if version, given := root["apiVersion"]; given && version != APIVersion {
		found.value("apiVersion", version, "it must be "+APIVersion+", the only version that this operator reads")
		return found // The rest may be right for that version.
	}
	for _, field := range []struct{ name, want string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		if _, given := root[field.name]; !given {
			found.add(field.name, "is missing: it must be "+field.want)
		}
	}
	found.decode("", root, reflect.ValueOf(c).Elem())
	c.complete()
	for _, p := range c.validate() {
		if !found.hasPath(p.path) {
			found = append(found, p)
		}
	}
	return found
}

// complete fills in defaults that depend on other fields.
func (c *Configuration) complete() {
	marked := len(c.Tiers) == 0
	for i := range c.Tiers {
		t := &c.Tiers[i]
		t.QoS = cmp.Or(t.QoS, QoSBurstable)
		t.Sizing = t.Sizing.withDefaults(defaultSizing(t.Name))
		marked = marked || t.Default
	}
	if !marked {
		c.Tiers[0].Default = true
	}
}

// problem is one thing that is wrong.
type problem struct {
	// path of the field, for example tiers[1].priority; empty for the file as a whole.
	path string
	// says what is there and what must be.
	says string
}

type problems []problem

func (p *problems) add(path, says string) {
	*p = append(*p, problem{path, says})
}

// value adds a value that breaks a rule, which says what it must be.
func (p *problems) value(path string, value any, rule string) {
	p.add(path, "is "+quote(value)+": "+rule)
}

// hasPath is true if something is wrong at a path.
func (p *problems) hasPath(path string) bool {
	for _, other := range *p {
		if other.path == path {
			return true
		}
	}
	return false
}

// sentences makes one error of all problems, nil for none. where returns what precedes a problem, given its path; it may be
// empty.
func (p *problems) sentences(where func(path string) string) error {
	sentences := make([]error, len(*p))
	for i, problem := range *p {
		path := problem.path
		if path != "" {
			path += " "
		}
		file := where(problem.path)
		if file != "" {
			file += ": "
		}
		sentences[i] = errors.New(file + path + problem.says + ".")
	}
	return errors.Join(sentences...)
}

// longest is how many characters of a value are quoted.
const longest = 60

// quote is a value as a file would have it, on one line and at most longest characters.
func quote(value any) string {
	text := fmt.Sprintf("%q", value)
	if _, isText := value.(string); !isText {
		encoded, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprintf("a %T", value)
		}
		text = string(encoded)
	}
	if shown := []rune(text); len(shown) > longest {
		return string(shown[:longest]) + "…"
	}
	return text
}

// Decode fills the struct that into points to from a YAML document, by the JSON names of its fields. It may have fields of the
// kinds that a [Configuration] has. begin says how such a document begins, for errors. The error has one sentence per line for
// everything that does not fit: field, value, and what it must be.
func Decode(content []byte, begin string, into any) error {
	root, found := parseYAML(content, begin)
	if root != nil {
		found.decode("", root, reflect.ValueOf(into).Elem())
	}
	return found.sentences(func(string) string { return "" })
}

// parseYAML returns the fields of a YAML document as maps, lists, strings, bools and json.Numbers; nil if it has none.
func parseYAML(content []byte, begin string) (map[string]any, problems) {
	var found problems
	if countDocuments(content) > 1 {
		found.add("", "it has several documents: leave one, without a line --- or ... between fields")
		return nil, found
	}
	encoded, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		// Only the strict reader reports a field that stands twice; the other one goes on and finds what else is wrong.
		for _, line := range yamlErrors(err) {
			found.add("", line)
		}
		if encoded, err = yaml.YAMLToJSON(content); err != nil {
			return nil, found
		}
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		found.add("", "it cannot be read: "+err.Error()+": correct the YAML")
		return nil, found
	}
	root, isMapping := tree.(map[string]any)
	switch {
	case tree == nil:
		found.add("", "it is empty: begin it with "+begin)
	case !isMapping:
		found.add("", "it is not a mapping of fields: begin it with "+begin)
	}
	return root, found
}

// twice is how the YAML reader says that a field stands twice.
var twice = regexp.MustCompile(`^line (\d+): key (.*) already set in map$`)

// yamlErrors are the words of the YAML reader, a sentence for each thing that is wrong.
func yamlErrors(err error) []string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:")
	var says []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if match := twice.FindStringSubmatch(line); match != nil {
			says = append(says, fmt.Sprintf("it has field %s twice, again in line %s: leave one", match[2], match[1]))
		} else {
			says = append(says, "it is not YAML: "+line+": correct it there")
		}
	}
	return says
}

// separator is a line that ends a YAML document or begins the next.
var separator = regexp.MustCompile(`^(---|\.\.\.)(\s|$)`)

// countDocuments counts the YAML documents that are not empty. The YAML reader would ignore all but the first.
func countDocuments(content []byte) int {
	n, empty := 0, true
	for line := range strings.Lines(string(content)) {
		if mark := separator.FindString(line); mark != "" {
			line, empty = line[len(mark):], true
		}
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' || line[0] == '%' {
			continue
		}
		if empty {
			n, empty = n+1, false
		}
	}
	return n
}
