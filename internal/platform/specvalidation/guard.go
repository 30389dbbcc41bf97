// Package specvalidation validates stored objects against their CustomResourceDefinition once more inside reconcile. An object
// may have reached the API server while a rule was off, or before it existed. Rules and messages are those of admission,
// because the API server's own code reads the same definition here.
package specvalidation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Guard checks objects of one kind.
type Guard struct {
	// compiled compiles the definition when the first object is checked, because that takes a processor for half a second and a few
	// megabytes, and many clusters have no object of some kinds.
	compiled func() (*rules, error)
}

// rules are those of one version of a definition, in the forms in which the API server evaluates them.
type rules struct {
	schema     validation.SchemaValidator
	structural *structuralschema.Structural
	cel        *cel.Validator
}

// guards are those that New made, by definition and version.
var guards sync.Map

// New checks objects by one version of a CustomResourceDefinition in YAML, which is compiled once in the life of the process.
func New(definition []byte, version string) *Guard {
	made := &Guard{compiled: sync.OnceValues(func() (*rules, error) { return compile(definition, version) })}
	known, _ := guards.LoadOrStore(version+"\n"+string(definition), made)
	g, _ := known.(*Guard)
	return g
}

func compile(definition []byte, version string) (*rules, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(definition, crd); err != nil {
		return nil, fmt.Errorf("read the CustomResourceDefinition: %w", err)
	}
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version
	})
	if at < 0 || crd.Spec.Versions[at].Schema == nil {
		return nil, fmt.Errorf("the CustomResourceDefinition %s has no schema of version %s", crd.Name, version)
	}
	props := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[at].Schema.OpenAPIV3Schema, props, nil)
	if err != nil {
		return nil, fmt.Errorf("convert the schema of %s: %w", crd.Name, err)
	}
	r := &rules{}
	if r.schema, _, err = validation.NewSchemaValidator(props); err != nil {
		return nil, fmt.Errorf("compile the schema of %s: %w", crd.Name, err)
	}
	if r.structural, err = structuralschema.NewStructural(props); err != nil {
		return nil, fmt.Errorf("compile the schema of %s: %w", crd.Name, err)
	}
	r.cel = cel.NewValidator(r.structural, true, celconfig.PerCallLimit)
	return r, nil
}

// CheckSpec returns why admission would refuse to create the object; empty if it would not. The status is not checked. A
// definition that cannot be compiled, or does not have the version, is an error.
func (g *Guard) CheckSpec(ctx context.Context, object any) (string, error) {
	r, err := g.compiled()
	if err != nil {
		return "", err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", fmt.Errorf("convert the object: %w", err)
	}
	delete(content, "status")
	dropUnset(content, false)
	problems := validation.ValidateCustomResource(nil, content, r.schema)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, r.structural, content)...)
	if !slices.ContainsFunc(problems, preventsRules) {
		broken, _ := r.cel.Validate(ctx, nil, r.structural, content, nil, celconfig.RuntimeCELCostBudget)
		problems = append(problems, broken...)
	}
	words := make([]string, len(problems))
	for i, p := range problems {
		words[i] = p.Error()
	}
	// The schema is a map, and finds its problems in any order; an object at rest must not change.
	slices.Sort(words)
	return strings.Join(words, "; "), nil
}

// preventsRules is true for a problem with which admission does not evaluate CEL rules, because the object does not have the
// shape that they rely on (apiextensions-apiserver, pkg/registry/customresource/strategy.go).
func preventsRules(p *field.Error) bool {
	switch p.Type { //nolint:exhaustive // with all others, rules are evaluated
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// dropUnset removes nulls everywhere, and empty strings below a pod template, spec.master and spec.roles: Go writes both for
// fields that the object does not have. Elsewhere an empty string is what a user wrote.
func dropUnset(v any, inTemplate bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil || (inTemplate && value == "") {
				delete(v, key)
				continue
			}
			dropUnset(value, inTemplate || key == "template" || key == "master" || key == "roles")
		}
	case []any:
		for _, value := range v {
			dropUnset(value, inTemplate)
		}
	}
}
