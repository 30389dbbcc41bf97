package badinput

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/crd"
)

// kind is a kind of job whose rules have cases.
type kind struct {
	definition []byte
	cases      []Case
	updates    []Update
	accepted   []Update
	// rules is less than the schema has.
	rules int
	// empty is a job for the operator to read into.
	empty func() any
}

var kinds = map[string]kind{
	v1beta1.ElasticTrainingJobKind: {
		crd.ElasticTrainingJob, Cases(), Updates(), Accepted(), 140, func() any { return &v1beta1.ElasticTrainingJob{} },
	},
	v1beta1.MergeJobKind: {
		crd.MergeJob, MergeCases(), MergeUpdates(), AcceptedByMerges(), 90, func() any { return &v1beta1.MergeJob{} },
	},
	v1beta1.ResourceQuotaProfileKind: {
		crd.ResourceQuotaProfile, ProfileCases(), ProfileUpdates(), AcceptedByProfiles(), 80,
		func() any { return &v1beta1.ResourceQuotaProfile{} },
	},
	v1beta1.CostReportKind: {crd.CostReport, ReportCases(), nil, nil, 40, func() any { return &v1beta1.CostReport{} }},
}

// Every rule of a schema has a case: whoever adds a rule adds the case in which it is seen.
func TestEveryRuleHasACase(t *testing.T) {
	for name, of := range kinds {
		t.Run(name, func(t *testing.T) {
			definition := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(of.definition, definition); err != nil {
				t.Fatal(err)
			}
			said := map[string]bool{}
			for _, c := range of.cases {
				for _, cause := range c.Says {
					said[cause] = true
				}
			}
			for _, u := range of.updates {
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
			if rules < of.rules {
				t.Errorf("the schema has %d rules, which cannot be all", rules)
			}
		})
	}
}

var index = regexp.MustCompile(`\[\d+\]`)

// forEachRule calls found with the path and the words of each rule below a schema, except those that Kubernetes makes for pods.
func forEachRule(path string, s *apiextensionsv1.JSONSchemaProps, found func(path, words string)) {
	for _, words := range rulesOf(s) {
		found(path, words)
	}
	for _, rule := range s.XValidations {
		found(strings.TrimPrefix(path+rule.FieldPath, "."), wordsOf(rule))
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

// wordsOf are the words of a rule. What an expression says is known at run time only, but for the longest words that it has in
// quotes.
func wordsOf(rule apiextensionsv1.ValidationRule) string {
	words := rule.Message
	for _, quoted := range quotation.FindAllStringSubmatch(rule.MessageExpression, -1) {
		for _, part := range verb.Split(strings.ReplaceAll(quoted[1], `\'`, `'`), -1) {
			if len(part) > len(words) {
				words = part
			}
		}
	}
	return words
}

var quotation, verb = regexp.MustCompile(`'((?:[^'\\]|\\.)*)'`), regexp.MustCompile(`%[ds]`)

// bounded are the fields of a pod that we bound ourselves.
var bounded = map[string]bool{
	"spec.template.spec.containers": true, "spec.template.spec.containers[].env": true,
	"spec.template.spec.terminationGracePeriodSeconds": true,
}

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
	if s.Type == "string" && s.Format != "" {
		add("must be of type %s", s.Format)
	}
	if len(s.Enum) > 0 {
		add("supported values: %s", strings.ReplaceAll(strings.Trim(fmt.Sprintf("%s", s.Enum), "[]{}"), "} {", ", "))
	}
	return rules
}
