package resourcequotaprofile

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// binding is that of config/guard, changed so.
func binding(change func(*admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec)) client.Object {
	b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: quota.GuardPolicy},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: quota.GuardPolicy, ParamRef: &admissionregistrationv1.ParamRef{Namespace: "tideline-system"},
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	change(&b.Spec)
	return b
}

func TestWhatKeepsTheAPIServerFromRefusing(t *testing.T) {
	type spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: quota.GuardPolicy}}
	for name, c := range map[string]struct {
		there []client.Object
		says  string
	}{
		"nothing": {[]client.Object{policy, binding(func(*spec) {})}, ""},
		"no policy": {
			[]client.Object{binding(func(*spec) {})}, "There is no ValidatingAdmissionPolicy tideline-other-workloads. Apply",
		},
		"no binding": {
			[]client.Object{policy}, "There is no ValidatingAdmissionPolicyBinding tideline-other-workloads. Apply config/guard.",
		},
		"it audits": {[]client.Object{policy, binding(func(s *spec) {
			s.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
		})}, "ValidatingAdmissionPolicyBinding tideline-other-workloads was changed"},
		"it reads nothing": {[]client.Object{policy, binding(func(s *spec) { s.ParamRef = nil })},
			"ValidatingAdmissionPolicyBinding tideline-other-workloads was changed"},
		"another namespace": {[]client.Object{policy, binding(func(s *spec) { s.ParamRef.Namespace = "elsewhere" })},
			"ValidatingAdmissionPolicyBinding tideline-other-workloads reads ConfigMaps of namespace elsewhere, and the operator writes " +
				"them in tideline-system: set spec.paramRef.namespace."},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &Reconciler{
				Dependencies: Dependencies{Namespace: "tideline-system"},
				guards:       fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(c.there...).Build(),
			}
			said, err := r.findGap(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			if c.says == "" {
				g.Expect(said).To(BeEmpty())
			}
			g.Expect(said).To(HavePrefix(c.says))
		})
	}
}

// Who the operator is, is asked once; and only ConfigMaps that a profile controls are guards.
func TestGuardsAreReadByTheirProfile(t *testing.T) {
	g := NewWithT(t)
	owned := func(name, kind string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "tideline-system", Name: name,
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "ads", UID: "1", Controller: ptr.To(true)}},
		}}
	}
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	asked, answer := 0, errors.New("no")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		owned("tideline-guard-ads", v1beta1.ResourceQuotaProfileKind), owned("other", v1beta1.CostReportKind),
	).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			asked++
			if review, ok := o.(*authenticationv1.SelfSubjectReview); ok && answer == nil {
				review.Status.UserInfo.Username = "operator"
			}
			return answer
		},
	}).Build()
	r := &Reconciler{Dependencies: Dependencies{Namespace: "tideline-system"}, guards: c, client: c, memory: newMemory()}
	profile := &v1beta1.ResourceQuotaProfile{}
	o := quota.Observed{Profiles: []quota.Profile{{Object: profile}}}
	g.Expect(r.observeGuards(t.Context(), &o)).To(Succeed())
	g.Expect(o.Guarding.ConfigMaps).To(And(HaveLen(1), HaveKeyWithValue(types.UID("1"), HaveField("Name", "tideline-guard-ads"))))
	g.Expect(asked).To(BeZero(), "no profile refuses other workloads")

	profile.Spec.Caps = &v1beta1.ProfileCaps{OtherWorkloads: v1beta1.OtherWorkloadsRefuse}
	g.Expect(r.observeGuards(t.Context(), &o)).To(Succeed(), "the other profiles go on")
	g.Expect(o.Guarding.Operator).To(BeEmpty())
	answer = nil
	for range 2 {
		g.Expect(r.observeGuards(t.Context(), &o)).To(Succeed())
		g.Expect(o.Guarding.Operator).To(Equal("operator"))
	}
	g.Expect(asked).To(Equal(2), "a failed answer, and one that is kept")
	g.Expect(o.Guarding.NotInForce).To(HavePrefix("There is no ValidatingAdmissionPolicy "))
}

// A budget whose window began before the ledger did counts from the ledger's beginning, and says so; it is unknown while the
// ledger is not read.
func TestBudgetsKnowSinceWhenTheyCount(t *testing.T) {
	profile := &v1beta1.ResourceQuotaProfile{}
	profile.Spec.Caps = &v1beta1.ProfileCaps{AcceleratorHours: []v1beta1.HourCap{
		{Window: metav1.Duration{Duration: time.Hour}}, {Window: metav1.Duration{Duration: 48 * time.Hour}},
	}}
	profile.Name = "ads"
	spent, unread := admission.Spending{ByUser: map[string]int64{"alice": 5}}, errors.New("not read yet")
	for name, c := range map[string]struct {
		begun time.Time
		err   error
		want  []quota.Budget
	}{
		"older than both": {now.Add(-100 * time.Hour), nil, []quota.Budget{
			{Known: true, ByUser: spent.ByUser}, {Known: true, ByUser: spent.ByUser},
		}},
		"a day old": {now.Add(-24 * time.Hour), nil, []quota.Budget{
			{Known: true, ByUser: spent.ByUser}, {Known: true, ByUser: spent.ByUser, Since: now.Add(-24 * time.Hour)},
		}},
		"not read": {time.Time{}, unread, []quota.Budget{{}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &Reconciler{now: func() time.Time { return now }, Dependencies: Dependencies{
				Spent: func(string, time.Duration) (admission.Spending, error) {
					if c.err != nil {
						return admission.Spending{}, c.err
					}
					return admission.Spending{ByUser: spent.ByUser, Begun: c.begun}, nil
				},
			}}
			o := quota.Observed{Profiles: []quota.Profile{{Object: profile}}}
			g.Expect(r.observeBudgets(t.Context(), &o)).To(Succeed())
			g.Expect(o.Budgets["ads"]).To(Equal(c.want))
		})
	}
}
