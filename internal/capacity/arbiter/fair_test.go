package arbiter

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

func TestSurplusOfOneTeamLeavesForThatOfAnother(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *fixture, holder, waiting *v1beta1.ElasticTrainingJob)
		leave  int
	}{
		"up to its share": {func(*fixture, *v1beta1.ElasticTrainingJob, *v1beta1.ElasticTrainingJob) {}, 2},
		"not if it leaves by the scheduler alone": {func(_ *fixture, holder, _ *v1beta1.ElasticTrainingJob) {
			holder.Spec.Elasticity.Shrink.Initiator = v1beta1.ShrinkByScheduler
		}, 0},
		"not while it cools down": {func(_ *fixture, holder, _ *v1beta1.ElasticTrainingJob) {
			last := metav1.NewTime(now.Add(-time.Second))
			holder.Status.Elasticity = &v1beta1.ElasticityStatus{LastEvictionTime: &last}
		}, 0},
		"not where the profile does not want it": {func(s *fixture, _, _ *v1beta1.ElasticTrainingJob) {
			for _, o := range s.objects {
				if p, ok := o.(*v1beta1.ResourceQuotaProfile); ok && p.Name == "search" {
					p.Spec.Queue.SurplusSharing = v1beta1.SurplusExcluded
				}
			}
		}, 0},
		"not for what waits only now": {func(s *fixture, _, _ *v1beta1.ElasticTrainingJob) {
			for _, o := range s.objects {
				if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName == "" {
					p.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
				}
			}
		}, 0},
		"a whole step": {func(_ *fixture, holder, _ *v1beta1.ElasticTrainingJob) { holder.Spec.Elasticity.Step = 2 }, 2},
		"not more than is beyond its share": {func(_ *fixture, holder, _ *v1beta1.ElasticTrainingJob) {
			holder.Spec.Elasticity.Step = 4
		}, 0},
		"not a step for fewer workers than it has": {func(s *fixture, holder, _ *v1beta1.ElasticTrainingJob) {
			holder.Spec.Elasticity.Step = 2
			s.objects = slices.DeleteFunc(s.objects, func(o client.Object) bool {
				return o.GetName() > "waiting-worker-2" && o.GetName() < "waiting-worker-9"
			})
		}, 0},
		"for a whole step": {func(_ *fixture, _, waiting *v1beta1.ElasticTrainingJob) { waiting.Spec.Elasticity.Step = 2 }, 2},
		"not for less than a step": {func(_ *fixture, _, waiting *v1beta1.ElasticTrainingJob) {
			waiting.Spec.Elasticity.Step = 5
		}, 0},
		"not for a step beyond the share": {func(_ *fixture, _, waiting *v1beta1.ElasticTrainingJob) {
			waiting.Spec.Elasticity.Step = 3
		}, 0},
		"not while a gang of its queue waits": {func(s *fixture, _, _ *v1beta1.ElasticTrainingJob) {
			s.jobIn("search", "other", 4, 0)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.served = true
			for _, team := range []string{"ads", "search"} {
				share := gang.Share{
					Name: team, Deserved: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}, Reclaimable: true,
				}
				s.objects = append(s.objects, share.NewQueue(), &v1beta1.ResourceQuotaProfile{
					ObjectMeta: metav1.ObjectMeta{Name: team},
					Status:     v1beta1.ResourceQuotaProfileStatus{Queue: team},
				})
			}
			holder, waiting := s.jobIn("ads", "holder", 8, 6), s.jobIn("search", "waiting", 6, 2)
			for i := range int32(4) {
				s.pend(waiting, 2+i)
			}
			c.change(s, holder, waiting)
			a := s.arbiter()
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			v := a.VerdictFor(key("holder"))
			g.Expect(v.GiveUp).To(HaveLen(c.leave))
			if c.leave > 0 {
				g.Expect(v.GiveUp).To(ConsistOf(types.UID("holder-worker-5"), types.UID("holder-worker-4")))
				g.Expect(v.To).To(Equal(key("waiting")))
			}
		})
	}
}

// Claims that can never be served, more than are judged at a time, do not keep those of others from being judged.
func TestNoClaimsKeepOthersFromBeingJudged(t *testing.T) {
	for name, c := range map[string]struct {
		held     int32 // by the job of the other team, which has one more than its share
		hopeless func(s *fixture, holder *v1beta1.ElasticTrainingJob)
	}{
		"of a queue that has its share": {6, func(s *fixture, holder *v1beta1.ElasticTrainingJob) {
			for i := range int32(2 * mostClaims) {
				s.pend(holder, 8+i)
			}
		}},
		"for nodes that do not exist": {4, func(s *fixture, _ *v1beta1.ElasticTrainingJob) {
			other := s.jobIn("search", "a-nowhere", 200, 2)
			other.Spec.Template.Spec.NodeSelector = map[string]string{"gpu": "none"}
			for i := range int32(2 * mostClaims) {
				s.pend(other, 2+i)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.served = true
			for team, gpus := range map[string]int32{"ads": c.held - 1, "search": 5} {
				share := gang.Share{
					Name: team, Reclaimable: true,
					Deserved: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)},
				}
				s.objects = append(s.objects, share.NewQueue(), &v1beta1.ResourceQuotaProfile{
					ObjectMeta: metav1.ObjectMeta{Name: team},
					Status:     v1beta1.ResourceQuotaProfileStatus{Queue: team},
				})
			}
			holder, waiting := s.jobIn("ads", "holder", 200, c.held), s.jobIn("search", "waiting", 6, 2)
			s.pend(waiting, 2)
			c.hopeless(s, holder)
			a := s.arbiter()
			for at := now; ; at = at.Add(interval) {
				again, err := a.evaluate(t.Context(), at)
				g.Expect(err).NotTo(HaveOccurred())
				if len(a.VerdictFor(key("holder")).GiveUp) > 0 {
					break
				}
				g.Expect(again).To(Equal(interval), "who was not judged yet is judged next")
				g.Expect(at).To(BeTemporally("<", now.Add(5*interval)))
			}
			g.Expect(a.VerdictFor(key("holder")).To).To(Equal(key("waiting")))
			for i := range 3 {
				_, err := a.evaluate(t.Context(), now.Add(10*interval+time.Duration(i)*interval))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(a.VerdictFor(key("holder")).GiveUp).NotTo(BeEmpty(), "who was told to leave is told so until it has")
			}
		})
	}
}

// pend adds a surplus worker that has waited for a minute.
func (s *fixture) pend(j *v1beta1.ElasticTrainingJob, i int32) {
	b := trainingpod.Blueprint{Job: j, Attempt: j.Status.Attempt, Tier: config.DefaultTiers()[0], Queue: j.Status.Queue}
	pod := b.NewPod(i)
	pod.UID, pod.CreationTimestamp = types.UID(pod.Name), metav1.NewTime(now.Add(-time.Minute))
	s.objects = append(s.objects, pod)
}
