package v1beta1_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/config/crd"
)

// bounded are the bounds of a schema's lists, maps and texts, each with the names of the fields that have it, and the paths of
// those without any.
type bounded struct {
	lists, maps, texts map[int64]map[string]bool
	unbounded          []string
}

func (b *bounded) add(to map[int64]map[string]bool, most *int64, path []string) {
	if most == nil {
		b.unbounded = append(b.unbounded, strings.Join(path, "."))
		return
	}
	if to[*most] == nil {
		to[*most] = map[string]bool{}
	}
	to[*most][path[len(path)-1]] = true
}

func (b *bounded) walk(s *apiextensionsv1.JSONSchemaProps, path []string) {
	each := s.AdditionalProperties
	switch {
	case s.Type == "array":
		b.add(b.lists, s.MaxItems, path)
	case s.Type == "object" && each != nil && each.Schema != nil:
		b.add(b.maps, s.MaxProperties, path)
	case s.Type == "string" && len(s.Enum) == 0:
		b.add(b.texts, s.MaxLength, path)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		b.walk(&property, append(slices.Clone(path), name))
	}
	if s.Items != nil && s.Items.Schema != nil {
		b.walk(s.Items.Schema, path)
	}
	if each != nil && each.Schema != nil {
		b.walk(each.Schema, path)
	}
}

// templateBounds reads those of the pod template of a kind.
func templateBounds(t *testing.T, manifest []byte) *bounded {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(manifest, &definition); err != nil {
		t.Fatal(err)
	}
	b := &bounded{lists: map[int64]map[string]bool{}, maps: map[int64]map[string]bool{}, texts: map[int64]map[string]bool{}}
	template := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["template"]
	b.walk(&template, []string{"template"})
	return b
}

// overrideBounds reads those of what replaces parts of a job's template.
func overrideBounds(t *testing.T) *bounded {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.ElasticTrainingJob, &definition); err != nil {
		t.Fatal(err)
	}
	b := &bounded{lists: map[int64]map[string]bool{}, maps: map[int64]map[string]bool{}, texts: map[int64]map[string]bool{}}
	for _, name := range []string{"master", "roles"} {
		part, there := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties[name]
		if !there {
			t.Fatalf("spec has no %s", name)
		}
		b.walk(&part, []string{name})
	}
	return b
}

// table has a row for each bound, narrow ones first. A bound that most fields have is of all others.
func (b *bounded) table() string {
	var rows strings.Builder
	rows.WriteString("| at most | of |\n|---|---|\n")
	for _, kind := range []struct {
		what   string
		bounds map[int64]map[string]bool
	}{{"elements", b.lists}, {"entries", b.maps}, {"characters", b.texts}} {
		usual := int64(0)
		for most, names := range kind.bounds {
			if len(names) > len(kind.bounds[usual]) {
				usual = most
			}
		}
		for _, most := range slices.Sorted(maps.Keys(kind.bounds)) {
			of := "all others"
			if most != usual {
				of = "`" + strings.Join(slices.Sorted(maps.Keys(kind.bounds[most])), "`, `") + "`"
			}
			fmt.Fprintf(&rows, "| %d %s | %s |\n", most, kind.what, of)
		}
	}
	return rows.String()
}

// Whatever a user writes into a pod template has a bound, which the page states.
func TestBoundsOfTemplatesAreOnThePage(t *testing.T) {
	want := ""
	for kind, manifest := range map[string][]byte{"ElasticTrainingJob": crd.ElasticTrainingJob, "MergeJob": crd.MergeJob} {
		b := templateBounds(t, manifest)
		for _, path := range b.unbounded {
			t.Errorf("%s: %s has no bound: add one in test/tools/crdbounds", kind, path)
		}
		if want == "" {
			want = b.table()
		} else if other := b.table(); other != want {
			t.Errorf("the templates of both kinds have other bounds:\n%s%s", want, other)
		}
	}
	for _, path := range overrideBounds(t).unbounded {
		t.Errorf("ElasticTrainingJob: %s has no bound: add one in test/tools/crdbounds", path)
	}
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/security.md lacks this table:\n%s", want)
	}
}
