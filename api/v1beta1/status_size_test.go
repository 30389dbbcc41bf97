package v1beta1_test

import (
	"encoding/json"
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil/largest"
)

// statusLimit bounds the JSON of a job's status. Every client that watches jobs reads it with each change, and etcd refuses
// objects of 1.5 MB.
const statusLimit = 500_000

// What etcd, the API server and every watcher carry of the largest job is bounded, with every field set at once.
func TestTheLargestStatusStaysSmall(t *testing.T) {
	st := largest.Status()
	raw, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(raw))
	if len(raw) >= statusLimit {
		t.Errorf("the largest status has %d bytes, at most %d are allowed", len(raw), statusLimit)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	crd := crds(t)[v1beta1.ElasticTrainingJobKind]
	isFull(t, "status", crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"], fields)
}

// isFull checks that a value has every property of its schema, and every list as many items as the schema allows.
func isFull(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps, value any) {
	t.Helper()
	switch value := value.(type) {
	case nil:
		t.Errorf("%s is not set", path)
	case map[string]any:
		for name, property := range schema.Properties {
			isFull(t, path+"."+name, property, value[name])
		}
	case []any:
		if most := schema.MaxItems; most != nil && int64(len(value)) != *most {
			t.Errorf("%s has %d items, the schema allows %d", path, len(value), *most)
		}
		isFull(t, path+"[0]", *schema.Items.Schema, value[len(value)-1])
	default:
		if reflect.ValueOf(value).IsZero() {
			t.Errorf("%s is not set", path)
		}
	}
}
