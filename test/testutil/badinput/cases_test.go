package badinput

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/config/crd"
)

// Every rule of the schema has a case: whoever adds a rule adds the case in which it is seen.
func TestEveryRuleHasACase(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(crd.ElasticTrainingJob, definition); err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, c := range Cases() {
		for _, cause := range c.Says {
			said[cause] = true
		}
	}
	for _, u := range Updates() {
		said[u.Says] = true
	}
	rules := 0
	forEachRule("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path, words string) {
		rules++
		for cause := range said {
			at, rest, _ := strings.Cut(cause, ": ")
			if index.ReplaceAllString(at, "[]") == path && strings.Contains(rest, words) {
				return
			}
		}
		t.Errorf("no case breaks the rule %q of %s", words, path)
	})
	if rules < 60 {
		t.Errorf("the schema has %d rules, which cannot be all", rules)
	}
}

var index = regexp.MustCompile(`\[\d+\]`)

// forEachRule calls found with the path and the words of each rule below a schema, except those that Kubernetes makes for pods.
func forEachRule(path string, s *apiextensionsv1.JSONSchemaProps, found func(path, words string)) {
	for _, words := range rulesOf(s) {
		found(path, words)
	}
	for _, rule := range s.XValidations {
		// What an expression says is known at run time only.
		found(strings.TrimPrefix(path+rule.FieldPath, "."), rule.Message)
	}
	for _, name := range s.Required {
		found(strings.TrimPrefix(path+"."+name, "."), "Required value")
	}
	for name, field := range s.Properties {
		fieldPath := strings.TrimPrefix(path+"."+name, ".")
		if fieldPath == "status" || (strings.HasPrefix(path, "spec.template.spec") && !bounded[fieldPath]) {
			continue
		}
		forEachRule(fieldPath, &field, found)
	}
	if s.Items != nil && !strings.HasSuffix(path, ".env") {
		forEachRule(path+"[]", s.Items.Schema, found)
	}
}

// bounded are the fields of a pod that we bound ourselves.
var bounded = map[string]bool{"spec.template.spec.containers": true, "spec.template.spec.containers[].env": true}

// rulesOf puts the limits of a schema itself in the API server's words.
func rulesOf(s *apiextensionsv1.JSONSchemaProps) (rules []string) {
	add := func(format string, args ...any) { rules = append(rules, fmt.Sprintf(format, args...)) }
	if s.Minimum != nil {
		add("greater than or equal to %g", *s.Minimum)
	}
	if s.Maximum != nil {
		add("less than or equal to %d", int64(*s.Maximum))
	}
	if s.MinLength != nil {
		add("at least %d chars long", *s.MinLength)
	}
	if s.MaxLength != nil {
		add("may not be more than %d bytes", *s.MaxLength)
	}
	if s.Pattern != "" {
		add("should match '%s'", s.Pattern)
	}
	if s.MinItems != nil {
		add("at least %d items", *s.MinItems)
	}
	if s.MaxItems != nil {
		add("at most %d items", *s.MaxItems)
	}
	if len(s.Enum) > 0 {
		add("supported values: %s", strings.ReplaceAll(strings.Trim(fmt.Sprintf("%s", s.Enum), "[]{}"), "} {", ", "))
	}
	return rules
}
