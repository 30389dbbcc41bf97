package main

import (
	"bytes"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const manifest = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.21.0
  name: jobs.example.com
spec:
  group: example.com
  names: {kind: Job, plural: jobs}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: a job
        properties:
          metadata:
            type: object
          spec:
            type: object
            properties:
              template:
                type: object
                description: the pod
                properties:
                  metadata: {type: object, description: dropped}
                  spec:
                    type: object
                    description: dropped
                    properties:
                      containers:
                        type: array
                        description: dropped
                        items:
                          type: object
                          properties:
                            env:
                              type: array
                              items:
                                type: object
                                properties:
                                  name: {type: string, description: dropped}
`

func TestProcess(t *testing.T) {
	out, err := process([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(out, &crd); err != nil {
		t.Fatal(err)
	}
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if root.Properties["metadata"].Properties["name"].Type != "string" {
		t.Error("metadata.name is not stated: no rule can give it as the field it refuses")
	}
	template := root.Properties["spec"].Properties["template"]
	if len(template.Required) != 1 || template.Required[0] != "spec" {
		t.Errorf("template requires %v, want spec", template.Required)
	}
	containers := template.Properties["spec"].Properties["containers"]
	if *containers.MinItems != 1 || *containers.MaxItems != maxContainers {
		t.Errorf("containers: %d to %d", *containers.MinItems, *containers.MaxItems)
	}
	if env := containers.Items.Schema.Properties["env"]; *env.MaxItems != maxEnv {
		t.Errorf("env: at most %d", *env.MaxItems)
	}
	if text := string(out); strings.Contains(text, "dropped") {
		t.Errorf("descriptions are left in the template:\n%s", text)
	} else if !strings.Contains(text, "a job") || !strings.Contains(text, "the pod") {
		t.Errorf("descriptions outside the template were dropped:\n%s", text)
	} else if strings.Contains(text, "status:") {
		t.Errorf("the manifest states a status:\n%s", text)
	}

	again, err := process(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again, out) {
		t.Errorf("processing twice differs from processing once:\n%s", again)
	}
}

func TestProcessRefusesWhatIsNoCRD(t *testing.T) {
	if _, err := process([]byte("kind: CustomResourceDefinition\nspek: {}\n")); err == nil {
		t.Error("an unknown field was accepted and would be lost")
	}
}
