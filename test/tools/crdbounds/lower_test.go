package main

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestARuleAboutOneFieldMovesToIt(t *testing.T) {
	type rule = apiextensionsv1.ValidationRule
	for name, c := range map[string]struct {
		path, rule, message string
		// lowered is what the field has; empty where the rule stays.
		lowered, says string
	}{
		"a field that must not be there": {
			".spec.host", "!has(self.spec.host)", "self.spec.host + ' is set'", "false", "self + ' is set'",
		},
		"a field with a value": {
			".spec.host", "!has(self.spec.host) || self.spec.host == 'a' || self.spec.host == 'b'", "", "self == 'a' || self == 'b'", "",
		},
		"a field of what may not be there": {
			".metadata.labels", "!has(self.metadata) || !has(self.metadata.labels) || !self.metadata.labels.exists(k, k == 'a')", "",
			"!self.exists(k, k == 'a')", "",
		},
		"an element of it": {
			".spec.names", "self.spec.names.size() == 0", "self.spec.names[0].name", "self.size() == 0", "self[0].name",
		},
		"a field that must be there":    {".spec.host", "has(self.spec.host)", "", "", ""},
		"a field and another":           {".spec.host", "!has(self.spec.host) || self.spec.names.size() == 0", "", "", ""},
		"a longer name":                 {".spec.host", "!has(self.spec.host) || self.spec.hostname == ''", "", "", ""},
		"a longer name with a number":   {".spec.host", "!has(self.spec.host) || self.spec.host2 == ''", "", "", ""},
		"a field that it asks for":      {".spec.names", "has(self.spec.names) && self.spec.names.size() == 0", "", "", ""},
		"what the message says":         {".spec.host", "!has(self.spec.host)", "self.spec.names[0]", "", ""},
		"what the field was before":     {".spec.host", "!has(self.spec.host) || self.spec.host == oldSelf.spec.host", "", "", ""},
		"a choice":                      {".spec.host", "!has(self.spec.host) || self.spec.host == 'a' ? true : false", "", "", ""},
		"no field":                      {"", "self.spec.names.size() == 0", "", "", ""},
		"a rule about it being missing": {".spec.host", "self.spec.host == 'a'", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &schema{Required: []string{"spec"}, Properties: map[string]schema{
				"metadata": {Properties: map[string]schema{"labels": {}}},
				"spec":     {Required: []string{"names"}, Properties: map[string]schema{"host": {}, "names": {}}},
			}}
			given := rule{Rule: c.rule, FieldPath: c.path, MessageExpression: c.message}
			s.XValidations = []rule{given}
			lowerRules(s)
			var below []rule
			for _, parent := range s.Properties {
				for _, field := range parent.Properties {
					below = append(below, field.XValidations...)
				}
			}
			if c.lowered == "" {
				g.Expect(s.XValidations).To(ConsistOf(given))
				g.Expect(below).To(BeEmpty())
				return
			}
			g.Expect(s.XValidations).To(BeEmpty())
			g.Expect(below).To(ConsistOf(rule{Rule: c.lowered, MessageExpression: c.says}))
		})
	}
}
