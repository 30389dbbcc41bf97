package arbiter

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// trains has a job train since then, and report a checkpoint if it saved one.
func (s *fixture) trains(j *v1beta1.ElasticTrainingJob, since time.Duration, saved ...time.Duration) {
	j.Status.RunningSince = ptr.To(metav1.NewTime(now.Add(-since)))
	for _, ago := range saved {
		s.ofJob(j.Name)[0].Annotations[v1beta1.AnnotationCheckpointDone] = strconv.FormatInt(now.Add(-ago).Unix(), 10)
	}
}

func TestWhoLosesTheLeastWorkGivesWay(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *fixture, old, young *v1beta1.ElasticTrainingJob)
		leaves types.UID
	}{
		"the younger where neither reports": {func(s *fixture, old, young *v1beta1.ElasticTrainingJob) {
			s.trains(old, 2*time.Hour)
			s.trains(young, time.Hour)
		}, "young-worker-3"},
		"the older that has just saved": {func(s *fixture, old, young *v1beta1.ElasticTrainingJob) {
			s.trains(old, 2*time.Hour, time.Minute)
			s.trains(young, time.Hour)
		}, "old-worker-3"},
		"not one whose checkpoint is of the future": {func(s *fixture, old, young *v1beta1.ElasticTrainingJob) {
			s.trains(old, 2*time.Hour, -time.Hour)
			s.trains(young, time.Hour)
		}, "young-worker-3"},
		"not one whose checkpoint is of before its attempt": {func(s *fixture, old, young *v1beta1.ElasticTrainingJob) {
			s.trains(old, 2*time.Hour, 3*time.Hour)
			s.trains(young, time.Hour)
		}, "young-worker-3"},
		"the one with fewer devices": {func(s *fixture, old, young *v1beta1.ElasticTrainingJob) {
			s.trains(old, 2*time.Hour)
			s.trains(young, 90*time.Minute)
			for _, p := range s.ofJob("young")[:1] {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("3")}
			}
		}, "old-worker-3"},
		"one that does not train": {func(s *fixture, _, young *v1beta1.ElasticTrainingJob) {
			s.trains(young, time.Minute)
		}, "old-worker-3"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			old, young := s.job("old", 4, 4), s.job("young", 4, 4)
			old.CreationTimestamp = metav1.NewTime(now.Add(-3 * time.Hour))
			c.change(s, old, young)
			ranker := s.job("ranker", 4, 0)
			ranker.Spec.MinReplicas, ranker.Status.Attempt.MinReplicas = 1, 1
			waitingSince(ranker, now.Add(-time.Hour))
			a := s.arbiter()
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(append(a.VerdictFor(key("old")).GiveUp, a.VerdictFor(key("young")).GiveUp...)).To(ContainElement(c.leaves))
		})
	}
}

func TestWorkAtStakeCountsDevicesOfRunningWorkers(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.trains(s.job("ctr", 4, 4), 2*time.Hour, 10*time.Second)
	s.ofJob("ctr")[3].Status.Phase = corev1.PodPending
	for _, p := range s.ofJob("ctr")[1:] {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	}
	plain := s.job("plain", 2, 2)
	s.trains(plain, time.Minute)
	for _, p := range s.ofJob("plain") {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	}
	snapshot := s.arbiter().snapshotNow(t)
	g.Expect(snapshot.Running).To(ConsistOf(
		And(HaveField("Job", key("ctr")), HaveField("WorkAtStake", int64((1+2+2)*10))),
		And(HaveField("Job", key("plain")), HaveField("WorkAtStake", int64(2*60))),
	), "without devices each worker counts as one")
	for _, p := range snapshot.Pods {
		if p.Surplus != nil {
			g.Expect(p.Surplus.WorkAtStake).To(Equal(int64(50)))
		}
	}
}

// Between two evaluations others may save. Who was asked to leave for the surplus of another team stays asked.
func TestSurplusThatWasAskedStaysAsked(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.served = true
	for _, team := range []string{"ads", "search"} {
		share := gang.Share{Name: team, Deserved: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}, Reclaimable: true}
		s.objects = append(s.objects, share.NewQueue(), &v1beta1.ResourceQuotaProfile{
			ObjectMeta: metav1.ObjectMeta{Name: team}, Status: v1beta1.ResourceQuotaProfileStatus{Queue: team},
		})
	}
	node, _ := s.objects[0].(*corev1.Node)
	node.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("10")
	first, second, waiting := s.jobIn("ads", "first", 4, 4), s.jobIn("ads", "second", 4, 4), s.jobIn("search", "waiting", 6, 2)
	s.trains(first, time.Hour, time.Minute)
	s.trains(second, time.Hour, 2*time.Minute)
	s.pend(waiting, 2)
	a := s.arbiter()
	told := func(at time.Time) []types.UID {
		_, err := a.evaluate(t.Context(), at)
		g.Expect(err).NotTo(HaveOccurred())
		return append(a.VerdictFor(key("first")).GiveUp, a.VerdictFor(key("second")).GiveUp...)
	}
	g.Expect(told(now)).To(Equal([]types.UID{"first-worker-3"}))
	master := &corev1.Pod{}
	writer, _ := a.reader.(client.Client)
	g.Expect(a.reader.Get(t.Context(), key("second-worker-0"), master)).To(Succeed())
	master.Annotations[v1beta1.AnnotationCheckpointDone] = strconv.FormatInt(now.Add(time.Second).Unix(), 10)
	g.Expect(writer.Update(t.Context(), master)).To(Succeed())
	g.Expect(told(now.Add(2*time.Second))).To(Equal([]types.UID{"first-worker-3"}), "though the second has saved since")
}
