package project

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
	"sigs.k8s.io/yaml"
)

// jsonSchema is a schema, or one inside of it.
type jsonSchema = map[string]any

// Everything that is installed is held to the schemas of the Kubernetes that the suites run on and of the CRDs of others, by
// kubeconform. A field that no schema has is an error: `kubectl apply` would drop it.
func TestManifestsConform(t *testing.T) {
	conform := conformer(t)
	all := installations(t)
	for _, folder := range []string{"config/samples", "config/volcano"} {
		all[folder] = build(t, folder)
	}
	all[installationPage] = buildOwn(t, shownKustomization(t))
	for name, manifests := range all {
		t.Run(name, func(t *testing.T) {
			for _, r := range manifests {
				if err := conform([]byte(r.MustYaml())); err != nil {
					t.Errorf("%s %s: %v", r.GetKind(), r.GetName(), err)
				}
			}
		})
	}
	// A check that lets everything pass says nothing of the manifests above.
	for name, manifest := range map[string]string{
		"a field that does not exist":     "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {selectors: {a: b}}",
		"a field of a list that does not": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{ports: 1}]}",
		"a value of another type":         "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: two}",
		"a field that is missing":         "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {}",
		"a kind that nobody has":          "apiVersion: apps/v1\nkind: Deploymint\nmetadata: {name: a}",
		"a version that nobody serves":    "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}",
		"a field that a CRD has not":      "apiVersion: tideline.io/v1beta1\nkind: ElasticTrainingJob\nspec: {size: 2}",
		"a CRD of others": "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: a}\n" +
			"spec: {selector: {}, endpoints: [{interval: 30}]}",
	} {
		if conform([]byte(manifest)) == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
}

// conformer returns what checks a manifest.
func conformer(t *testing.T) func(manifest []byte) error {
	t.Helper()
	folder := t.TempDir()
	if err := writeSchemas(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	location := filepath.Join(folder, "{{.ResourceKind}}{{.KindSuffix}}.json")
	v, err := validator.New([]string{location}, validator.Opts{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return func(manifest []byte) error {
		if result := v.ValidateResource(resource.Resource{Bytes: manifest}); result.Status != validator.Valid {
			return fmt.Errorf("not valid: %w", result.Err)
		}
		return nil
	}
}

// customKinds are where the CustomResourceDefinitions of others are whose kinds we install, by module. Volcano is in the version
// that the suites run on.
var customKinds = map[string][]string{
	volcano: {"config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml"},
	"github.com/cert-manager/cert-manager": {
		"deploy/crds/cert-manager.io_certificates.yaml",
		"deploy/crds/cert-manager.io_issuers.yaml",
	},
	"github.com/prometheus-operator/prometheus-operator": {
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
	},
}

const volcano = "volcano.sh/volcano"

// writeSchemas writes a schema for every kind of Kubernetes, of ours and of others.
func writeSchemas(ctx context.Context, folder string) error {
	kubernetes, err := module(ctx, "test/cluster/modules/kubernetes-1.37.2", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	if err := writeBuiltIn(folder, filepath.Join(kubernetes, "api", "openapi-spec", "swagger.json")); err != nil {
		return err
	}
	crds, err := filepath.Glob(filepath.Join(repository, "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return err
	}
	for path, files := range customKinds {
		requiredBy := "test/project/schemas"
		if path == volcano {
			requiredBy = "test/cluster/modules/volcano-1.15.1"
		}
		others, err := module(ctx, requiredBy, path)
		if err != nil {
			return err
		}
		for _, file := range files {
			crds = append(crds, filepath.Join(others, filepath.FromSlash(file)))
		}
	}
	for _, crd := range crds {
		if err := writeCustom(folder, crd); err != nil {
			return err
		}
	}
	return nil
}

// module returns the folder of a module, in the version that a module of the repository requires.
func module(ctx context.Context, requiredBy, path string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	cmd.Dir = filepath.Join(repository, filepath.FromSlash(requiredBy))
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("download %s, which %s requires: %w\n%s", path, requiredBy, err, out)
	}
	var downloaded struct{ Dir string }
	err = json.Unmarshal(out, &downloaded)
	return downloaded.Dir, err
}

// writeBuiltIn writes a schema for each kind of Kubernetes, with the definitions it is made of.
func writeBuiltIn(folder, swagger string) error {
	content, err := os.ReadFile(swagger)
	if err != nil {
		return err
	}
	var api struct {
		Definitions map[string]jsonSchema `json:"definitions"`
	}
	if err := json.Unmarshal(content, &api); err != nil {
		return fmt.Errorf("%s: %w", swagger, err)
	}
	for _, definition := range api.Definitions {
		tighten(definition)
	}
	for name, definition := range api.Definitions {
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue // not a kind, or one of every group, such as DeleteOptions
		}
		kind, ok := kinds[0].(jsonSchema)
		if !ok {
			return fmt.Errorf("%s: %s is of kind %v", swagger, name, kinds[0])
		}
		needed := map[string]jsonSchema{}
		reach(name, api.Definitions, needed)
		err := writeSchema(folder, text(kind["kind"]), text(kind["group"]), text(kind["version"]),
			jsonSchema{"$ref": "#/definitions/" + name, "definitions": needed})
		if err != nil {
			return err
		}
	}
	return nil
}

// reach collects a definition and all that it refers to.
func reach(name string, all, needed map[string]jsonSchema) {
	if _, ok := needed[name]; ok {
		return
	}
	needed[name] = all[name]
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case jsonSchema:
			if ref, ok := node["$ref"].(string); ok {
				reach(strings.TrimPrefix(ref, "#/definitions/"), all, needed)
			}
			for _, child := range node {
				walk(child)
			}
		case []any:
			for _, child := range node {
				walk(child)
			}
		}
	}
	walk(all[name])
}

// writeCustom writes a schema for each version of a CustomResourceDefinition.
func writeCustom(folder, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema jsonSchema }
			}
		}
	}
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, version := range crd.Spec.Versions {
		s := version.Schema.OpenAPIV3Schema
		properties, _ := s["properties"].(jsonSchema)
		if metadata, ok := properties["metadata"].(jsonSchema); ok {
			metadata["additionalProperties"] = true // What a CRD says of metadata comes on top of what all objects have.
		}
		tighten(s)
		if err := writeSchema(folder, crd.Spec.Names.Kind, crd.Spec.Group, version.Name, s); err != nil {
			return err
		}
	}
	return nil
}

// writeSchema names a schema as kubeconform looks for it.
func writeSchema(folder, kind, group, version string, s jsonSchema) error {
	name := kind
	if group != "" {
		first, _, _ := strings.Cut(group, ".")
		name += "-" + first
	}
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, strings.ToLower(name+"-"+version)+".json"), content, 0o600)
}

// tighten makes a schema of Kubernetes one that refuses fields it does not have, and says in JSON schema what Kubernetes says by
// formats of its own.
func tighten(s jsonSchema) {
	delete(s, "description")
	if s["format"] == "int-or-string" {
		delete(s, "type")
		s["anyOf"] = []any{jsonSchema{"type": "integer"}, jsonSchema{"type": "string"}}
	}
	properties, ok := s["properties"].(jsonSchema)
	if _, open := s["additionalProperties"]; ok && !open && s["x-kubernetes-preserve-unknown-fields"] != true {
		s["additionalProperties"] = false
	}
	var inner []any
	for _, property := range properties {
		inner = append(inner, property)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		inner = append(inner, s[key])
	}
	for _, each := range inner {
		if each, ok := each.(jsonSchema); ok {
			tighten(each)
		}
	}
}

func text(value any) string {
	s, _ := value.(string)
	return s
}
