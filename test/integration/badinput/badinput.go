// Package badinput lists what the API refuses of each kind of job, one case for every rule, with the words in which it is
// refused. Admission and the operator's guard are held to the same list.
package badinput

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Case is one thing that is wrong with an otherwise valid job.
type Case struct {
	// Kind of the job.
	Kind string
	// What is wrong, in a few words.
	What string
	// Patch is merged into a valid job.
	Patch string
	// Says are the causes that are named, each as path, kind of mistake and rule.
	Says []string
	// Blind is true when the object's shape is so wrong that the API server checks no further rules, and says so.
	Blind bool
	// Decoded are the causes that the operator names where they differ: to a program in Go, an absent field has its zero value, and
	// a field that may be absent is absent when it has it. Empty for a mistake that is none any more.
	Decoded []string
	// Unreadable is true when no program in Go reads the object, so that the operator never judges it.
	Unreadable bool
	// Overwritten is true when the webhooks overwrite what is wrong before the API server judges it.
	Overwritten bool
}

// Update is a change of a valid job.
type Update struct {
	// Kind of the job.
	Kind string
	// What is changed, in a few words.
	What string
	// Before is merged into a valid job when it is created, Patch into that.
	Before, Patch string
	// Says is the cause that is named; empty for a change that is accepted.
	Says string
}

// valid has a job of each kind that is accepted.
var valid = map[string]string{
	v1beta1.ElasticTrainingJobKind: `{
		"apiVersion": "tideline.io/v1beta1", "kind": "ElasticTrainingJob",
		"metadata": {"name": "bad"},
		"spec": {"minReplicas": 2, "maxReplicas": 4, "template": {"spec": {"containers": [{"name": "trainer", "image": "trainer"}]}}}
	}`,
	v1beta1.MergeJobKind: `{
		"apiVersion": "tideline.io/v1beta1", "kind": "MergeJob",
		"metadata": {"name": "bad"},
		"spec": {
			"minReplicas": 2, "maxReplicas": 4, "template": {"spec": {"containers": [{"name": "merge", "image": "merge"}]}},
			"store": {"type": "S3", "s3": {"bucket": "models", "credentialsRef": {"name": "model-store"}}}
		}
	}`,
	v1beta1.ResourceQuotaProfileKind: `{
		"apiVersion": "tideline.io/v1beta1", "kind": "ResourceQuotaProfile",
		"metadata": {"name": "bad"},
		"spec": {"namespaceSelector": {"matchLabels": {"team": "bad"}}}
	}`,
	v1beta1.CostReportKind: `{
		"apiVersion": "tideline.io/v1beta1", "kind": "CostReport",
		"metadata": {"name": "bad"},
		"spec": {"priceListRef": {"name": "prices"}}
	}`,
}

// Object is the job that has the mistake.
func (c Case) Object(namespace string) (*unstructured.Unstructured, error) {
	return job(c.Kind, namespace, c.Patch)
}

// Object is the job before the change.
func (u Update) Object(namespace string) (*unstructured.Unstructured, error) {
	return job(u.Kind, namespace, u.Before)
}

// job is a valid job with a patch merged into it.
func job(kind, namespace, patch string) (*unstructured.Unstructured, error) {
	o, change := &unstructured.Unstructured{}, map[string]any{}
	for text, into := range map[string]*map[string]any{valid[kind]: &o.Object, patch: &change} {
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

// Harmless is true for a mistake that is none any more when the operator reads the object.
func (c Case) Harmless() bool { return c.Decoded != nil && len(c.Decoded) == 0 }

// Refusal is the API server's whole answer to an attempt to create the job of that name.
func (c Case) Refusal(name string) string {
	causes := c.Says
	if c.Blind {
		causes = append(causes[:len(causes):len(causes)], blind)
	}
	return refusal(c.Kind, name, causes)
}

// Refusal is the API server's whole answer to an attempt to change the job of that name.
func (u Update) Refusal(name string) string { return refusal(u.Kind, name, []string{u.Says}) }

func refusal(kind, name string, causes []string) string {
	said := strings.Join(causes, ", ")
	if len(causes) > 1 {
		said = "[" + said + "]"
	}
	return fmt.Sprintf("%s.%s %q is invalid: %s", kind, v1beta1.GroupVersion.Group, name, said)
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
