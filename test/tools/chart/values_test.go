package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// configured is the operator's configuration of a release, as the operator reads it.
func configured(t *testing.T, own values) *config.Configuration {
	t.Helper()
	for _, o := range rendered(t, namespace, own) {
		if o.GetKind() == "ConfigMap" && strings.HasPrefix(o.GetName(), configuration) {
			text, _, err := unstructured.NestedString(o.Object, "data", "configuration.yaml")
			if err != nil {
				t.Fatal(err)
			}
			read, err := config.Load("configuration.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return read
		}
	}
	t.Fatal("the release has no configuration")
	return nil
}

func TestConfigurationIsMergedIntoTheFile(t *testing.T) {
	want := configured(t, nil)
	want.Prometheus.URL, want.ResyncPeriodSeconds = "https://prometheus.example:9090", 604800
	want.Accelerators["example.com/npu"] = "example.com/model"
	want.Merges.Pools = []string{"tideline-merge", "night"}
	want.Ledger.File, want.Ledger.PostgresDSNFile = "", "/etc/tideline-ledger/dsn"
	got := configured(t, values{
		"configuration": values{
			"prometheus": values{"url": "https://prometheus.example:9090"}, "resyncPeriodSeconds": 604800,
			"accelerators": values{"example.com/npu": "example.com/model"},
			"merges":       values{"pools": []any{"tideline-merge", "night"}},
		},
		"ledger": values{"postgres": values{"secretName": "dsn"}},
	})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the operator reads\n%+v\nand not\n%+v", got, want)
	}
}

// The whole file may be given as values, all its fields included.
func TestSchemaKnowsTheWholeConfiguration(t *testing.T) {
	content, err := json.Marshal(config.DefaultConfiguration())
	if err != nil {
		t.Fatal(err)
	}
	all := values{}
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "apiVersion")
	delete(all, "kind")
	configured(t, values{"configuration": all})
}

func TestLedgerOnAClaim(t *testing.T) {
	for _, c := range []struct {
		own           values
		volume, claim string
	}{
		{values{}, `{"name":"data","persistentVolumeClaim":{"claimName":"tideline-ledger"}}`, "10Gi"},
		{values{"claim": values{"size": "50Gi"}}, `{"claimName":"tideline-ledger"}`, "50Gi"},
		{values{"claim": values{"existing": "mine"}}, `{"claimName":"mine"}`, ""},
		{values{"claim": values{"size": ""}}, `{"emptyDir":{},"name":"data"}`, ""},
		{values{"postgres": values{"secretName": "dsn"}}, `{"emptyDir":{},"name":"data"}`, ""},
	} {
		there := rendered(t, namespace, values{"ledger": c.own})
		size := ""
		if claim := there["PersistentVolumeClaim/"+namespace+"/tideline-ledger"]; claim != nil {
			size, _, _ = unstructured.NestedString(claim.Object, "spec", "resources", "requests", "storage")
		}
		if size != c.claim {
			t.Errorf("%v: a claim of %q", c.own, size)
		}
		spec, _ := json.Marshal(there["Deployment/"+namespace+"/tideline-controller-manager"].Object["spec"])
		for _, part := range []string{c.volume, `"fsGroup":65532`, `"strategy":{"type":"Recreate"}`} {
			if !strings.Contains(string(spec), part) {
				t.Errorf("%v: the Deployment lacks %s: %s", c.own, part, spec)
			}
		}
	}
}

func TestDeploymentTakesWhatUsersChoose(t *testing.T) {
	own := values{
		"image": values{
			"repository": "registry.example/tideline", "digest": "sha256:" + strings.Repeat("0", 64),
			"pullSecrets": []any{values{"name": "pull"}},
		},
		"resources": values{"limits": values{"memory": "2Gi"}}, "goMemoryLimit": "1843MiB",
		"nodeSelector": values{"role": "infra"}, "tolerations": []any{values{"operator": "Exists"}},
		"affinity": values{"nodeAffinity": values{}}, "priorityClassName": "system-cluster-critical",
		"networkPolicy": values{"egress": []any{values{"ports": []any{values{"port": 5432}}}}},
	}
	there := rendered(t, namespace, own)
	got, _ := json.Marshal([]any{there["Deployment/"+namespace+"/tideline-controller-manager"].Object["spec"],
		there["NetworkPolicy/"+namespace+"/tideline-controller-manager"].Object["spec"]})
	for _, part := range []string{
		`"image":"registry.example/tideline@sha256:000`, `"imagePullSecrets":[{"name":"pull"}]`,
		`"limits":{"memory":"2Gi"}`, `"1843MiB"`,
		`"nodeSelector":{"role":"infra"}`, `"tolerations":[{"operator":"Exists"}]`, `"affinity":{"nodeAffinity":{}}`,
		`"priorityClassName":"system-cluster-critical"`, `{"ports":[{"port":5432}]}]`,
	} {
		if !strings.Contains(string(got), part) {
			t.Errorf("%s is not there: %s", part, got)
		}
	}
}

// The page of values lists what there is to choose.
func TestValuesListAllThatTheSchemaHas(t *testing.T) {
	c := load(t)
	var parsed struct{ Properties values }
	if err := json.Unmarshal(c.Schema, &parsed); err != nil {
		t.Fatal(err)
	}
	var lacks func(path string, properties, there values)
	lacks = func(path string, properties, there values) {
		for name, of := range properties {
			value, given := there[name]
			if !given && path+name != "global" {
				t.Errorf("values.yaml lacks %s%s", path, name)
			}
			inner, closed := of.(values)["properties"].(values)
			if fields, ok := value.(values); ok && closed && name != "configuration" {
				lacks(path+name+".", inner, fields)
			}
		}
	}
	lacks("", parsed.Properties, c.Values)
}
