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

// Bounds of everything in a pod template that others may write and the operator keeps in memory, walks through or compares:
// lists, maps and texts, by the name of their field. The operator judges the node affinity of each gang that waits against each
// node, so its terms and expressions have the narrowest.
var (
	maxItems = map[string]int64{
		"containers": maxContainers, "initContainers": maxContainers, "ephemeralContainers": maxContainers, "env": maxEnv,
		"envFrom": 32, "args": 256, "command": 256, "nodeSelectorTerms": 8, "matchExpressions": 16, "matchFields": 1, "values": 256,
		"requiredDuringSchedulingIgnoredDuringExecution": 8, "preferredDuringSchedulingIgnoredDuringExecution": 8,
		"topologySpreadConstraints": 8, "resourceClaims": 16, "schedulingGates": 1,
	}
	maxProperties = map[string]int64{"nodeSelector": 16, "matchLabels": 16}
	maxLength     = map[string]int64{"args": longText, "command": longText, "value": longText, "annotations": longText}
)

// Bounds of lists, maps and texts whose field has none above. A text of an argument, a variable or an annotation may be a script.
const (
	otherItems, otherProperties, otherLength = 64, 64, 1024
	longText                                 = 64 << 10
)

// boundAll bounds a field, and all below it.
func boundAll(s *schema, name string) {
	least := func(have *int64, bounds map[string]int64, other int64) *int64 {
		bound := other
		if own, ok := bounds[name]; ok {
			bound = own
		}
		if have != nil && *have < bound {
			bound = *have
		}
		return &bound
	}
	each := s.AdditionalProperties
	switch {
	case s.Type == "array":
		s.MaxItems = least(s.MaxItems, maxItems, otherItems)
	case s.Type == "object" && each != nil && each.Schema != nil:
		s.MaxProperties = least(s.MaxProperties, maxProperties, otherProperties)
	case s.Type == "string" && len(s.Enum) == 0 && !s.XIntOrString:
		s.MaxLength = least(s.MaxLength, maxLength, otherLength)
	}
	for field := range s.Properties {
		edit(s.Properties, field, func(property *schema) { boundAll(property, field) })
	}
	if s.Items != nil && s.Items.Schema != nil {
		boundAll(s.Items.Schema, name)
	}
	if each != nil && each.Schema != nil {
		boundAll(each.Schema, name)
	}
}

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
			})
			edit(spec.Properties, "ephemeralContainers", refuseEphemeral)
		})
		boundAll(s, "template")
		lowerRules(s)
		return
	}
	eachChild(s, boundPodTemplates)
}

// refuseEphemeral refuses ephemeral containers, whose schema would be an eighth of the definition. Kubernetes refuses each pod
// that is created with one.
func refuseEphemeral(s *schema) {
	*s = schema{
		Type: "array", XListType: new("atomic"),
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "object"}},
		XValidations: apiextensionsv1.ValidationRules{{
			Rule: "size(self) == 0",
			Message: "a template cannot have ephemeralContainers: remove them, and use `kubectl debug` on a pod that " +
				"runs",
		}},
	}
}

// Bounds of what a selector of namespaces compares with the labels of each: keys are as long as Kubernetes has them, and so are
// values.
const (
	maxLabelKey, maxLabelValue = 317, 63
)

// boundSelectors bounds the selectors of namespaces in s, which the operator compares with each namespace.
func boundSelectors(s *schema) {
	for name := range s.Properties {
		if name != "namespaceSelector" {
			continue
		}
		edit(s.Properties, name, func(selector *schema) {
			boundAll(selector, name)
			edit(selector.Properties, "matchLabels", func(labels *schema) {
				labels.AdditionalProperties.Schema.MaxLength = new(int64(maxLabelValue))
			})
			edit(selector.Properties, "matchExpressions", func(all *schema) {
				edit(all.Items.Schema.Properties, "key", func(key *schema) { key.MaxLength = new(int64(maxLabelKey)) })
				edit(all.Items.Schema.Properties, "values", func(values *schema) {
					values.Items.Schema.MaxLength = new(int64(maxLabelValue))
				})
			})
		})
	}
	eachChild(s, boundSelectors)
}

// boundOverrides bounds what replaces parts of a pod template for some of its pods: resources and nodes of worker 0 and of roles.
func boundOverrides(s *schema) {
	if isPodTemplate(s) {
		return
	}
	_, resources := s.Properties["resources"]
	if _, nodes := s.Properties["nodeSelector"]; resources && nodes {
		for _, name := range []string{"resources", "nodeSelector"} {
			edit(s.Properties, name, func(property *schema) {
				most := property.MaxProperties // More entries were allowed here than templates have.
				boundAll(property, name)
				if most != nil {
					property.MaxProperties = most
				}
			})
		}
	}
	eachChild(s, boundOverrides)
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
