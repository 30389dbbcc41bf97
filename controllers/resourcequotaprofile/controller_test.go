package resourcequotaprofile

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/quota"
)

var now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func TestRefusalIsRememberedForItsGeneration(t *testing.T) {
	g := NewWithT(t)
	m, p := newMemory(), &v1alpha1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads", UID: "1", Generation: 1}}
	said := func() string {
		said, _ := m.lastRefusal(p)
		return said
	}
	g.Expect(said()).To(BeEmpty())
	g.Expect(m.noteRefusal(p, "no", now)).To(BeTrue())
	g.Expect(said()).To(Equal("no"))
	g.Expect(m.noteRefusal(p, "no", now.Add(30*time.Second))).To(BeFalse(), "that is known")
	_, at := m.lastRefusal(p)
	g.Expect(at).To(Equal(now.Add(30*time.Second)), "it counts from the last try")
	p.Generation = 2
	g.Expect(said()).To(BeEmpty(), "of another spec nothing was said")
	p.Generation = 1
	m.forgetRefusal(p)
	g.Expect(said()).To(BeEmpty())
	g.Expect(m.noteRefusal(p, "no", now)).To(BeTrue())
	m.forgetGone(nil)
	g.Expect(said()).To(BeEmpty(), "one that is gone is forgotten")
}

func TestRefusedRoomsAreRemembered(t *testing.T) {
	g := NewWithT(t)
	m, p := newMemory(), &v1alpha1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads", UID: "1"}}
	invalid := fmt.Errorf("create pod: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", nil))
	m.notePlaceholders(p, "launch", apierrors.NewServerTimeout(schema.GroupResource{Resource: "pods"}, "create", 1))
	g.Expect(m.refusalOf(p, "launch")).To(BeNil(), "another try may do")
	m.notePlaceholders(p, "launch", invalid)
	g.Expect(m.refusalOf(p, "launch")).To(HaveValue(Equal(quota.Refusal{
		Reason: v1alpha1.ReasonRejected, Said: invalid.Error(),
	})))
	g.Expect(m.refusalOf(p, "other")).To(BeNil())
	m.notePlaceholders(p, "launch", nil)
	g.Expect(m.refusalOf(p, "launch")).To(BeNil())
}

func TestHowJobsStand(t *testing.T) {
	g := NewWithT(t)
	training := func(phase v1alpha1.JobPhase, reason string) standing {
		return standingOfTraining(&v1alpha1.ElasticTrainingJob{
			Status: v1alpha1.ElasticTrainingJobStatus{Phase: phase, Reason: reason},
		})
	}
	g.Expect(training(v1alpha1.PhaseRunning, v1alpha1.ReasonTraining)).To(Equal(runs))
	g.Expect(training(v1alpha1.PhasePending, v1alpha1.ReasonQueued)).To(Equal(waits))
	g.Expect(training(v1alpha1.PhasePending, v1alpha1.ReasonAwaitingApproval)).To(Equal(awaitsApproval))
	g.Expect(training(v1alpha1.PhaseSuspended, v1alpha1.ReasonSuspended)).To(BeEmpty())
	merge := func(phase v1alpha1.MergePhase, reason string) standing {
		return standingOfMerge(&v1alpha1.MergeJob{Status: v1alpha1.MergeJobStatus{Phase: phase, Reason: reason}})
	}
	g.Expect(merge(v1alpha1.MergeStarting, v1alpha1.ReasonStarting)).To(Equal(runs))
	g.Expect(merge(v1alpha1.MergeQueued, v1alpha1.ReasonInLine)).To(Equal(waits))
	g.Expect(merge(v1alpha1.MergeWaiting, v1alpha1.ReasonAwaitingApproval)).To(Equal(awaitsApproval))
	g.Expect(merge(v1alpha1.MergeWaiting, v1alpha1.ReasonNotDue)).To(BeEmpty())
}
