package main

import (
	"encoding/json"
	"go/doc"
	"maps"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// What consoles know to show in a way of its own.
const (
	showText       = "urn:alm:descriptor:text"
	showConditions = "urn:alm:descriptor:io.kubernetes.conditions"
	showPhase      = "urn:alm:descriptor:io.kubernetes.phase"
	showReason     = "urn:alm:descriptor:io.kubernetes.phase:reason"
	showField      = "urn:alm:descriptor:com.tectonic.ui:"
	showPodCount   = showField + "podCount"
	showNumber     = showField + "number"
	showSwitch     = showField + "booleanSwitch"
	showInput      = showField + "text"
	showSelect     = showField + "select:"
)

// descriptor has the fields of OLM's SpecDescriptor and StatusDescriptor.
type descriptor struct {
	Path         string
	DisplayName  string
	Description  string
	XDescriptors []string
	Value        json.RawMessage
}

// formerName ends the description of a field that is refused, which no form should offer.
const formerName = "is a former name, and refused."

// descriptors describes each top-level field of a spec or a status, by name.
func descriptors(
	s apiextensionsv1.JSONSchemaProps, names map[string]string, show func(string, apiextensionsv1.JSONSchemaProps) []string,
) []descriptor {
	var all []descriptor
	for _, path := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[path]
		if strings.HasSuffix(field.Description, formerName) {
			continue
		}
		all = append(all, descriptor{
			Path: path, DisplayName: displayName(names[path]), Description: sentence(field.Description), XDescriptors: show(path, field),
		})
	}
	return all
}

// specDescriptors says how a console lets people set a field. The one that `kubectl scale` sets is a number of pods.
func specDescriptors(sub *apiextensionsv1.CustomResourceSubresources) func(string, apiextensionsv1.JSONSchemaProps) []string {
	return func(path string, field apiextensionsv1.JSONSchemaProps) []string {
		switch {
		case sub != nil && sub.Scale != nil && sub.Scale.SpecReplicasPath == ".spec."+path:
			return []string{showPodCount}
		case len(field.Enum) > 0:
			var choices []string
			for _, value := range field.Enum {
				choices = append(choices, showSelect+strings.Trim(string(value.Raw), `"`))
			}
			return choices
		case field.Type == "integer":
			return []string{showNumber}
		case field.Type == "boolean":
			return []string{showSwitch}
		case field.Type == "string":
			return []string{showInput}
		default:
			return nil // a form of its fields, made from the schema
		}
	}
}

// statusDescriptors says how a console shows a field.
func statusDescriptors(path string, field apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case path == "conditions":
		return []string{showConditions}
	case path == "phase":
		return []string{showPhase}
	case path == "reason":
		return []string{showReason}
	case field.Type != "object" && field.Type != "array":
		return []string{showText}
	default:
		return nil
	}
}

// displayName takes a Go name apart: MinReplicas is Min Replicas, and GPUs stays.
func displayName(name string) string {
	var words strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			words.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		words.WriteRune(r)
	}
	return words.String()
}

// sentence returns the first sentence of a description, in one line.
func sentence(description string) string {
	return new(doc.Package).Synopsis(description)
}
