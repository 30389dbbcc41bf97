package resourcequotaprofile

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota"
)

var now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// Where PodGroups are so many that reading them takes long, they are read more rarely.
func TestManyChangesAreCollectedForLonger(t *testing.T) {
	g, r := NewWithT(t), &Reconciler{}
	g.Expect(r.gather()).To(Equal(time.Second))
	for took, pause := range map[time.Duration]time.Duration{
		time.Millisecond: time.Second, 500 * time.Millisecond: 9500 * time.Millisecond, time.Minute: 30 * time.Second,
	} {
		r.took.Store(int64(took))
		g.Expect(r.gather()).To(Equal(pause), "after %s", took)
	}
}

func TestRefusalIsRememberedForItsGeneration(t *testing.T) {
	g := NewWithT(t)
	m, p := newMemory(), &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads", UID: "1", Generation: 1}}
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
	m, p := newMemory(), &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads", UID: "1"}}
	invalid := fmt.Errorf("create pod: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", nil))
	m.notePlaceholders(p, "launch", apierrors.NewServerTimeout(schema.GroupResource{Resource: "pods"}, "create", 1))
	g.Expect(m.refusalOf(p, "launch")).To(BeNil(), "another try may do")
	m.notePlaceholders(p, "launch", invalid)
	g.Expect(m.refusalOf(p, "launch")).To(HaveValue(Equal(quota.Refusal{
		Reason: v1beta1.ReasonRejected, Said: invalid.Error(),
	})))
	g.Expect(m.refusalOf(p, "other")).To(BeNil())
	m.notePlaceholders(p, "launch", nil)
	g.Expect(m.refusalOf(p, "launch")).To(BeNil())
}

func TestHowJobsStand(t *testing.T) {
	g := NewWithT(t)
	training := func(phase v1beta1.JobPhase, reason string) standing {
		return standingOfTraining(&v1beta1.ElasticTrainingJob{
			Status: v1beta1.ElasticTrainingJobStatus{Phase: phase, Reason: reason},
		})
	}
	g.Expect(training(v1beta1.PhaseRunning, v1beta1.ReasonTraining)).To(Equal(runs))
	g.Expect(training(v1beta1.PhasePending, v1beta1.ReasonQueued)).To(Equal(waits))
	g.Expect(training(v1beta1.PhasePending, v1beta1.ReasonAwaitingApproval)).To(Equal(awaitsApproval))
	g.Expect(training(v1beta1.PhaseSuspended, v1beta1.ReasonSuspended)).To(BeEmpty())
	merge := func(phase v1beta1.MergePhase, reason string) standing {
		return standingOfMerge(&v1beta1.MergeJob{Status: v1beta1.MergeJobStatus{Phase: phase, Reason: reason}})
	}
	g.Expect(merge(v1beta1.MergeStarting, v1beta1.ReasonStarting)).To(Equal(runs))
	g.Expect(merge(v1beta1.MergeQueued, v1beta1.ReasonInLine)).To(Equal(waits))
	g.Expect(merge(v1beta1.MergeWaiting, v1beta1.ReasonAwaitingApproval)).To(Equal(awaitsApproval))
	g.Expect(merge(v1beta1.MergeWaiting, v1beta1.ReasonNotDue)).To(BeEmpty())
}
