package mergejob

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
)

func TestWhatMayKeepAGangFromItsPlaceIsSeen(t *testing.T) {
	g := NewWithT(t)
	started := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	now := started
	c := newChanges(func() time.Time { return now })
	g.Expect(c.forPool("p")).To(Equal(merging.Changes{Started: started}))

	pod := func(node, scheduler string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node, SchedulerName: scheduler}}
	}
	now = now.Add(time.Second)
	c.seePod(pod("", "default-scheduler"), pod("n", "default-scheduler"))
	c.seePod(pod("n", "volcano"), pod("n", "volcano"))
	c.seePod(pod("", "volcano"), pod("", "volcano"))
	g.Expect(c.forPool("p").Placed).To(BeZero(), "none of them was placed by Volcano")
	c.seePod(pod("", "volcano"), pod("n", "volcano"))
	g.Expect(c.forPool("p").Placed).To(Equal(now))

	now = now.Add(time.Second)
	c.seeNode()
	c.seeQueue("p")
	c.seeClaim("ads")
	g.Expect(c.forPool("p")).To(Equal(merging.Changes{Started: started, Nodes: now, Queue: now, Placed: started.Add(time.Second)}))
	g.Expect(c.forPool("other").Queue).To(BeZero())
	g.Expect(c.claimsOf("ads")).To(Equal(now))
	g.Expect(c.claimsOf("other")).To(BeZero())
}

func TestChangesWakeThePoolsInWhichSomebodyIsSetAside(t *testing.T) {
	g := NewWithT(t)
	aside, other := mergeOf("ads", "a", "1"), mergeOf("ads", "b", "2")
	aside.Status.Reason, other.Spec.Pool = v1beta1.ReasonNotPlaced, "another"
	c := newLeftovers(t)
	c.add(aside, other)
	c.cached()
	r := c.r
	r.changes = newChanges(time.Now)
	g.Expect(r.noteNode(t.Context(), &corev1.Node{})).To(Equal([]string{testPool}))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ads"}}
	g.Expect(r.noteClaim(t.Context(), claim)).To(Equal([]string{testPool}))
	claim.Namespace = "quiet"
	g.Expect(r.noteClaim(t.Context(), claim)).To(BeEmpty())
}

func TestWhatChangesOfANodeAndAClaim(t *testing.T) {
	g := NewWithT(t)
	node := &corev1.Node{}
	beats := node.DeepCopy()
	beats.ResourceVersion = "2"
	beats.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}}
	g.Expect(readNode(beats)).To(Equal(readNode(node)), "a heartbeat")
	full := node.DeepCopy()
	full.Spec.Unschedulable = true
	g.Expect(readNode(full)).NotTo(Equal(readNode(node)))
	claim := &corev1.PersistentVolumeClaim{}
	bound := claim.DeepCopy()
	bound.Status.Phase = corev1.ClaimBound
	g.Expect(readClaim(bound)).NotTo(Equal(readClaim(claim)))
}
