// Package badinput lists what the API of ElasticTrainingJob refuses, one case for every rule, with the words in which it is
// refused. Admission and the operator's guard are held to the same list.
package badinput

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// Case is one thing that is wrong with an otherwise valid job.
type Case struct {
	// What is wrong, in a few words.
	What string
	// Patch is merged into a valid job.
	Patch string
	// Says are the causes that are named, each as path, kind of mistake and rule.
	Says []string
	// Blind is true when the object's shape is so wrong that the API server checks no further rules, and says so.
	Blind bool
	// Decoded are the causes that the operator names where they differ: to a program in Go, an absent field has its zero value.
	Decoded []string
}

// valid is a job that is accepted.
const valid = `{
	"apiVersion": "tideline.io/v1alpha1", "kind": "ElasticTrainingJob",
	"metadata": {"name": "bad"},
	"spec": {"minReplicas": 2, "maxReplicas": 4, "template": {"spec": {"containers": [{"name": "trainer", "image": "trainer"}]}}}
}`

// Object is the job that has the mistake.
func (c Case) Object(namespace string) (*unstructured.Unstructured, error) {
	return job(namespace, c.Patch)
}

// Object is the job before the change.
func (u Update) Object(namespace string) (*unstructured.Unstructured, error) {
	return job(namespace, u.Before)
}

// job is a valid job with a patch merged into it.
func job(namespace, patch string) (*unstructured.Unstructured, error) {
	o, change := &unstructured.Unstructured{}, map[string]any{}
	for text, into := range map[string]*map[string]any{valid: &o.Object, patch: &change} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			return nil, fmt.Errorf("read %s: %w", text, err)
		}
	}
	Merge(o.Object, change)
	o.SetNamespace(namespace)
	return o, nil
}

// Merge changes an object as a JSON merge patch does.
func Merge(object, patch map[string]any) {
	for field, value := range patch {
		was, wasObject := object[field].(map[string]any)
		change, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, field)
		case isObject && wasObject:
			Merge(was, change)
		default:
			object[field] = value
		}
	}
}

// blind is what the API server adds when it did not check every rule.
const blind = `<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; ` +
	`correct the existing errors to complete validation`

// Refusal is the API server's whole answer to an attempt to create the job of that name.
func (c Case) Refusal(name string) string {
	causes := c.Says
	if c.Blind {
		causes = append(causes[:len(causes):len(causes)], blind)
	}
	said := strings.Join(causes, ", ")
	if len(causes) > 1 {
		said = "[" + said + "]"
	}
	return fmt.Sprintf("ElasticTrainingJob.tideline.io %q is invalid: %s", name, said)
}

// Stalled is what the operator says of the job when it was created all the same.
func (c Case) Stalled() string {
	words := slices.Clone(c.Says)
	if c.Decoded != nil {
		words = slices.Clone(c.Decoded)
	}
	slices.Sort(words)
	return strings.Join(words, "; ")
}
