package v1beta1_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/tideline-io/tideline/api/v1beta1"
)

type crdVersion = apiextensionsv1.CustomResourceDefinitionVersion

// versionsOf returns the two versions of a definition: v1beta1 and the one before.
func versionsOf(g Gomega, crd *apiextensionsv1.CustomResourceDefinition) (now, before *crdVersion) {
	g.Expect(crd.Spec.Versions).To(HaveLen(2), "%s", crd.Name)
	now, before = &crd.Spec.Versions[0], &crd.Spec.Versions[1]
	g.Expect(now.Name).To(Equal(v1beta1.GroupVersion.Version))
	g.Expect(before.Name).To(Equal(v1beta1.OwnerVersion.Version))
	return now, before
}

func TestBothVersionsAreServedAndTheReleaseBeforeReadsWhatIsStored(t *testing.T) {
	g := NewWithT(t)
	for _, crd := range crds(t) {
		now, before := versionsOf(g, crd)
		g.Expect(now.Served).To(BeTrue())
		g.Expect(now.Deprecated).To(BeFalse())
		g.Expect(before.Served).To(BeTrue())
		g.Expect(before.Storage).To(BeTrue(), "a rollback to the definitions of the release before is possible")
		g.Expect(before.Deprecated).To(BeTrue())
		g.Expect(*before.DeprecationWarning).To(HaveSuffix("is deprecated: write tideline.io/v1beta1, which has the same fields"))
		g.Expect(crd.Spec.Conversion).To(BeNil(), "the API server converts by itself, also while the operator is down")
	}
}

// The API server converts by changing apiVersion alone. A field that one version did not have, it would drop.
func TestBothVersionsHaveTheSameFieldsRulesAndColumns(t *testing.T) {
	g := NewWithT(t)
	for _, crd := range crds(t) {
		now, before := versionsOf(g, crd)
		withoutWords(now.Schema.OpenAPIV3Schema)
		g.Expect(before.Schema).To(Equal(now.Schema), "%s", crd.Name)
		g.Expect(before.Subresources).To(Equal(now.Subresources), "%s", crd.Name)
		for i := range now.AdditionalPrinterColumns {
			now.AdditionalPrinterColumns[i].Description = ""
		}
		g.Expect(before.AdditionalPrinterColumns).To(Equal(now.AdditionalPrinterColumns), "%s", crd.Name)
	}
}

func withoutWords(s *apiextensionsv1.JSONSchemaProps) {
	s.Description = ""
	for name, property := range s.Properties {
		withoutWords(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		withoutWords(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		withoutWords(s.AdditionalProperties.Schema)
	}
}

// Random objects go from one version to the other and back, and from what Go has to what is stored, as the API server does it: it
// drops what the schema of a version does not have.
func TestRandomObjectsComeBackFromTheOtherVersionAsTheyWere(t *testing.T) {
	const rounds = 100
	seed := rand.Int64()
	t.Logf("seed %d", seed)
	fill := filler(seed)
	for kind, crd := range crds(t) {
		g := NewWithT(t)
		now, before := versionsOf(g, crd)
		reads, stores := structuralOf(g, now), structuralOf(g, before)
		for range rounds {
			object := map[string]runtime.Object{
				v1beta1.ElasticTrainingJobKind: &v1beta1.ElasticTrainingJob{}, v1beta1.MergeJobKind: &v1beta1.MergeJob{},
				v1beta1.ResourceQuotaProfileKind: &v1beta1.ResourceQuotaProfile{}, v1beta1.CostReportKind: &v1beta1.CostReport{},
			}[kind]
			fill.Fill(object)
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			g.Expect(err).NotTo(HaveOccurred())
			pruning.Prune(content, reads, true)
			first := runtime.DeepCopyJSON(content)
			pruning.Prune(content, stores, true)
			g.Expect(content).To(Equal(first), "%s is stored as it was written", kind)
			pruning.Prune(content, reads, true)
			g.Expect(content).To(Equal(first), "%s is read as it was written", kind)
			again := reflect.New(reflect.TypeOf(object).Elem()).Interface()
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(content, again)).To(Succeed(), "Go reads it")
		}
	}
}

func structuralOf(g Gomega, version *crdVersion) *structuralschema.Structural {
	props := &apiextensions.JSONSchemaProps{}
	g.Expect(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		version.Schema.OpenAPIV3Schema, props, nil)).To(Succeed())
	structural, err := structuralschema.NewStructural(props)
	g.Expect(err).NotTo(HaveOccurred())
	return structural
}

// filler fills objects with random values that JSON keeps as they are.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(1, 2).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(int64(c.Int31()), resource.DecimalSI)
		},
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31()) },
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(int64(c.Int31()), 0) },
		func(at *metav1.MicroTime, c randfill.Continue) {
			*at = metav1.NewMicroTime(metav1.Unix(int64(c.Int31()), 0).Time)
		},
		func(o *metav1.ObjectMeta, c randfill.Continue) {
			o.Name, o.Labels = c.String(8), map[string]string{c.String(8): c.String(8)}
		},
	)
}
