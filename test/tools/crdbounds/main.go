// Command crdbounds makes the CustomResourceDefinitions that controller-gen wrote fit for the API server.
//
// A schema that embeds a pod template has two defects. Its descriptions alone make the object larger than the annotation in
// which `kubectl apply` keeps what it applied last, so the plainest way of installing it fails. And its lists, maps and
// strings have no bounds, so the API server must assume the worst when it estimates what a CEL rule over the template
// may cost, and refuses the rule. crdbounds drops the descriptions below every pod template and adds bounds that no real
// pod comes near, also of how long a pod may take to leave, and moves rules about one field of the template to that field. It
// also bounds the selector of a profile's namespaces, and numbers to what a client in Go reads. Last, it has the API server
// serve the earlier version of the API too.
//
//	crdbounds FILE...    rewrites each file in place
package main

import (
	"bytes"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := rewrite(name); err != nil {
			fmt.Fprintf(os.Stderr, "crdbounds: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// rewrite bounds the pod templates of the CustomResourceDefinition in the file name.
func rewrite(name string) error {
	in, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	out, err := process(in)
	if err != nil {
		return err
	}
	if bytes.Equal(in, out) {
		return nil
	}
	return os.WriteFile(name, out, 0o644)
}

// process returns the manifest of a CustomResourceDefinition with its pod templates and numbers bounded. Processing its own
// output changes nothing.
func process(manifest []byte) ([]byte, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(manifest, &crd); err != nil {
		return nil, err
	}
	for _, version := range crd.Spec.Versions {
		if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			nameMetadata(version.Schema.OpenAPIV3Schema)
			if crd.Spec.Names.Kind == "ResourceQuotaProfile" {
				boundSelectors(version.Schema.OpenAPIV3Schema)
			}
			boundPodTemplates(version.Schema.OpenAPIV3Schema)
			boundOverrides(version.Schema.OpenAPIV3Schema)
			boundNumbers(version.Schema.OpenAPIV3Schema)
		}
	}
	addEarlier(&crd)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&crd)
	if err != nil {
		return nil, err
	}
	// A manifest states no status.
	delete(object, "status")
	out, err := yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	return append([]byte("---\n"), out...), nil
}
