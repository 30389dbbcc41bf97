package arbiter

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
)

// beyondModel has pods ask for something that the model does not cover.
func beyondModel(spec *corev1.PodSpec) {
	made := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "x", VolumeSource: made})
}

func TestWhoIsToldHowFarItMayGrow(t *testing.T) {
	grows := func(mode v1beta1.GrowthMode, step int32) func(*v1beta1.ElasticTrainingJob) {
		return func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Elasticity.Growth.Mode, job.Spec.Elasticity.Step = mode, step
		}
	}
	for name, c := range map[string]struct {
		change  func(*v1beta1.ElasticTrainingJob)
		verdict *capacity.Verdict
	}{
		"Always":               {grows(v1beta1.GrowthAlways, 1), nil},
		"Always, in steps":     {grows(v1beta1.GrowthAlways, 4), &capacity.Verdict{SurplusLimit: 4, RoomSince: now}},
		"OnlyIfFits":           {grows(v1beta1.GrowthOnlyIfFits, 1), &capacity.Verdict{SurplusLimit: 6, RoomSince: now}},
		"OnlyIfPays":           {grows(v1beta1.GrowthOnlyIfPays, 1), &capacity.Verdict{SurplusLimit: 6, RoomSince: now}},
		"OnlyIfPays, in steps": {grows(v1beta1.GrowthOnlyIfPays, 4), &capacity.Verdict{SurplusLimit: 4, RoomSince: now}},
		"in steps, and one has left for good": {func(job *v1beta1.ElasticTrainingJob) {
			grows(v1beta1.GrowthOnlyIfFits, 3)(job)
			job.Spec.MaxReplicas = 5
			job.Status.Members = []v1beta1.Member{{Index: 1}, {Index: 3, State: v1beta1.MemberCompleted}}
		}, &capacity.Verdict{}},
		"of a job whose second worker is no worker of its kind": {func(job *v1beta1.ElasticTrainingJob) {
			grows(v1beta1.GrowthOnlyIfFits, 1)(job)
			elsewhere := v1beta1.Master{NodeSelector: map[string]string{"kind": "cpu"}}
			job.Spec.Roles = []v1beta1.JobRole{{Name: "ps", Replicas: 1, Master: elsewhere}}
		}, &capacity.Verdict{SurplusLimit: 6, RoomSince: now}},
		"not judged": {func(job *v1beta1.ElasticTrainingJob) {
			beyondModel(&job.Spec.Template.Spec)
			grows(v1beta1.GrowthOnlyIfPays, 1)(job)
		}, &capacity.Verdict{Unjudged: true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			c.change(s.job("ctr", 20, 2))
			a := s.arbiter()
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			verdict, told := a.jobs.verdicts[key("ctr")]
			g.Expect(told).To(Equal(c.verdict != nil))
			if told {
				g.Expect(verdict).To(Equal(*c.verdict))
			}
		})
	}
}

func TestStepsOnOneNodeAreToldWhereTheyMayBe(t *testing.T) {
	// verdict is that of a job of steps of 3, some of whose surplus is on the node.
	verdict := func(g *WithT, bound int32, others func(s *fixture)) capacity.Verdict {
		s := newFixture(t)
		job := s.job("ctr", 8, bound)
		job.Spec.Elasticity.Growth.Mode, job.Spec.Elasticity.Step = v1beta1.GrowthOnlyIfFits, 3
		job.Spec.Elasticity.StepWithin = &v1beta1.StepWithin{Level: v1beta1.StepOnNode}
		for i, p := range s.ofJob("ctr")[2:] {
			p.Annotations[v1beta1.AnnotationStepDomain] = []string{"n", "gone"}[i/3]
		}
		others(s)
		a := s.arbiter()
		_, err := a.evaluate(t.Context(), now)
		g.Expect(err).NotTo(HaveOccurred())
		return a.VerdictFor(key("ctr"))
	}
	t.Run("where there is room", func(t *testing.T) {
		g := NewWithT(t)
		grows := verdict(g, 5, func(*fixture) {})
		g.Expect(grows.StepDomains).To(Equal([]capacity.StepDomain{{Name: "n", Workers: 6}}))
		g.Expect(grows.SurplusLimit).To(Equal(int32(6)))
	})
	t.Run("which leave as a whole", func(t *testing.T) {
		g := NewWithT(t)
		leaves := verdict(g, 8, func(s *fixture) { waitingSince(s.job("ranker", 4, 0), now.Add(-time.Hour)) })
		g.Expect(leaves.GiveUp).To(ConsistOf(types.UID("ctr-worker-7"), types.UID("ctr-worker-6"), types.UID("ctr-worker-5")))
	})
}

func TestRoomIsFollowedFromEvaluationToEvaluation(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	job := s.job("ctr", 20, 2)
	job.Spec.Elasticity.Growth.Mode = v1beta1.GrowthOnlyIfPays
	a := s.arbiter()
	for _, at := range []time.Time{now, now.Add(time.Minute)} {
		_, err := a.evaluate(t.Context(), at)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a.VerdictFor(key("ctr")).RoomSince).To(Equal(now))
	}
	b := newBoard(soonPart)
	b.replace(verdicts{key("ctr"): {RoomSince: now}}, now)
	g.Expect(b.replace(verdicts{key("ctr"): {RoomSince: now.Add(time.Second)}}, now)).To(ConsistOf(key("ctr")), "it must plan anew")
}

func TestAJobIsWokenWhenItsWorkersAreNotJudgedAnyMore(t *testing.T) {
	g := NewWithT(t)
	b := newBoard(soonPart)
	b.replace(verdicts{key("ctr"): {}}, now)
	g.Expect(b.replace(verdicts{key("ctr"): {Unjudged: true}}, now.Add(time.Second))).To(ConsistOf(key("ctr")))
}

func TestLimitsOfAProfileAllowWhatAJobThatIsNotJudgedWouldCreate(t *testing.T) {
	for mode, surplus := range map[v1beta1.GrowthMode]int32{v1beta1.GrowthOnlyIfPays: 4, v1beta1.GrowthOnlyIfFits: 0} {
		t.Run(string(mode), func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.capped(6, "")
			job := s.job("ctr", 8, 2)
			s.trains(job, time.Minute)
			job.Spec.Owner, job.Spec.Elasticity.Growth.Mode = "alice", mode
			beyondModel(&job.Spec.Template.Spec)
			a := s.arbiter()
			for _, at := range []time.Time{now, now.Add(time.Second)} {
				_, err := a.evaluate(t.Context(), at)
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(a.TurnOf(key("ctr")).Surplus).To(Equal(surplus))
		})
	}
}
