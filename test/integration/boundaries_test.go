package integration

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/config/crd"
)

// boundary is a value at the edge of what a field may be.
type boundary struct {
	// path of the field below spec; [] are the items of a list, {} the values of a map.
	path string
	// value of the field; nil for a field that is absent.
	value any
	// beyond is true for a value that the schema does not admit.
	beyond bool
}

// String names the field and its value.
func (b boundary) String() string {
	value := fmt.Sprintf("%v", b.value)
	if len(value) > 60 {
		value = fmt.Sprintf("%s... (%d)", value[:60], len(value))
	}
	return b.path + " = " + value
}

// company is what an object needs besides the one field that is tried, by its path.
var company = map[string]map[string]any{
	"failurePolicy.rules[]":             {"action": "RestartWorker", "onEvents": []any{"PodFailed"}},
	"failurePolicy.rules[].onExitCodes": {"operator": "In", "values": []any{1}},
	"framework.torchrun.rdzvConf[]":     {"key": "close_timeout", "value": "30"},
	"failurePolicy.rules[].targets[]":   {"indexes": "0"},
	"successPolicy.targets[]":           {"indexes": "0"},
	"submitter":                         {"username": "ada"},
	"accelerator":                       {"models": []any{acceleratorModel}},
	"master.resources.claims[]":         {"name": "none"},
	"roles[].resources.claims[]":        {"name": "none"},
	"roles[].env[]":                     {"name": "STEPS"},
	"roles[]":                           {"name": "ps"},
	"pages[]":                           {"name": "board", "port": 6006},
	"dataSets[]":                        {"name": "clicks", "version": "1"},
}

// acceleratorModel is what the nodes of the scenario have.
const acceleratorModel = "H100"

// siblings is what a field, or one value of it, needs beside it.
var siblings = map[string]map[string]any{
	"framework.ssh":                         {"type": "Custom"},
	"elasticity.stepWithin.level=HyperNode": {"tier": 1},
	"networkTopology.mode=Hard":             {"highestTierAllowed": 1},
	"networkTopology.mode=<nil>":            {"highestTierAllowed": 1}, // Hard is the default.
}

// chosen are values of fields for which the schema has no bounds, because Kubernetes defines them, and of some fields of the
// template, which has hundreds.
var chosen = map[string][]any{
	"master.nodeSelector{}": {map[string]any{"kubernetes.io/os": "none"}, map[string]any{"no label": "x"}},
	"master.resources.limits{}": {
		map[string]any{"nvidia.com/gpu": 2}, map[string]any{"nvidia.com/gpu": 4096}, map[string]any{"cpu": -1},
	},
	"master.resources.requests{}":    {map[string]any{"cpu": "1m"}, map[string]any{"memory": "8Ei"}, map[string]any{"cpu": "many"}},
	"master.resources.claims[].name": {"none", ""}, "master.resources.claims[].request": {"none", ""},
	"roles[].nodeSelector{}": {map[string]any{"kubernetes.io/os": "none"}, map[string]any{"no label": "x"}},
	"roles[].resources.limits{}": {
		map[string]any{"nvidia.com/gpu": 2}, map[string]any{"nvidia.com/gpu": 4096}, map[string]any{"cpu": -1},
	},
	"roles[].resources.requests{}":    {map[string]any{"cpu": "1m"}, map[string]any{"memory": "8Ei"}, map[string]any{"cpu": "many"}},
	"roles[].resources.claims[].name": {"none", ""}, "roles[].resources.claims[].request": {"none", ""},
	"template.metadata.labels":                    {map[string]any{"team": "ads"}, map[string]any{"no label": "x"}},
	"template.spec.terminationGracePeriodSeconds": {0, -1, 86400, 86401},
	"template.spec.hostNetwork":                   {true, false},
	"template.spec.restartPolicy":                 {"OnFailure", "Always"},
	"template.spec.schedulerName":                 {"default-scheduler"},
	"template.spec.activeDeadlineSeconds":         {1, 0},
	"template.spec.containers": {[]any{}, []any{map[string]any{
		"name": "trainer", "image": "trainer", "resources": map[string]any{"limits": map[string]any{"cpu": "-1"}},
	}}},
	"template.spec.tolerations":        {[]any{map[string]any{"operator": "Exists"}}, []any{map[string]any{"operator": "Maybe"}}},
	"template.spec.serviceAccountName": {"nobody"},
}

// boundaries lists the boundaries of every field of a job's spec, by path, and of the fields of the template that are chosen.
func boundaries() map[string][]boundary {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.UnmarshalStrict(crd.ElasticTrainingJob, definition)).To(Succeed(), "the definition is read")
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	all := map[string][]boundary{}
	walk("", &spec, all)
	for path, values := range chosen {
		for _, value := range values {
			all[path] = append(all[path], boundary{path: path, value: value})
		}
	}
	return all
}

// walk adds the boundaries of what is below a field.
func walk(path string, s *apiextensionsv1.JSONSchemaProps, all map[string][]boundary) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		if at == "template" {
			continue
		}
		if strings.HasSuffix(field.Description, "is a former name, and refused.") {
			all[at] = []boundary{{path: at, value: formerValue(at, &field), beyond: true}}
			continue
		}
		all[at] = append(boundariesOf(at, &field), boundary{path: at})
		walk(at, &field, all)
	}
	if s.Items != nil {
		all[path+"[]"] = boundariesOf(path+"[]", s.Items.Schema)
		walk(path+"[]", s.Items.Schema, all)
	}
	if s.AdditionalProperties != nil {
		all[path+"{}"] = nil // They are chosen.
	}
}

// formerValue is what a field by a former name was given.
func formerValue(path string, s *apiextensionsv1.JSONSchemaProps) any {
	switch s.Type {
	case "boolean":
		return false
	case "integer":
		return 0
	case "string":
		return "a"
	case "array":
		return []any{item(path, s, 0)}
	}
	return map[string]any{}
}

// boundariesOf lists the boundaries that the schema states for one field.
func boundariesOf(path string, s *apiextensionsv1.JSONSchemaProps) []boundary {
	within := func(values ...any) (b []boundary) {
		for _, value := range values {
			b = append(b, boundary{path: path, value: value})
		}
		return b
	}
	beyond := func(value any) boundary { return boundary{path: path, value: value, beyond: true} }
	switch {
	case len(s.Enum) > 0:
		all := []boundary{beyond("Nonsense"), beyond("")}
		for _, value := range s.Enum {
			all = append(all, within(strings.Trim(string(value.Raw), `"`))...)
		}
		return all
	case s.Type == "boolean":
		return append(within(true, false), beyond("yes"))
	case s.Type == "integer":
		return integers(s, within, beyond)
	case s.Type == "string":
		return texts(s, within, beyond)
	case s.Type == "array":
		return lists(path, s, within, beyond)
	case s.Type == "object":
		return objects(s, within, beyond)
	}
	return nil
}

func integers(s *apiextensionsv1.JSONSchemaProps, within func(...any) []boundary, beyond func(any) boundary) []boundary {
	lowest, highest := int64(math.MinInt32), int64(math.MaxInt32)
	if s.Minimum != nil {
		lowest = int64(*s.Minimum)
	}
	if s.Maximum != nil {
		highest = int64(*s.Maximum)
	}
	return append(within(lowest, highest), beyond(lowest-1), beyond(highest+1), beyond("many"))
}

func texts(s *apiextensionsv1.JSONSchemaProps, within func(...any) []boundary, beyond func(any) boundary) []boundary {
	if s.MaxLength == nil {
		return nil
	}
	all := append(within(word(s, *s.MaxLength), word(s, 1)), beyond(word(s, *s.MaxLength)+"a"))
	if s.MinLength != nil && *s.MinLength > 0 {
		all = append(all, beyond(""))
	} else {
		all = append(all, within("")...)
	}
	if s.Pattern != "" {
		all = append(all, beyond("ä =,"))
	}
	return all
}

// word is a word of n letters that a field may have; of digits and commas if its pattern is for those.
func word(s *apiextensionsv1.JSONSchemaProps, n int64) string {
	all := strings.Repeat("a", int(n))
	if s.Pattern == "" || regexp.MustCompile(s.Pattern).MatchString(all) {
		return all
	}
	return strings.Repeat("0,", int(n-1)/2) + "0-"[:1+(n-1)%2]
}

func lists(
	path string, s *apiextensionsv1.JSONSchemaProps, within func(...any) []boundary, beyond func(any) boundary,
) []boundary {
	items := func(n int64) any {
		all := []any{}
		for i := range n {
			all = append(all, item(path, s, i))
		}
		return all
	}
	all := within(items(1))
	if s.MinItems != nil && *s.MinItems > 0 {
		all = append(all, beyond(items(*s.MinItems-1)))
	} else {
		all = append(all, within(items(0))...)
	}
	if s.MaxItems != nil {
		all = append(append(all, within(items(*s.MaxItems))...), beyond(items(*s.MaxItems+1)))
	}
	return all
}

// item is the ith of different items of a list.
func item(path string, s *apiextensionsv1.JSONSchemaProps, i int64) any {
	of := s.Items.Schema
	switch {
	case len(of.Enum) > 0:
		return strings.Trim(string(of.Enum[i%int64(len(of.Enum))].Raw), `"`)
	case of.Type == "integer":
		return int64(*of.Minimum) + i
	case of.Type == "string":
		return fmt.Sprintf("a%d", i)
	}
	o := maps.Clone(company[path+"[]"])
	for _, key := range s.XListMapKeys {
		o[key] = fmt.Sprintf("a%d", i)
	}
	return o
}

func objects(s *apiextensionsv1.JSONSchemaProps, within func(...any) []boundary, beyond func(any) boundary) []boundary {
	all := append(within(map[string]any{}), beyond("a"))
	if s.MaxProperties != nil {
		labels := func(n int64) any {
			o := map[string]any{}
			for i := range n {
				o[fmt.Sprintf("a%d", i)] = "b"
			}
			return o
		}
		all = append(append(all, within(labels(*s.MaxProperties))...), beyond(labels(*s.MaxProperties+1)))
	}
	return all
}

// spec is a spec that says this of the field, and what the field needs besides.
func (b boundary) spec() any { return put("", strings.Split(b.path, "."), b.value) }

// put wraps a value into the objects and lists of its path.
func put(above string, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	at := strings.TrimPrefix(above+"."+path[0], ".")
	inner := put(at, path[1:], value)
	name, isList := strings.CutSuffix(path[0], "[]")
	if isList {
		inner = []any{inner}
	}
	o := map[string]any{strings.TrimSuffix(name, "{}"): inner}
	for _, needed := range []map[string]any{company[above], siblings[at], siblings[fmt.Sprint(at, "=", inner)]} {
		for field, value := range needed {
			if _, said := o[field]; !said {
				o[field] = value
			}
		}
	}
	return o
}

// namedIn tells whether a message names the field, what it is part of, or what it lacks.
func (b boundary) namedIn(message string) bool {
	at := "spec"
	for name := range strings.SplitSeq(strings.ReplaceAll(b.path, "{}", ""), ".") {
		at += "." + strings.TrimSuffix(name, "[]")
		if strings.Contains(message, at+":") || strings.Contains(message, at+"[") {
			return true
		}
	}
	return strings.Contains(message, at+".")
}
