// Package upgrade has what suites share that put one version of Tideline over another: the version before, which is built once,
// and jobs that must not notice.
package upgrade

import (
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Split returns CustomResourceDefinitions, and all other objects.
func Split(objects []*unstructured.Unstructured) (definitions, others []*unstructured.Unstructured) {
	isDefinition := func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }
	definitions = slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return !isDefinition(o) })
	return definitions, slices.DeleteFunc(slices.Clone(objects), isDefinition)
}

// Kinds are those that objects of a version define, in lower case.
func Kinds(objects []*unstructured.Unstructured) []string {
	ginkgo.GinkgoHelper()
	var all []string
	definitions, _ := Split(objects)
	for _, o := range definitions {
		kind, _, err := unstructured.NestedString(o.Object, "spec", "names", "singular")
		gomega.Expect(err).NotTo(gomega.HaveOccurred(), "%s names a kind", o.GetName())
		all = append(all, kind)
	}
	return all
}
