package v1beta1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// crds returns the CustomResourceDefinitions as they are installed, by kind.
func crds(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CustomResourceDefinitions: %v", err)
	}
	byKind := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, name := range files {
		manifest, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(manifest, crd); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		byKind[crd.Spec.Names.Kind] = crd
	}
	return byKind
}

// The API server refuses a CustomResourceDefinition whose rules do not compile or may cost too much. This is its own
// code, which sees more than controller-gen does.
func TestAPIServerAcceptsCRDs(t *testing.T) {
	for kind, crd := range crds(t) {
		t.Run(kind, func(t *testing.T) {
			apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			var internal apiextensions.CustomResourceDefinition
			err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), &internal) {
				t.Error(err)
			}
		})
	}
}

// `kubectl apply` keeps the whole object in an annotation; all annotations of an object may have 256 KiB. What is left is
// for fields to come, until the earlier version is no longer served.
func TestCRDsFitKubectlApply(t *testing.T) {
	const limit = 260_000
	for kind, crd := range crds(t) {
		applied, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s has %d bytes", kind, len(applied))
		if len(applied) > limit {
			t.Errorf("%s has %d bytes, more than %d", kind, len(applied), limit)
		}
	}
}

// What `kubectl explain` shows. Pod templates are documented by Kubernetes.
func TestEveryFieldIsDocumented(t *testing.T) {
	for kind, crd := range crds(t) {
		undocumented(kind, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string) {
			t.Errorf("%s has no description", path)
		})
	}
}

// undocumented reports the fields below s that have no description.
func undocumented(path string, s *apiextensionsv1.JSONSchemaProps, report func(path string)) {
	for name, field := range s.Properties {
		fieldPath := path + "." + name
		if name == "metadata" {
			continue
		}
		if field.Description == "" {
			report(fieldPath)
		}
		if name != "template" {
			undocumented(fieldPath, &field, report)
		}
	}
	if s.Items != nil {
		undocumented(path+"[]", s.Items.Schema, report)
	}
}

// The constants stand in where a definition without defaults admitted an object.
func TestDefaultsAreThoseOfTheSchema(t *testing.T) {
	spec := crds(t)["ElasticTrainingJob"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	for path, want := range map[string]int32{
		"elasticity.growth.cooldownSeconds":         v1beta1.DefaultCooldownSeconds,
		"successPolicy.completionGraceSeconds":      v1beta1.DefaultCompletionGraceSeconds,
		"deadlines.belowMinSeconds":                 v1beta1.DefaultBelowMinSeconds,
		"restarts.max":                              v1beta1.DefaultMaxRestarts,
		"restarts.windowSeconds":                    v1beta1.DefaultRestartWindowSeconds,
		"framework.torchrun.joinTimeoutSeconds":     v1beta1.DefaultJoinTimeoutSeconds,
		"framework.torchrun.lastCallTimeoutSeconds": v1beta1.DefaultLastCallTimeoutSeconds,
		"framework.torchrun.readTimeoutSeconds":     v1beta1.DefaultReadTimeoutSeconds,
		"replicas":                                  v1beta1.NoTarget,
	} {
		field := apiextensionsv1.JSONSchemaProps{Properties: spec}
		for name := range strings.SplitSeq(path, ".") {
			field = field.Properties[name]
		}
		var have int32
		if err := json.Unmarshal(field.Default.Raw, &have); err != nil || have != want {
			t.Errorf("%s: the schema's default is %d (%v), the constant's %d", path, have, err, want)
		}
	}
	merges := crds(t)["MergeJob"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	for field, want := range map[string]int32{
		"threshold":           v1beta1.DefaultMergeThreshold,
		"runTimeoutSeconds":   v1beta1.DefaultRunTimeoutSeconds,
		"startTimeoutSeconds": v1beta1.DefaultStartTimeoutSeconds,
		"backoffSeconds":      v1beta1.DefaultBackoffSeconds,
		"maxIncrementsPerRun": v1beta1.DefaultIncrementsPerRun,
	} {
		var have int32
		if err := json.Unmarshal(merges[field].Default.Raw, &have); err != nil || have != want {
			t.Errorf("%s: the schema's default is %d (%v), the constant's %d", field, have, err, want)
		}
	}
	roles := spec["roles"]
	role := roles.Items.Schema.Properties
	if most, long := *roles.MaxItems, *role["name"].MaxLength; most != v1beta1.MaxRoles || long != v1beta1.MaxRoleName {
		t.Errorf("there may be %d roles with names of %d letters, MaxRoles is %d and MaxRoleName %d", most, long, v1beta1.MaxRoles,
			v1beta1.MaxRoleName)
	}
	if most := *role["replicas"].Maximum; most != v1beta1.MaxRoleMembers {
		t.Errorf("a role may have %v workers, MaxRoleMembers is %d", most, v1beta1.MaxRoleMembers)
	}
	if port := spec["framework"].Properties["port"].Default; port != nil {
		t.Errorf("the schema's default of the port is %s: it would hide whether somebody chose one", port.Raw)
	}
	if most := *spec["maxReplicas"].Maximum; most != v1beta1.MaxWorkers {
		t.Errorf("maxReplicas may be %v, MaxWorkers is %d", most, v1beta1.MaxWorkers)
	}
}
