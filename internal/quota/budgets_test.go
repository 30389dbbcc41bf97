package quota

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

func TestBudgetsThatAreUsedUp(t *testing.T) {
	week := metav1.Duration{Duration: 168 * time.Hour}
	for name, c := range map[string]struct {
		budget  Budget
		status  metav1.ConditionStatus
		message string
		over    int
	}{
		"no user": {Budget{Known: true, ByUser: map[string]int64{"alice": 500*admission.Hour - 1}}, "", "", 0},
		"one": {
			Budget{Known: true, ByUser: map[string]int64{"alice": 500 * admission.Hour, "bob": 1, "": 900 * admission.Hour}},
			metav1.ConditionTrue,
			"Used up their accelerator hours: alice with 500 of 500 hours in 168h. Jobs that run continue.", 1,
		},
		"not known": {Budget{}, metav1.ConditionUnknown, "The use of accelerators is unknown", 0},
		"known in part": {
			Budget{Known: true, Since: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}, metav1.ConditionUnknown,
			"The use before 2026-11-20T09:00:00Z is unknown, because the ledger began then", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := newBooking()
			spec := &b.o.Profiles[0].Object.Spec
			spec.Caps = &v1beta1.ProfileCaps{AcceleratorHours: []v1beta1.HourCap{{
				Window: week, PerUser: 500, OnExceeded: v1beta1.ExceededDeny,
			}}}
			b.o.Budgets = map[string][]Budget{"ads": {c.budget}}
			b.step()
			g.Expect(b.last.Status.OverBudget).To(HaveLen(c.over))
			said := meta.FindStatusCondition(b.last.Status.Conditions, v1beta1.ConditionBudgetExceeded)
			if c.status == "" {
				g.Expect(said).To(BeNil())
				return
			}
			g.Expect(said.Status).To(Equal(c.status))
			g.Expect(said.Message).To(HavePrefix(c.message))
			if c.over > 0 {
				g.Expect(b.last.Status.OverBudget[0]).To(Equal(v1beta1.OverBudget{
					User: "alice", Window: week, UsedHours: 500, MaxHours: 500, OnExceeded: v1beta1.ExceededDeny,
				}))
			}
			written := b.last.Status.DeepCopy()
			b.o.Budgets["ads"][0].ByUser = map[string]int64{"alice": 501 * admission.Hour}
			if b.step(); c.over > 0 {
				g.Expect(PaceOf(written, &b.last.Status)).To(Equal(statuspace.Calm), "figures alone")
			}
			written = b.last.Status.DeepCopy()
			b.o.Budgets["ads"][0] = Budget{Unread: true}
			g.Expect(b.step().last.Status.OverBudget).To(Equal(written.OverBudget), "a new operator reads the ledger")
			g.Expect(b.last.Status.Conditions).To(Equal(written.Conditions))
			spec.Caps = nil
			g.Expect(meta.FindStatusCondition(b.step().last.Status.Conditions, v1beta1.ConditionBudgetExceeded)).To(BeNil())
		})
	}
}

// A profile with budgets says that they begin anew with each pod of the operator, and another has no use for the news.
func TestVolatileLedgerIsOnProfilesWithBudgets(t *testing.T) {
	g := NewWithT(t)
	b := newBooking()
	said := func() *metav1.Condition {
		return meta.FindStatusCondition(b.step().last.Status.Conditions, v1beta1.ConditionLedgerVolatile)
	}
	b.o.LedgerVolatile = "The ledger is in an emptyDir."
	g.Expect(said()).To(BeNil(), "no budgets")
	spec := &b.o.Profiles[0].Object.Spec
	spec.Caps = &v1beta1.ProfileCaps{AcceleratorHours: []v1beta1.HourCap{{
		Window: metav1.Duration{Duration: time.Hour}, PerUser: 5, OnExceeded: v1beta1.ExceededDeny,
	}}}
	g.Expect(said()).To(HaveValue(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1beta1.ReasonLostWithPod),
		HaveField("Message", "The ledger is in an emptyDir. Budgets begin anew with each pod of the operator."))))
	b.o.LedgerVolatile = ""
	g.Expect(said()).To(BeNil(), "on a claim")
}
