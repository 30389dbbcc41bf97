package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionAndImageCanBeGiven(t *testing.T) {
	in := input(t)
	in.Version, in.Image = "v1.2.3", "registry.example/tideline:own"
	files, err := Generate(in)
	if err != nil {
		t.Fatal(err)
	}
	manifest := string(files["bundle/"+csvFile])
	for _, want := range []string{
		"\n  name: tideline.v1.2.3\n", "\n  version: 1.2.3\n", "containerImage: registry.example/tideline:own\n",
		"                image: registry.example/tideline:own\n", "\n  - image: registry.example/tideline:own\n",
	} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the manifest has no %q", want)
		}
	}
	in.Version = "next"
	if _, err := Generate(in); err == nil || !strings.Contains(err.Error(), `version "next"`) {
		t.Errorf("version next: %v", err)
	}
}

// What a bundle would leave out without a word, or carry without effect, stops its generation.
func TestWhatABundleCannotSayIsRefused(t *testing.T) {
	manifests, err := rendered()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ old, with, want string }{
		"kind": {"kind: PriorityClass\n", "kind: Other\n", "a bundle cannot carry Other tideline-exploratory"},
		"account of others": {
			"  name: tideline-controller-manager\n  namespace: tideline-system\n---", "  name: other\n  namespace: tideline-system\n---",
			"binds others than the operator",
		},
		"account of the same name": {
			"  name: tideline-controller-manager\n  namespace: tideline-system\n---",
			"  name: tideline-controller-manager\n  namespace: other\n---", "binds others than the operator",
		},
		"user of the same name": {"- kind: ServiceAccount\n", "- kind: User\n", "binds others than the operator"},
		"another beside the operator": {
			"subjects:\n", "subjects:\n- kind: Group\n  name: other\n", "binds others than the operator",
		},
		"right in another namespace": {
			"kind: RoleBinding\nmetadata:\n  labels:\n    app.kubernetes.io/name: tideline\n  name: tideline-manager\n" +
				"  namespace: tideline-system\n",
			"kind: RoleBinding\nmetadata:\n  name: tideline-manager\n  namespace: other\n",
			"RoleBinding tideline-manager gives rights in namespace other",
		},
		"role not there": {
			"  kind: Role\n  name: tideline-manager\n", "  kind: Role\n  name: other\n", "binds Role/tideline-system/other, which",
		},
		"role in another namespace": {
			"kind: Role\nmetadata:\n  labels:\n    app.kubernetes.io/name: tideline\n  name: tideline-manager\n" +
				"  namespace: tideline-system\n",
			"kind: Role\nmetadata:\n  name: tideline-manager\n  namespace: other\n",
			"binds Role/tideline-system/tideline-manager, which",
		},
		"namespaceSelector": {
			"  failurePolicy: Fail\n", "  failurePolicy: Fail\n  namespaceSelector: {}\n", "cannot say namespaceSelector",
		},
		"matchConditions":   {"  name: approve.tideline.io\n", "  name: other.tideline.io\n", "cannot say matchConditions"},
		"webhook elsewhere": {"      name: tideline-webhook\n", "      name: other\n", "is not among the manifests"},
		"unknown field":     {"  replicas: 1\n", "  replicaz: 1\n", `unknown field "spec.replicaz"`},
		"no Deployment":     {"kind: Deployment\n", "kind: ConfigMap\n", "0 Deployments and 4 CustomResourceDefinitions"},
		"two of a name": {
			"name: tideline-exploratory\n", "name: tideline-main-traffic\n", "two manifests would be bundle/manifests/",
		},
	} {
		changed := bytes.ReplaceAll(manifests, []byte(test.old), []byte(test.with))
		if bytes.Equal(changed, manifests) {
			t.Errorf("%s: the manifests have no %q", name, test.old)
		}
		in, err := read(repository, bytes.NewReader(changed))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Generate(in); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: want %q, got %v", name, test.want, err)
		}
	}
}

func TestKindWithoutMarkersIsRefused(t *testing.T) {
	in := input(t)
	in.Docs.Kinds["ElasticTrainingJob"] = KindDoc{DisplayName: "Elastic Training Job"}
	if _, err := Generate(in); err == nil || !strings.Contains(err.Error(), "lacks marker") {
		t.Errorf("got %v", err)
	}
	source := "package p\n\n// T is a type.\n//\n// +" + markerPrefix + "colour=\"blue\"\ntype T struct{}\n"
	if err := in.Docs.add("p.go", []byte(source)); err == nil || !strings.Contains(err.Error(), "colour is not known") {
		t.Errorf("got %v", err)
	}
}

// A file of an earlier bundle that stayed would be installed.
func TestWriteReplacesTheBundle(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"bundle/manifests/old.yaml", "bundle/manifests/new.yaml"} {
		if err := write(folder, map[string][]byte{name: []byte("a: b\n")}); err != nil {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(folder, "bundle", "manifests", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "new.yaml" {
		t.Errorf("left are %v (%v)", left, err)
	}
	if content, err := os.ReadFile(left[0]); err != nil || string(content) != "a: b\n" {
		t.Errorf("%s holds %q (%v)", left[0], content, err)
	}
}

func TestDisplayNames(t *testing.T) {
	for name, want := range map[string]string{"MinReplicas": "Min Replicas", "GPUs": "GPUs", "Queue": "Queue"} {
		if got := displayName(name); got != want {
			t.Errorf("%s is shown as %q, want %q", name, got, want)
		}
	}
}
