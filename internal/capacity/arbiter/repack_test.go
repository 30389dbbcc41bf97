package arbiter

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// inPieces is a gang of queue ads, of two workers of six GPUs each, that waits: node n has five free, beside a core and a surplus
// worker of a job of search within its share, and node m seven.
func inPieces(t *testing.T, repacking v1beta1.Repacking) (s *fixture, holder *v1beta1.ElasticTrainingJob) {
	t.Helper()
	s = newFixture(t)
	s.served = true
	for _, team := range []string{"ads", "search"} {
		share := gang.Share{
			Name: team, Deserved: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}, Reclaimable: true,
		}
		p := &v1beta1.ResourceQuotaProfile{
			ObjectMeta: metav1.ObjectMeta{Name: team}, Status: v1beta1.ResourceQuotaProfileStatus{Queue: team},
		}
		if team == "search" {
			p.Spec.Queue.Repacking = repacking
		}
		s.objects = append(s.objects, share.NewQueue(), p)
	}
	for _, o := range s.objects {
		if n, ok := o.(*corev1.Node); ok {
			second := n.DeepCopy()
			second.Name = "m"
			s.objects = append(s.objects, second, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "other", UID: "other"},
				Spec: corev1.PodSpec{NodeName: "m", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
				}}}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning},
			})
			break
		}
	}
	holder = s.jobIn("search", "holder", 3, 3)
	holder.Status.RunningSince = &metav1.Time{Time: now.Add(-time.Hour)}
	six := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("6")}
	waiting := s.jobIn("ads", "waiting", 2, 0)
	waiting.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: six, Requests: six}
	return s, holder
}

func TestSurplusMovesOnlyWhereItsProfileAllowsIt(t *testing.T) {
	for name, c := range map[string]struct {
		repacking  v1beta1.Repacking
		change     func(s *fixture, holder *v1beta1.ElasticTrainingJob)
		told, acts bool
	}{
		"advice alone by default":  {v1beta1.RepackingAdvise, func(*fixture, *v1beta1.ElasticTrainingJob) {}, true, false},
		"a profile that allows it": {v1beta1.RepackingMove, func(*fixture, *v1beta1.ElasticTrainingJob) {}, true, true},
		"not before its cooldown": {v1beta1.RepackingMove, func(_ *fixture, j *v1beta1.ElasticTrainingJob) {
			j.Status.Elasticity = &v1beta1.ElasticityStatus{LastEvictionTime: &metav1.Time{Time: now.Add(-time.Second)}}
		}, false, false},
		"not while its growth pauses": {v1beta1.RepackingMove, func(_ *fixture, j *v1beta1.ElasticTrainingJob) {
			j.Status.Elasticity = &v1beta1.ElasticityStatus{NextGrowthTime: &metav1.Time{Time: now.Add(time.Second)}}
		}, false, false},
		"after both": {v1beta1.RepackingMove, func(_ *fixture, j *v1beta1.ElasticTrainingJob) {
			j.Status.Elasticity = &v1beta1.ElasticityStatus{
				LastEvictionTime: &metav1.Time{Time: now.Add(-time.Hour)}, NextGrowthTime: &metav1.Time{Time: now.Add(-time.Hour)},
			}
		}, true, true},
		"not a job that does not run": {v1beta1.RepackingMove, func(_ *fixture, j *v1beta1.ElasticTrainingJob) {
			j.Status.RunningSince = nil
		}, false, false},
		"advice alone for a job that Volcano shrinks": {v1beta1.RepackingMove, func(_ *fixture, j *v1beta1.ElasticTrainingJob) {
			j.Spec.Elasticity.Shrink.Initiator = v1beta1.ShrinkByScheduler
		}, true, false},
		"not a core": {v1beta1.RepackingMove, func(_ *fixture, j *v1beta1.ElasticTrainingJob) {
			j.Status.Attempt.MinReplicas = 3
		}, false, false},
		"not for a gang that has not starved": {v1beta1.RepackingMove, func(s *fixture, _ *v1beta1.ElasticTrainingJob) {
			for _, o := range s.objects {
				if j, ok := o.(*v1beta1.ElasticTrainingJob); ok && j.Name == "waiting" {
					*j.Spec.Elasticity.Shrink.StarvationSeconds = 7200
				}
			}
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, holder := inPieces(t, c.repacking)
			c.change(s, holder)
			a := s.evaluated()
			if c.acts {
				g.Expect(a.VerdictFor(key("holder"))).To(And(
					HaveField("GiveUp", ConsistOf(types.UID("holder-worker-2"))), HaveField("To", key("waiting"))))
			} else {
				g.Expect(a.VerdictFor(key("holder")).GiveUp).To(BeEmpty())
			}
			if c.told {
				g.Expect(a.VerdictFor(key("waiting")).Moves).To(ConsistOf(capacity.Holder{Job: key("holder"), Workers: 1}))
			} else {
				g.Expect(a.VerdictFor(key("waiting")).Moves).To(BeEmpty())
			}
		})
	}
}

func TestPiecesAreMeasuredTwiceAMinute(t *testing.T) {
	g := NewWithT(t)
	s, _ := inPieces(t, v1beta1.RepackingAdvise)
	a := s.evaluated()
	found := a.ReadPieces()
	g.Expect(found.Moves).To(Equal(1))
	g.Expect(found.Now).To(ConsistOf(And(HaveField("Queue", "ads"), HaveField("Free", 12.0), HaveField("Unusable", 1.0))))
	g.Expect(found.Moved).To(ConsistOf(And(HaveField("Queue", "ads"), HaveField("Free", 12.0), HaveField("Unusable", 0.0))))
	a.pieces.Now = nil
	_, err := a.evaluate(t.Context(), now.Add(repackInterval-time.Second))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.ReadPieces().Now).To(BeNil(), "it was kept")
	g.Expect(a.VerdictFor(key("waiting")).Moves).NotTo(BeEmpty(), "and so is the advice")
	_, err = a.evaluate(t.Context(), now.Add(repackInterval))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.ReadPieces().Now).NotTo(BeEmpty())

	idle := newFixture(t)
	idle.job("runs", 2, 2)
	g.Expect(idle.evaluated().ReadPieces()).To(BeZero(), "nobody waits")
}
