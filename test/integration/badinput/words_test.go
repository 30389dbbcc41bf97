package badinput

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/specvalidation"
)

// admission is the API server's own code for one kind, without the server, put together as
// apiextensions-apiserver/pkg/registry/customresource/strategy.go does.
type admission struct {
	validator validation.SchemaValidator
	schema    *structuralschema.Structural
	rules     *cel.Validator
}

func newAdmission(t *testing.T, of kind) admission {
	t.Helper()
	definition, props := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict(of.definition, definition); err != nil {
		t.Fatal(err)
	}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := structuralschema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	return admission{validator, schema, cel.NewValidator(schema, true, celconfig.PerCallLimit)}
}

// says is what the API server says of an object, or of a change of the one it was; nothing when that is nil.
func (a admission) says(t *testing.T, now, was *unstructured.Unstructured) []string {
	t.Helper()
	var before map[string]any
	problems := validation.ValidateCustomResource(nil, now.Object, a.validator)
	if was != nil {
		before = was.Object
		problems = validation.ValidateCustomResourceUpdate(nil, now.Object, before, a.validator)
	}
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, a.schema, now.Object)...)
	if slices.ContainsFunc(problems, blinds) {
		return append(inWords(problems), blind)
	}
	broken, _ := a.rules.Validate(t.Context(), nil, a.schema, now.Object, before, celconfig.RuntimeCELCostBudget)
	return inWords(append(problems, broken...))
}

// blinds tells whether the object's shape is so wrong that no further rules are checked.
func blinds(p *field.Error) bool {
	return slices.Contains([]field.ErrorType{
		field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid,
	}, p.Type)
}

func inWords(problems field.ErrorList) []string {
	words := make([]string, len(problems))
	for i, p := range problems {
		words[i] = p.Error()
	}
	return words
}

// object is the object of a case as the API server has it when it validates.
func (a admission) object(t *testing.T, from interface {
	Object(namespace string) (*unstructured.Unstructured, error)
}) *unstructured.Unstructured {
	t.Helper()
	o, err := from.Object("ads")
	if err != nil {
		t.Fatal(err)
	}
	defaulting.Default(o.Object, a.schema)
	return o
}

// The words are the API server's, and the operator's of an object that the API server let pass.
func TestWordsOfCases(t *testing.T) {
	for name, of := range kinds {
		server := newAdmission(t, of)
		operator := specvalidation.New(of.definition, v1beta1.GroupVersion.Version)
		for _, c := range append(of.cases, Case{Kind: name, What: "nothing", Patch: `{}`}) {
			t.Run(name+": "+c.What, func(t *testing.T) {
				o := server.object(t, c)
				want := slices.Clone(c.Says)
				if c.Blind {
					want = append(want, blind)
				}
				if have := server.says(t, o, nil); !slices.Equal(have, want) {
					t.Errorf("the API server says\n%q, not\n%q", have, want)
				}
				content, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				job := of.empty()
				if err := json.Unmarshal(content, job); err != nil != c.Unreadable {
					t.Fatalf("the operator reads the object: %v", err)
				}
				if c.Unreadable {
					return
				}
				if have, err := operator.CheckSpec(t.Context(), job); err != nil || have != c.Stalled() {
					t.Errorf("the operator says\n%q (%v), not\n%q", have, err, c.Stalled())
				}
			})
		}
	}
}

func TestWordsOfUpdates(t *testing.T) {
	for name, of := range kinds {
		server := newAdmission(t, of)
		for _, u := range slices.Concat(of.updates, of.accepted) {
			t.Run(name+": "+u.What, func(t *testing.T) {
				was := server.object(t, u)
				if have := server.says(t, was, nil); len(have) > 0 {
					t.Fatalf("the job before the change is refused: %q", have)
				}
				patch := map[string]any{}
				if err := json.Unmarshal([]byte(u.Patch), &patch); err != nil {
					t.Fatal(err)
				}
				now := was.DeepCopy()
				Merge(now.Object, patch)
				defaulting.Default(now.Object, server.schema)
				var want []string
				if u.Says != "" {
					want = append(want, u.Says)
				}
				if have := server.says(t, now, was); !slices.Equal(have, want) {
					t.Errorf("the API server says\n%q, not\n%q", have, want)
				}
			})
		}
	}
}

// Fields that pods read may change once the operator says that no pod is left, and not because the spec says suspend.
func TestFrozenFieldsWaitForTheStop(t *testing.T) {
	server := newAdmission(t, kinds[v1beta1.ElasticTrainingJobKind])
	for status, stopped := range map[string]bool{
		`{"phase":"Suspended","replicas":0}`: true, `{"phase":"Suspended","replicas":1}`: false,
		`{"phase":"Running","replicas":0}`: false, `{"phase":"Pending","replicas":0}`: false, `{}`: true,
	} {
		for _, f := range frozenFields() {
			t.Run(status+": "+f.name+" by "+f.change, func(t *testing.T) {
				u := changed(f.name, `{"spec":{"suspend":true},"status":`+status+`}`, f.change, "")
				u.Kind = v1beta1.ElasticTrainingJobKind
				was := server.object(t, u)
				patch := map[string]any{}
				if err := json.Unmarshal([]byte(u.Patch), &patch); err != nil {
					t.Fatal(err)
				}
				now := was.DeepCopy()
				Merge(now.Object, patch)
				defaulting.Default(now.Object, server.schema)
				want := []string{f.says()}
				if stopped {
					want = []string{}
				}
				if have := server.says(t, now, was); !slices.Equal(have, want) {
					t.Errorf("the API server says\n%q, not\n%q", have, want)
				}
			})
		}
	}
}

// The API server and Go write durations in different ways: what Go writes is accepted.
func TestIntervalsAsGoWritesThem(t *testing.T) {
	server := newAdmission(t, kinds[v1beta1.MergeJobKind])
	for _, d := range []time.Duration{10 * time.Second, 90*time.Minute + time.Nanosecond, 10 * time.Hour, 8760 * time.Hour} {
		o := server.object(t, Case{
			Kind: v1beta1.MergeJobKind, Patch: setting("spec.schedule.interval", strconv.Quote(d.String())),
		})
		if said := server.says(t, o, nil); len(said) > 0 {
			t.Errorf("an interval of %v is refused: %q", d, said)
		}
	}
}
