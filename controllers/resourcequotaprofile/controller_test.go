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
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/quota"
)

var now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func TestQueuesWaitForNodesThatComeBack(t *testing.T) {
	g := NewWithT(t)
	r := &Reconciler{pacer: kube.NewPacer()}
	decide := func(patient bool) *quota.Decision {
		return &quota.Decision{Patient: patient, Profiles: []quota.ProfileDecision{{Apply: &gang.Share{}}, {Create: &gang.Share{}}}}
	}
	d := decide(true)
	g.Expect(r.settle(d, now)).To(Equal(30 * time.Second))
	g.Expect(d.Profiles[0].Apply).To(BeNil())
	g.Expect(d.Profiles[1].Create).NotTo(BeNil(), "a new profile waits for nobody")
	g.Expect(r.settle(decide(true), now.Add(10*time.Second))).To(Equal(20*time.Second), "it counts from the first change")
	d = decide(true)
	g.Expect(r.settle(d, now.Add(30*time.Second))).To(BeZero())
	g.Expect(d.Profiles[0].Apply).NotTo(BeNil(), "it has stood long enough")
	g.Expect(r.settle(decide(true), now.Add(31*time.Second))).To(Equal(30*time.Second), "the next change counts anew")
	g.Expect(r.settle(&quota.Decision{Patient: true}, now.Add(40*time.Second))).To(BeZero())
	g.Expect(r.settle(decide(true), now.Add(50*time.Second))).To(Equal(30*time.Second), "the node came back, and another went")
	d = decide(false)
	g.Expect(r.settle(d, now.Add(51*time.Second))).To(BeZero())
	g.Expect(d.Profiles[0].Apply).NotTo(BeNil(), "somebody changed a profile")
}

func TestRefusedQueueIsLeftAloneForAWhile(t *testing.T) {
	g := NewWithT(t)
	m, p := newMemory(), &v1alpha1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads", UID: "1", Generation: 1}}
	g.Expect(m.wait(p, now)).To(BeZero())
	g.Expect(m.refused(p, "no", now)).To(BeTrue())
	g.Expect(m.refusal(p)).To(Equal("no"))
	g.Expect(m.wait(p, now.Add(10*time.Second))).To(Equal(20 * time.Second))
	g.Expect(m.refused(p, "no", now.Add(30*time.Second))).To(BeFalse(), "that is known")
	g.Expect(m.wait(p, now.Add(30*time.Second))).To(Equal(30 * time.Second))
	p.Generation = 2
	g.Expect(m.refusal(p)).To(BeEmpty(), "of another spec nothing was said")
	g.Expect(m.wait(p, now.Add(31*time.Second))).To(BeZero())
	p.Generation = 1
	m.written(p)
	g.Expect(m.refusal(p)).To(BeEmpty())
	g.Expect(m.refused(p, "no", now)).To(BeTrue())
	m.keep(nil)
	g.Expect(m.refusal(p)).To(BeEmpty(), "one that is gone is forgotten")
}

func TestRefusedRoomsAreRemembered(t *testing.T) {
	g := NewWithT(t)
	m, p := newMemory(), &v1alpha1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads", UID: "1"}}
	invalid := fmt.Errorf("create pod: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", nil))
	m.furnished(p, "launch", apierrors.NewServerTimeout(schema.GroupResource{Resource: "pods"}, "create", 1))
	g.Expect(m.refusedRoom(p, "launch")).To(BeNil(), "another try may do")
	m.furnished(p, "launch", invalid)
	g.Expect(m.refusedRoom(p, "launch")).To(HaveValue(Equal(quota.Refusal{
		Reason: v1alpha1.ReasonRejected, Said: invalid.Error(),
	})))
	g.Expect(m.refusedRoom(p, "other")).To(BeNil())
	m.furnished(p, "launch", nil)
	g.Expect(m.refusedRoom(p, "launch")).To(BeNil())
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
