// Package v1beta1 is Tideline's API, group tideline.io. The API server also serves the same fields as v1alpha1, in which it
// stores objects (docs/decisions/0090-versions-of-the-api.md).
//
// +kubebuilder:object:generate=true
// +groupName=tideline.io
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "tideline.io", Version: "v1beta1"}

// Kinds as they stand in owner references.
const (
	ElasticTrainingJobKind   = "ElasticTrainingJob"
	MergeJobKind             = "MergeJob"
	ResourceQuotaProfileKind = "ResourceQuotaProfile"
	// CostReportKind is the kind of CostReport.
	CostReportKind = "CostReport"
)

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ElasticTrainingJob{}, &ElasticTrainingJobList{}, &MergeJob{}, &MergeJobList{},
		&ResourceQuotaProfile{}, &ResourceQuotaProfileList{}, &CostReport{}, &CostReportList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
