package doctor

import (
	"os"
	"regexp"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota"
)

// guard is a policy with a binding that does this about what it refuses.
func guard(name string, action admissionregistrationv1.ValidationAction) []client.Object {
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "of-" + name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{action},
			},
		},
	}
}

func TestPoliciesOfTheOperatorsAccount(t *testing.T) {
	g := NewWithT(t)
	f := Facts{}
	found := func(objects ...client.Object) []string {
		g.Expect(gatherGuards(t.Context(), refusing(objects), &f)).To(Succeed())
		return f.MissingGuards
	}
	g.Expect(found()).To(Equal(guards))
	g.Expect(guarded(f)).To(And(HaveField("Level", Warn), HaveField("Do", "kubectl apply -k config/guard")))
	var all []client.Object
	for _, name := range guards {
		all = append(all, guard(name, admissionregistrationv1.Deny)...)
	}
	g.Expect(found(all...)).To(BeEmpty())
	g.Expect(guarded(f)).To(HaveField("Level", OK))
	g.Expect(found(all[:5]...)).To(Equal(guards[2:]), "a policy without a binding holds nobody back")
	g.Expect(found(slices.Concat(all[:4], guard(guards[2], admissionregistrationv1.Audit))...)).To(Equal(guards[2:]),
		"nor does one that only tells")
	g.Expect(guarded(Facts{Local: true, MissingGuards: guards})).To(HaveField("Level", OK))
}

// Profiles that refuse other workloads need the policy that does. Without such a profile nothing is said of it.
func TestPolicyAgainstOtherWorkloads(t *testing.T) {
	g := NewWithT(t)
	found := func(objects ...client.Object) []Finding {
		f := Facts{Namespace: "tideline-system"}
		g.Expect(gatherGuards(t.Context(), refusing(objects), &f)).To(Succeed())
		return others(f)
	}
	profile := func(name string, choice v1beta1.OtherWorkloads) client.Object {
		p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.Caps = &v1beta1.ProfileCaps{OtherWorkloads: choice}
		return p
	}
	reading := func(namespace string) []client.Object {
		objects := guard(quota.GuardPolicy, admissionregistrationv1.Deny)
		objects[1].SetName(quota.GuardPolicy)
		objects[1].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding).Spec.ParamRef = &admissionregistrationv1.ParamRef{
			Namespace: namespace,
		}
		return objects
	}
	g.Expect(found(profile("search", v1beta1.OtherWorkloadsCount))).To(BeEmpty(), "no profile needs it")
	two := []client.Object{profile("maps", v1beta1.OtherWorkloadsRefuse), profile("ads", v1beta1.OtherWorkloadsRefuse),
		profile("search", v1beta1.OtherWorkloadsCount)}
	g.Expect(found(two...)).To(ConsistOf(And(HaveField("Level", Warn),
		HaveField("What", ContainSubstring("profiles that refuse them (ads, maps)")),
		HaveField("Do", "There is no ValidatingAdmissionPolicy tideline-other-workloads. Apply config/guard."))))
	g.Expect(found(append(reading("elsewhere"), two...)...)).To(ConsistOf(And(HaveField("Level", Warn),
		HaveField("Do", ContainSubstring("set spec.paramRef.namespace")))))
	g.Expect(found(append(reading("tideline-system"), two...)...)).To(ConsistOf(And(HaveField("Level", OK),
		HaveField("What", ContainSubstring("(ads, maps)")))))
}

// The doctor looks for the policies that are shipped, of which all but one are about the operator's account.
func TestDoctorKnowsAllPolicies(t *testing.T) {
	g := NewWithT(t)
	shipped, err := os.ReadFile("../../../config/guard/policies.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, match := range regexp.MustCompile(`(?m)^kind: ValidatingAdmissionPolicy\nmetadata:\n  name: (\S+)$`).
		FindAllStringSubmatch(string(shipped), -1) {
		names = append(names, match[1])
	}
	g.Expect(append(slices.Clone(guards), quota.GuardPolicy)).To(ConsistOf(names))
}

func TestClaimWithoutAVolume(t *testing.T) {
	g := NewWithT(t)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tideline-system", Name: ledgerClaim}}
	f := Facts{Namespace: "tideline-system"}
	g.Expect(gatherClaim(t.Context(), refusing(nil), &f)).To(Succeed())
	g.Expect(claims(f)).To(BeEmpty(), "there is none")
	g.Expect(gatherClaim(t.Context(), refusing([]client.Object{claim}), &f)).To(Succeed())
	g.Expect(claims(f)).To(ConsistOf(And(HaveField("Level", Wrong), HaveField("Do", ContainSubstring("volatile-ledger")))))
	claim.Status.Phase = corev1.ClaimBound
	g.Expect(gatherClaim(t.Context(), refusing([]client.Object{claim}), &f)).To(Succeed())
	g.Expect(claims(f)).To(BeEmpty())
}
