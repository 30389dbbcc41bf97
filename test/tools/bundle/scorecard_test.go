package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// scorecard says what the basic and olm checks of operator-sdk's scorecard would: basic-check-spec, olm-crds-have-validation,
// olm-crds-have-resources, olm-spec-descriptors and olm-status-descriptors (olm-bundle-validation is TestBundleIsValid). The last
// one looks at a status on a cluster there, and at every field that a status may have here.
func scorecard(csv *v1alpha1.ClusterServiceVersion, crd *apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	var findings []string
	var examples []*unstructured.Unstructured
	if err := json.Unmarshal([]byte(csv.Annotations[annotationExamples]), &examples); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(csv.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool {
		return d.Name == crd.Name
	})
	if at < 0 {
		return nil, fmt.Errorf("the bundle does not own %s", crd.Name)
	}
	owned, schema := csv.Spec.CustomResourceDefinitions.Owned[at], crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if len(owned.Resources) == 0 {
		findings = append(findings, "owned CRDs do not have resources specified")
	}
	for _, example := range examples {
		if example.GetKind() != crd.Spec.Names.Kind {
			continue
		}
		spec, found, err := unstructured.NestedMap(example.Object, "spec")
		if err != nil || !found {
			findings = append(findings, fmt.Sprintf("%s has no spec (%v)", example.GetName(), err))
		}
		for field := range spec {
			if _, ok := schema.Properties["spec"].Properties[field]; !ok {
				findings = append(findings, "no validation for spec."+field)
			}
			if !slices.ContainsFunc(owned.SpecDescriptors, func(d v1alpha1.SpecDescriptor) bool { return d.Path == field }) {
				findings = append(findings, "no descriptor for spec."+field)
			}
		}
	}
	for field := range schema.Properties["status"].Properties {
		if !slices.ContainsFunc(owned.StatusDescriptors, func(d v1alpha1.StatusDescriptor) bool { return d.Path == field }) {
			findings = append(findings, "no descriptor for status."+field)
		}
	}
	return findings, nil
}

// mergesFile is the definition of the other kind.
const mergesFile = "manifests/tideline.io_mergejobs.yaml"

func committedCRD(t *testing.T, file string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, "bundle", file))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func TestScorecard(t *testing.T) {
	for _, file := range []string{crdFile, mergesFile} {
		findings, err := scorecard(committedCSV(t), committedCRD(t, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range findings {
			t.Errorf("%s: %s", file, finding)
		}
	}
}

// trainings is what a bundle says of ElasticTrainingJob.
func trainings(c *serviceVersion) *v1alpha1.CRDDescription {
	owned := c.Spec.CustomResourceDefinitions.Owned
	return &owned[slices.IndexFunc(owned, func(d v1alpha1.CRDDescription) bool { return d.Kind == "ElasticTrainingJob" })]
}

func TestScorecardSeesWhatIsMissing(t *testing.T) {
	type definition = apiextensionsv1.CustomResourceDefinition
	for want, change := range map[string]func(*serviceVersion, *definition){
		"owned CRDs do not have resources specified": func(c *serviceVersion, _ *definition) {
			trainings(c).Resources = nil
		},
		"resnet has no spec": func(c *serviceVersion, _ *definition) {
			c.Annotations[annotationExamples] = `[{"kind": "ElasticTrainingJob", "metadata": {"name": "resnet"}}]`
		},
		"no validation for spec.minReplicas": func(_ *serviceVersion, crd *definition) {
			delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "minReplicas")
		},
		"no descriptor for spec.template": func(c *serviceVersion, _ *definition) {
			owned := trainings(c)
			owned.SpecDescriptors = slices.DeleteFunc(owned.SpecDescriptors, func(d v1alpha1.SpecDescriptor) bool {
				return d.Path == "template"
			})
		},
		"no descriptor for status.phase": func(c *serviceVersion, _ *definition) {
			owned := trainings(c)
			owned.StatusDescriptors = slices.DeleteFunc(owned.StatusDescriptors, func(d v1alpha1.StatusDescriptor) bool {
				return d.Path == "phase"
			})
		},
	} {
		csv, crd := committedCSV(t), committedCRD(t, crdFile)
		change(csv, crd)
		findings, err := scorecard(csv, crd)
		if err != nil || !strings.Contains(strings.Join(findings, "\n"), want) {
			t.Errorf("want %q, got %v (%v)", want, findings, err)
		}
	}
}
