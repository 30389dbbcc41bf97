package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
                      terminationGracePeriodSeconds: {type: integer, format: int64, description: dropped}
                      containers:
                        type: array
                        description: dropped
                        items:
                          type: object
                          properties:
                            command: {type: array, items: {type: string}}
                            limits: {type: object, additionalProperties: {type: string}}
                            policy: {type: string, enum: [Always]}
                            short: {type: string, maxLength: 8}
                            mounts: {type: array, items: {type: string}}
                            env:
                              type: array
                              items:
                                type: object
                                properties:
                                  name: {type: string, description: dropped}
                            port: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}
                            cpu:
                              anyOf: [{type: integer}, {type: string}]
                              pattern: ^[0-9]+([eE][0-9.]+)?$
                              x-kubernetes-int-or-string: true
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
	if grace := template.Properties["spec"].Properties["terminationGracePeriodSeconds"]; *grace.Maximum != maxGrace {
		t.Errorf("terminationGracePeriodSeconds: at most %v", *grace.Maximum)
	}
	containers := template.Properties["spec"].Properties["containers"]
	if *containers.MinItems != 1 || *containers.MaxItems != maxContainers {
		t.Errorf("containers: %d to %d", *containers.MinItems, *containers.MaxItems)
	}
	if env := containers.Items.Schema.Properties["env"]; *env.MaxItems != maxEnv {
		t.Errorf("env: at most %d", *env.MaxItems)
	}
	fields := containers.Items.Schema.Properties
	if command := fields["command"]; *command.MaxItems != 256 || *command.Items.Schema.MaxLength != longText {
		t.Errorf("command: at most %d of %d", *command.MaxItems, *command.Items.Schema.MaxLength)
	}
	if mounts := fields["mounts"]; *mounts.MaxItems != otherItems || *mounts.Items.Schema.MaxLength != otherLength {
		t.Errorf("mounts: at most %d of %d", *mounts.MaxItems, *mounts.Items.Schema.MaxLength)
	}
	if limits := fields["limits"]; *limits.MaxProperties != otherProperties ||
		*limits.AdditionalProperties.Schema.MaxLength != otherLength {
		t.Errorf("limits: at most %d of %d", *limits.MaxProperties, *limits.AdditionalProperties.Schema.MaxLength)
	}
	if *fields["short"].MaxLength != 8 || fields["policy"].MaxLength != nil {
		t.Error("what is bounded already is bounded more widely")
	}
	if port := containers.Items.Schema.Properties["port"]; *port.Minimum != minPort || *port.Maximum != maxPort {
		t.Errorf("port: %v to %v", *port.Minimum, *port.Maximum)
	}
	if cpu := containers.Items.Schema.Properties["cpu"]; cpu.Pattern != quantity || cpu.Minimum != nil {
		t.Errorf("cpu: %s, at least %v", cpu.Pattern, cpu.Minimum)
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

// What the pattern of quantities lets pass, Go reads, and what people write passes.
func TestQuantities(t *testing.T) {
	pattern := regexp.MustCompile(quantity)
	for _, s := range []string{"1", "0.5", ".5", "5.", "500m", "-1", "+1", "1Gi", "2k", "1Ei", "1E", "1e3", "1E+3", "12e-999"} {
		if _, err := resource.ParseQuantity(s); err != nil || !pattern.MatchString(s) {
			t.Errorf("%s: matches %v, Go says %v", s, pattern.MatchString(s), err)
		}
	}
	for _, s := range []string{"1e1.5", "1E.5", "1e99999999999999999999", "1e", ""} {
		if _, err := resource.ParseQuantity(s); err == nil || pattern.MatchString(s) {
			t.Errorf("%q: matches %v, Go says %v", s, pattern.MatchString(s), err)
		}
	}
}

func TestProcessRefusesWhatIsNoCRD(t *testing.T) {
	if _, err := process([]byte("kind: CustomResourceDefinition\nspek: {}\n")); err == nil {
		t.Error("an unknown field was accepted and would be lost")
	}
}
