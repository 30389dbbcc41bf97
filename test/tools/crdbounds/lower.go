package main

import (
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// lowerRules moves each rule of s that is about one field below it to that field:
//
//	template   !has(self.spec.nodeName)                          ->   template.spec.nodeName      false
//	template   !has(self.spec.volumes) || self.spec.volumes.all( ->   template.spec.volumes       self.all(
//
// A marker in Go can only stand at a field of our own, and the API server would walk from there to the other field at every
// write, although hardly any template has it. A rule of a field that an object does not have costs nothing.
func lowerRules(s *schema) {
	stay := s.XValidations[:0]
	for _, rule := range s.XValidations {
		if lowered, ok := aboutItsField(s, rule); ok {
			addRule(s, strings.Split(rule.FieldPath, ".")[1:], lowered)
		} else {
			stay = append(stay, rule)
		}
	}
	s.XValidations = stay
}

// aboutItsField is the rule as its field has it; ok is false if the rule is about more than the field.
func aboutItsField(s *schema, rule apiextensionsv1.ValidationRule) (lowered apiextensionsv1.ValidationRule, ok bool) {
	if !plainPath.MatchString(rule.FieldPath) {
		return rule, false
	}
	names := strings.Split(rule.FieldPath, ".")[1:]
	text, required := rule.Rule, true
	for i, name := range names {
		at := "self." + strings.Join(names[:i+1], ".")
		absent := "!has(" + at + ")"
		switch {
		case text == absent && i == len(names)-1:
			text, required = "false", true
		case strings.HasPrefix(text, absent+" || "):
			text = strings.TrimPrefix(text, absent+" || ")
		case !isRequired(s, names[:i], name):
			required = false // The rule says something about an object without the field.
		}
	}
	text, whole := replaceSelf(text, rule.FieldPath)
	message, said := replaceSelf(rule.MessageExpression, rule.FieldPath)
	if !required || !whole || !said || strings.Contains(text, "?") || strings.Contains(text, "has(self)") {
		return rule, false
	}
	rule.Rule, rule.MessageExpression, rule.FieldPath = text, message, ""
	return rule, true
}

// plainPath is a path of fields, and no element of a list or a map.
var plainPath = regexp.MustCompile(`^(\.[a-zA-Z0-9_]+)+$`)

// selves are mentions of the object that a rule is about, with what it reads of it.
var selves = regexp.MustCompile(`\b(self|oldSelf)\b((?:\.[a-zA-Z0-9_]+)*)`)

// replaceSelf makes an expression about an object one about a field of it; ok is false if it mentions anything else.
func replaceSelf(expression, path string) (replaced string, ok bool) {
	ok = true
	replaced = selves.ReplaceAllStringFunc(expression, func(mention string) string {
		rest, within := strings.CutPrefix(mention, "self"+path)
		if !within || rest != "" && !strings.HasPrefix(rest, ".") {
			ok = false
		}
		return "self" + rest
	})
	return replaced, ok
}

// isRequired tells whether an object of the schema below s must have a field.
func isRequired(s *schema, above []string, name string) bool {
	at := *s
	for _, a := range above {
		at = at.Properties[a]
	}
	return slices.Contains(at.Required, name)
}

// addRule adds a rule to a field below s.
func addRule(s *schema, names []string, rule apiextensionsv1.ValidationRule) {
	if len(names) == 0 {
		s.XValidations = append(s.XValidations, rule)
		return
	}
	edit(s.Properties, names[0], func(property *schema) { addRule(property, names[1:], rule) })
}
