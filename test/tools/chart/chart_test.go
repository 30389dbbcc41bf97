package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/engine"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"
)

const repository = "../../.."

var folder = filepath.Join(repository, "config", "chart")

type values = map[string]any

// inputs are built once.
var inputs = sync.OnceValues(func() (input, error) { return read(repository) })

func given(t *testing.T) input {
	t.Helper()
	in, err := inputs()
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.(*chart.Chart)
}

// cluster is what a release finds there.
type cluster []*unstructured.Unstructured

// GetClientFor answers lookups.
func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	group, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, false, err
	}
	scheme := runtime.NewScheme()
	var objects []runtime.Object
	for _, o := range c {
		objects = append(objects, o)
	}
	resource := group.WithResource(strings.ToLower(kind) + "s")
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme, map[schema.GroupVersionResource]string{
		resource: kind + "List",
	}, objects...)
	return client.Resource(resource), false, nil
}

// release renders a release as Helm does before it changes anything.
func release(t *testing.T, name, namespace string, own values, there cluster) (map[string]string, error) {
	t.Helper()
	c := load(t)
	with, err := util.ToRenderValues(c, own, common.ReleaseOptions{Name: name, Namespace: namespace, IsInstall: true},
		common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.RenderWithClientProvider(c, with, there)
}

// rendered are the objects of a release, by kind, namespace and name.
func rendered(t *testing.T, namespace string, own values) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := release(t, "tideline", namespace, own, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for name, text := range files {
		if filepath.Ext(name) == ".yaml" {
			all = append(all, strings.Split("\n"+text, "\n---\n")...)
		}
	}
	return parse(t, all)
}

func parse(t *testing.T, manifests []string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects := map[string]*unstructured.Unstructured{}
	for _, manifest := range manifests {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
			t.Fatalf("%v: %s", err, manifest)
		}
		if len(o.Object) == 0 {
			continue
		}
		key := o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
		if objects[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		objects[key] = o
	}
	return objects
}

// same takes away what differs on purpose: the namespace as an object, which Helm makes; the hash in the name of the
// configuration; and that Helm keeps the kinds and the ledger's claim.
func same(t *testing.T, objects map[string]*unstructured.Unstructured) map[string]any {
	t.Helper()
	left := map[string]any{}
	for key, o := range objects {
		if o.GetKind() == "Namespace" {
			continue
		}
		content, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		_, hash, _ := strings.Cut(o.GetName(), configuration)
		if o.GetKind() == "ConfigMap" && hash != "" {
			key = o.GetKind() + " of the configuration"
		}
		if o.GetKind() == "Deployment" {
			_, rest, _ := strings.Cut(string(content), `"name":"`+configuration)
			hash, _, _ = strings.Cut(rest, `"`)
		}
		text := string(content)
		if hash != "" {
			text = strings.ReplaceAll(text, configuration+hash, configuration+"HASH")
		}
		var plain map[string]any
		if err := json.Unmarshal([]byte(text), &plain); err != nil {
			t.Fatal(err)
		}
		if o.GetKind() == "CustomResourceDefinition" {
			unstructured.RemoveNestedField(plain, "metadata", "annotations", "helm.sh/resource-policy")
		}
		if o.GetKind() == "PersistentVolumeClaim" {
			unstructured.RemoveNestedField(plain, "metadata", "annotations")
		}
		left[key] = plain
	}
	return left
}

// outside is a configuration whose ledger is no file, which component ha needs; kustomize leaves it to the user.
func outside() values { return values{"ledger": values{"file": ""}} }

func switches(components ...string) values {
	on, own := values{}, values{}
	for _, c := range components {
		if c == volatileLedger {
			own["ledger"] = values{"claim": values{"size": ""}}
		} else {
			on[valueOf(c)] = true
		}
	}
	own["components"] = on
	return own
}

func TestGeneratedFilesAreCurrent(t *testing.T) {
	want, err := generate(given(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if there, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(there, want[name]) {
			t.Errorf("config/chart/%s is not what the manifests make: run make bundle (%v)", name, err)
		}
	}
	there, err := filepath.Glob(filepath.Join(folder, "templates", generatedFolder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range there {
		if want["templates/"+generatedFolder+"/"+filepath.Base(path)] == nil {
			t.Errorf("%s comes from no manifest: run make bundle", path)
		}
	}
}

// What Helm installs is what kustomize installs, without components, with each, and with all.
func TestChartHasTheObjectsOfKustomize(t *testing.T) {
	in := given(t)
	sets := [][]string{{}, in.Components, {"console", "monitoring"}}
	for _, c := range in.Components {
		if c != "console" {
			sets = append(sets, []string{c})
		}
	}
	for _, set := range sets {
		t.Run("with "+strings.Join(set, ","), func(t *testing.T) {
			own := switches(set...)
			kustomize, err := build(repository, set...)
			if err != nil {
				t.Fatal(err)
			}
			var manifests []string
			for _, o := range kustomize {
				manifests = append(manifests, o.YAML)
			}
			want := same(t, parse(t, manifests))
			if slices.Contains(set, "ha") {
				own["configuration"] = outside()
				delete(want, "ConfigMap of the configuration")
			}
			got := same(t, rendered(t, namespace, own))
			for _, key := range slices.Sorted(maps.Keys(want)) {
				if !reflect.DeepEqual(got[key], want[key]) {
					t.Errorf("%s differs: Helm has\n%v\nand kustomize\n%v", key, got[key], want[key])
				}
			}
			for key := range got {
				if want[key] == nil && (key != "ConfigMap of the configuration" || !slices.Contains(set, "ha")) {
					t.Errorf("only Helm has %s", key)
				}
			}
		})
	}
}

func TestReleaseIsInItsNamespace(t *testing.T) {
	own := switches(given(t).Components...)
	own["configuration"] = outside()
	for key, o := range rendered(t, "ml-operators", own) {
		if content, err := json.Marshal(o.Object); err != nil || bytes.Contains(content, []byte(namespace)) {
			t.Errorf("%s still names %s (%v)", key, namespace, err)
		}
	}
}

func TestChartIsLinted(t *testing.T) {
	linted := lint.RunAll(folder, values{}, namespace)
	for _, message := range linted.Messages {
		if !strings.Contains(message.Error(), "icon is recommended") {
			t.Error(message)
		}
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	for _, bad := range []struct {
		own  values
		says string
	}{
		{values{"replicas": 3}, "additional properties 'replicas' not allowed"},
		{values{"components": values{"metrics": true}}, "additional properties 'metrics' not allowed"},
		{values{"components": values{"ha": "yes"}}, "got string, want boolean"},
		{values{"configuration": values{"prometeus": values{}}}, "additional properties 'prometeus' not allowed"},
		{values{"configuration": values{"ledger": values{"days": 3}}}, "additional properties 'days' not allowed"},
		{values{"configuration": values{"tiers": []any{values{"name": "a", "weight": 3}}}},
			"additional properties 'weight' not allowed"},
		{values{"image": values{"digest": "latest"}}, "does not match pattern"},
		{switches("console"), "the console needs components.monitoring"},
		{values{"configuration": values{"console": values{"enabled": true}}}, "the console needs components.monitoring"},
		{values{
			"components":    values{"console": true, "monitoring": true},
			"configuration": values{"metrics": values{"secure": false}},
		}, "the console is served beside metrics, by HTTPS"},
		{switches("ha"), "components.ha needs the ledger in PostgreSQL"},
		{values{"ledger": values{"claim": values{"existing": "mine"}, "postgres": values{"secretName": "s"}}}, "not both"},
	} {
		if _, err := release(t, "tideline", namespace, bad.own, nil); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%v: %v, and not: %s", bad.own, err, bad.says)
		}
	}
}

func TestClusterThatCannotTakeTheRelease(t *testing.T) {
	object := func(apiVersion, kind, name string, annotations map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		o.SetName(name)
		o.SetAnnotations(annotations)
		return o
	}
	bare := cluster{object("v1", "Namespace", "kube-system", nil)}
	with := append(slices.Clone(bare),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "queues.scheduling.volcano.sh", nil))
	role := func(annotations map[string]string) *unstructured.Unstructured {
		return object("rbac.authorization.k8s.io/v1", "ClusterRole", "tideline-manager", annotations)
	}
	helms := role(map[string]string{"meta.helm.sh/release-name": "first", "meta.helm.sh/release-namespace": "one"})
	for _, c := range []struct {
		what, name, namespace string
		there                 cluster
		own                   values
		says                  string
	}{
		{"Volcano and nothing of ours", "first", "one", with, nil, ""},
		{"the release itself", "first", "one", append(slices.Clone(with), helms), nil, ""},
		{"another release", "second", "one", append(slices.Clone(with), helms), nil,
			"as release first of namespace one, and one cluster has one: change that one with helm upgrade first --namespace one"},
		{"a release of another namespace", "first", "two", append(slices.Clone(with), helms), nil, "as release first of namespace one"},
		{"kustomize's", "first", "one", append(slices.Clone(with), role(nil)), nil, "and not by Helm"},
		{"no Volcano", "first", "one", bare, nil, "Volcano is not in this cluster"},
		{"no Volcano, and no pool asked for", "first", "one", bare, values{"pool": false}, ""},
	} {
		_, err := release(t, c.name, c.namespace, c.own, c.there)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, and not: %q", c.what, err, c.says)
		}
	}
}

func TestChartHasTheVersionOfTheBundle(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "config", "manifests", "bases", "tideline.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var csv struct{ Spec struct{ Version string } }
	if err := yaml.Unmarshal(content, &csv); err != nil {
		t.Fatal(err)
	}
	if c := load(t).Metadata; c.Version != csv.Spec.Version || c.AppVersion != csv.Spec.Version {
		t.Errorf("the chart is of %s and %s, the bundle of %s", c.Version, c.AppVersion, csv.Spec.Version)
	}
}

// Helm keeps the chart and what it made of it in one Secret, which holds 1 MiB; a third of it is left.
func TestReleaseFitsIntoASecret(t *testing.T) {
	own := switches(given(t).Components...)
	own["configuration"] = outside()
	files, err := release(t, "tideline", namespace, own, nil)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for _, text := range files {
		_, _ = w.Write([]byte(text))
	}
	err = fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, path))
		_, _ = w.Write([]byte(base64.StdEncoding.EncodeToString(content)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(base64.StdEncoding.EncodeToString(packed.Bytes())); n > 700_000 {
		t.Errorf("a release takes %d bytes", n)
	} else {
		t.Logf("a release takes %d bytes", n)
	}
}

func TestKindsAreKept(t *testing.T) {
	for key, o := range rendered(t, namespace, nil) {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("helm uninstall deletes %s, and every training with it", key)
		}
	}
}
