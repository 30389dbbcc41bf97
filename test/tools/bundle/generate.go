package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	packageName = "tideline"
	// channel is named as OLM recommends: candidate, fast, stable.
	channel = "candidate"

	manifestsFolder, metadataFolder = "manifests/", "metadata/"
)

// Input is what a bundle is made from.
type Input struct {
	// Objects are the rendered manifests, with a base of the ClusterServiceVersion and the samples among them.
	Objects []*unstructured.Unstructured
	// Docs is what the Go types say of themselves.
	Docs Docs
	// Description of the operator, in Markdown.
	Description string
	// Icon of the operator, in SVG.
	Icon []byte
	// Version and Image of the operator. Default: what the base says.
	Version, Image string
}

// Generate returns the files of the bundle by their paths from the root of the repository, with slashes.
func Generate(in Input) (map[string][]byte, error) {
	p, err := sortOut(in.Objects)
	if err != nil {
		return nil, err
	}
	csv, err := p.serviceVersion(in)
	if err != nil {
		return nil, err
	}
	manifest, err := manifestOf(csv)
	if err != nil {
		return nil, err
	}
	labels := metadata()
	files := map[string][]byte{
		"bundle/" + manifestsFolder + packageName + ".clusterserviceversion.yaml": manifest,
		"bundle/" + metadataFolder + "annotations.yaml":                           annotationsFile(labels),
		"bundle.Dockerfile": dockerfile(labels),
	}
	for _, o := range p.carried {
		name := "bundle/" + manifestsFolder + fileName(o)
		if files[name] != nil {
			return nil, fmt.Errorf("two manifests would be %s", name)
		}
		if files[name], err = manifestOf(o); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// decode reads objects in YAML.
func decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(r, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(o); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
}

// convert turns an object into its Go type, and refuses fields that the type does not have.
func convert(o *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// manifestOf renders an object for OLM, which decides about the namespace, and without a status, which no manifest states.
func manifestOf(o runtime.Object) ([]byte, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "namespace")
	dropNulls(object)
	return yaml.Marshal(object)
}

// dropNulls removes what a Go type renders although it is not set, such as creationTimestamp.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if v == nil {
				delete(value, key)
			}
			dropNulls(v)
		}
	case []any:
		for _, v := range value {
			dropNulls(v)
		}
	}
}

// fileName is how bundles name the file of an object: with its group and kind, because names repeat among kinds.
func fileName(o *unstructured.Unstructured) string {
	gvk := o.GroupVersionKind()
	if gvk.Kind == kindCRD {
		plural, group, _ := strings.Cut(o.GetName(), ".")
		return group + "_" + plural + ".yaml"
	}
	parts := []string{o.GetName(), gvk.Group, gvk.Version, strings.ToLower(gvk.Kind)}
	if gvk.Group == "" {
		parts = append(parts[:1], parts[2:]...)
	}
	return strings.Join(parts, "_") + ".yaml"
}
