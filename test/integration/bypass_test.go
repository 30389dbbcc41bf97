package integration

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/integration/badinput"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// What becomes of objects that reached the API server while the rules of their definition were off, as before an upgrade that
// brought a rule. The definition is changed for that, so there is a cluster for it alone. Late, because the specs that take
// longest come first and leave room at the end.
var _ = Describe("An object that bypassed validation", Ordered, ContinueOnFailure, SpecPriority(-1), suite.Long, func() {
	var in *testutil.Installation
	// One job that no program in Go reads is enough for the operator to list none.
	cases := slices.DeleteFunc(badinput.Cases(), func(c badinput.Case) bool { return c.Unreadable || c.Harmless() })
	namespace := func(i int) string { return fmt.Sprintf("bypass-%d", i) }

	BeforeAll(func(ctx SpecContext) {
		in = shared.Own(ctx, cluster.Options{GPUNodes: 1})
		Expect(relax(ctx, in)).To(Succeed(), "the rules are off")
		for i, c := range cases {
			ns := &corev1.Namespace{}
			ns.Name = namespace(i)
			Expect(in.Client.Create(ctx, ns)).To(Succeed(), "there is a namespace for each case")
			o, err := c.Object(ns.Name)
			Expect(err).NotTo(HaveOccurred(), "the case is well formed")
			// The API server may take a moment to forget the rules.
			Eventually(func() error { return in.Client.Create(ctx, o) }).Should(Succeed(), "the object is accepted: %s", c.What)
		}
	})

	for i, c := range cases {
		It("scenario 14: stalls in the words of admission: "+c.What, func(ctx SpecContext) {
			jobs := &v1beta1.ElasticTrainingJobList{}
			Eventually(func(g Gomega) *v1beta1.ElasticTrainingJob {
				g.Expect(in.Client.List(ctx, jobs, client.InNamespace(namespace(i)))).To(Succeed(), "jobs are read")
				g.Expect(jobs.Items).To(HaveLen(1), "the job is there")
				return &jobs.Items[0]
			}).Should(testutil.BeStalled(v1beta1.ReasonInvalidSpec), "the job says so")
			Expect(jobs.Items[0].Status.Message).To(Equal(c.Stalled()), "in the words of admission")
		})
	}

	It("scenario 14: has nothing created for it", func(ctx SpecContext) {
		// Every job was decided upon by now.
		for i, c := range cases {
			Expect(in.Remains(ctx, namespace(i))).To(ConsistOf(HavePrefix("ElasticTrainingJob ")), "nothing is created: %s", c.What)
		}
	})
})

// relax takes every rule out of the installed definition. The operator holds objects to the definition it was built with.
func relax(ctx context.Context, in *testutil.Installation) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := in.Client.Get(ctx, client.ObjectKey{Name: "elastictrainingjobs.tideline.io"}, crd); err != nil {
		return err
	}
	for i := range crd.Spec.Versions {
		withoutRules(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
	}
	return in.Client.Update(ctx, crd)
}

// withoutRules keeps types, defaults and structure of a schema.
func withoutRules(s *apiextensionsv1.JSONSchemaProps) {
	s.Required, s.Enum, s.XValidations, s.Pattern = nil, nil, nil, ""
	s.Minimum, s.Maximum, s.MinLength, s.MaxLength, s.MinItems, s.MaxItems = nil, nil, nil, nil, nil, nil
	s.XListType, s.XListMapKeys = nil, nil
	for name, field := range s.Properties {
		withoutRules(&field)
		s.Properties[name] = field
	}
	if s.Items != nil {
		withoutRules(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		withoutRules(s.AdditionalProperties.Schema)
	}
}
