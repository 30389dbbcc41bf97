package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// Bounds of a pod template, far beyond what a training pod has. Without them the API server assumes as many elements as
// fit into a request, and estimates the rule on reserved variables at hundreds of times what it allows.
const (
	maxContainers = 16
	maxEnv        = 1000
)

// maxGrace is the longest that a pod may take to leave, in seconds: a day. Others wait for its room.
const maxGrace = 24 * 60 * 60

// Bounds of a list of resources, far beyond what a node has, for the rules of which the API server estimates the cost.
const (
	maxResources = 32
	maxQuantity  = 64
)

// Bounds of what may be a number or a word, which is a quantity where it has a pattern, and a port elsewhere. Of the exponents
// that controller-gen allows a quantity, Go reads whole ones alone, and not the largest.
const (
	quantity         = `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$`
	minPort, maxPort = 1, 65535
)

// boundNumbers keeps out what the API server takes for a quantity or a port, and Go does not read. A client in Go that cannot
// read one object can list none of its kind.
func boundNumbers(s *schema) {
	switch {
	case s.XIntOrString && s.Pattern != "":
		s.Pattern, s.MaxLength = quantity, new(int64(maxQuantity))
	case s.XIntOrString:
		s.Minimum, s.Maximum = new(float64(minPort)), new(float64(maxPort))
	}
	if each := s.AdditionalProperties; each != nil && each.Schema != nil && each.Schema.XIntOrString {
		s.MaxProperties = new(int64(maxResources))
	}
	eachChild(s, boundNumbers)
}

// boundPodTemplates drops the descriptions of every pod template in s and bounds what CEL rules iterate over.
func boundPodTemplates(s *schema) {
	if isPodTemplate(s) {
		// Go calls the spec optional because it is a struct. A rule that reads an absent spec fails with "no such key"; a
		// required one is reported first and in plain words.
		s.Required = []string{"spec"}
		edit(s.Properties, "metadata", dropDescriptions)
		edit(s.Properties, "spec", func(spec *schema) {
			dropDescriptions(spec)
			edit(spec.Properties, "terminationGracePeriodSeconds", func(grace *schema) { grace.Maximum = new(float64(maxGrace)) })
			edit(spec.Properties, "containers", func(containers *schema) {
				containers.MinItems = new(int64(1))
				containers.MaxItems = new(int64(maxContainers))
				edit(containers.Items.Schema.Properties, "env", func(env *schema) {
					env.MaxItems = new(int64(maxEnv))
				})
			})
		})
		return
	}
	eachChild(s, boundPodTemplates)
}

// isPodTemplate recognises a pod template by what no other object has: containers in its spec.
func isPodTemplate(s *schema) bool {
	spec := s.Properties["spec"]
	containers, ok := spec.Properties["containers"]
	return ok && containers.Type == "array"
}

// nameMetadata states metadata.name in the schema of a whole object, which controller-gen leaves open, so that a rule can
// give it as the field it refuses.
func nameMetadata(s *schema) {
	edit(s.Properties, "metadata", func(metadata *schema) {
		metadata.Properties = map[string]schema{"name": {Type: "string"}}
	})
}

func dropDescriptions(s *schema) {
	s.Description = ""
	eachChild(s, dropDescriptions)
}

// eachChild calls change with the schema of every property, element and map value of s.
func eachChild(s *schema, change func(*schema)) {
	for name := range s.Properties {
		edit(s.Properties, name, change)
	}
	if s.Items != nil && s.Items.Schema != nil {
		change(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		change(s.AdditionalProperties.Schema)
	}
}

// edit changes one property in place; properties are kept by value.
func edit(properties map[string]schema, name string, change func(*schema)) {
	property := properties[name]
	change(&property)
	properties[name] = property
}
