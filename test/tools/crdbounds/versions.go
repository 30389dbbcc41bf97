package main

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Versions of the API. Both have the same fields, so that the API server converts objects by itself. It stores the earlier one,
// which the release before needs to take over again (docs/decisions/0090-versions-of-the-api.md).
const (
	version        = "v1beta1"
	earlierVersion = "v1alpha1"
)

// addEarlier adds the earlier version to a definition, to be served, and to be stored instead of the one that controller-gen
// wrote. It has no descriptions: with two of each, the definition is too large for `kubectl apply`.
func addEarlier(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == earlierVersion
	})
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version
	})
	if at < 0 {
		return
	}
	earlier := crd.Spec.Versions[at].DeepCopy()
	crd.Spec.Versions[at].Storage = false
	earlier.Name, earlier.Storage, earlier.Deprecated = earlierVersion, true, true
	group := crd.Spec.Group + "/"
	earlier.DeprecationWarning = new("apiVersion " + group + earlierVersion + " of " + crd.Spec.Names.Kind + " is deprecated: " +
		"write " + group + version + ", which has the same fields")
	dropDescriptions(earlier.Schema.OpenAPIV3Schema)
	for i := range earlier.AdditionalPrinterColumns {
		earlier.AdditionalPrinterColumns[i].Description = ""
	}
	crd.Spec.Versions = append(crd.Spec.Versions, *earlier)
}
