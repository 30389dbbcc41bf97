package arbiter

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
)

// node adds a node of eight GPUs of a model.
func (s *fixture) node(model string) {
	s.objects = append(s.objects, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: model, Labels: map[string]string{"nvidia.com/gpu.product": model}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "pods": resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	})
}

// judge is the verdict of job ctr.
func (s *fixture) judge() capacity.Verdict {
	s.t.Helper()
	a := s.arbiter()
	_, err := a.evaluate(s.t.Context(), now)
	NewWithT(s.t).Expect(err).NotTo(HaveOccurred())
	return a.VerdictFor(key("ctr"))
}

func TestModelOnWhichTheCoreFits(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.node("H100")
	job := s.job("ctr", 4, 0)
	job.Spec.Accelerator = &v1beta1.Accelerator{Models: []string{"A100", "H100"}}
	job.Status.Attempt.Model = "A100"
	v := s.judge()
	g.Expect(v.Answer.Largest).To(BeZero(), "it is judged with the model that its pods wait for")
	g.Expect(v.Model).To(Equal("H100"))

	job.Status.Members = []v1beta1.Member{{Index: 0, UID: "u"}}
	g.Expect(s.judge().Model).To(Equal("A100"), "the attempt has run")
	job.Status.Members, job.Status.Attempt.Model = nil, "H100"
	v = s.judge()
	g.Expect(v.Answer.Fits).To(BeTrue())
	g.Expect(v.Model).To(Equal("H100"))
	job.Spec.Accelerator.Mixing, job.Status.Attempt.Model = v1beta1.MixingAllowed, ""
	g.Expect(s.judge().Model).To(BeEmpty())
}

func TestMasterIsJudgedByItsOwnShape(t *testing.T) {
	for bound, want := range map[int32]capacity.Answer{
		// Worker 0 asks for six of the eight GPUs of the node, the other for one.
		0: {Fits: true, Largest: 3},
		1: {Fits: true, Largest: 2},
	} {
		g := NewWithT(t)
		s := newFixture(t)
		job := s.job("ctr", 2, 0)
		six := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("6")}
		job.Spec.Master = &v1beta1.Master{Resources: &corev1.ResourceRequirements{Limits: six, Requests: six}}
		s.bind(job, bound)
		answer := s.judge().Answer
		g.Expect(answer.Fits).To(Equal(want.Fits), "%d bound", bound)
		g.Expect(answer.Largest).To(Equal(want.Largest), "%d bound", bound)
	}
}

func TestRolesAreJudgedByTheirOwnShapes(t *testing.T) {
	six := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("6")}
	own := v1beta1.Master{Resources: &corev1.ResourceRequirements{Limits: six, Requests: six}}
	elsewhere := v1beta1.Master{NodeSelector: map[string]string{"kind": "cpu"}}
	for name, c := range map[string]struct {
		role    v1beta1.JobRole
		fits    bool
		largest int32
	}{
		"of the eight GPUs each takes one": {v1beta1.JobRole{Name: "ps", Replicas: 2}, true, 8},
		"one asks for six":                 {v1beta1.JobRole{Name: "ps", Replicas: 1, Master: own}, true, 3},
		"two ask for six each":             {v1beta1.JobRole{Name: "ps", Replicas: 2, Master: own}, false, 0},
		"one that leads asks for six":      {v1beta1.JobRole{Name: "ps", Replicas: 1, Lead: true, Master: own}, true, 3},
		"one asks for a node not there":    {v1beta1.JobRole{Name: "ps", Replicas: 1, Master: elsewhere}, false, 0},
	} {
		for _, bare := range []bool{false, true} { // pods that wait, and pods that have yet to be created
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				s := newFixture(t)
				job := s.job("ctr", 3, 0)
				job.Spec.Roles, job.Spec.MinReplicas, job.Status.Attempt.MinReplicas = []v1beta1.JobRole{c.role}, 3, 3
				if bare {
					s.objects = slices.DeleteFunc(s.objects,
						func(o client.Object) bool { return o.GetName() == "ctr" && o != client.Object(job) })
					s.bare, job.Status.Attempt.StartTime = map[string]bool{"ctr": true}, metav1.NewTime(now)
				}
				v := s.judge()
				g.Expect(v.Waiting).To(Equal(int32(1)), "it claims room")
				g.Expect(v.Answer.Fits).To(Equal(c.fits))
				if c.fits {
					g.Expect(v.Answer.Largest).To(Equal(c.largest))
				}
			})
		}
	}
}

// Volcano places worker 0 before the servers, though it is like the others.
func TestRolesMayBePlacedAfterAWorker(t *testing.T) {
	for name, c := range map[string]struct {
		lead     bool
		placed   map[int32]bool
		anyOrder bool
	}{
		"worker 0 before the servers": {false, nil, true},
		"worker 0 has its place":      {false, map[int32]bool{0: true}, false},
		"one leads":                   {true, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			job := s.job("ctr", 4, 0)
			job.Spec.Roles = []v1beta1.JobRole{{Name: "ps", Replicas: 1, Lead: c.lead}}
			a := s.arbiter()
			m, done, err := a.mirrored(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			defer done()
			_, apart, anyOrder := a.newCollector(m, now).shapesOf(job, "", 3, c.placed)
			g.Expect(apart).To(HaveLen(1))
			g.Expect(anyOrder).To(Equal(c.anyOrder))
		})
	}
}

// An evaluator that has ended waits for nothing: what is missing is the worker that was lost.
func TestCompletedRolesClaimNoRoom(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	job := s.job("ctr", 3, 0)
	elsewhere := v1beta1.Master{NodeSelector: map[string]string{"kind": "cpu"}}
	job.Spec.Roles = []v1beta1.JobRole{{Name: "evaluator", Replicas: 1, Master: elsewhere}}
	job.Spec.MinReplicas, job.Status.Attempt.MinReplicas = 3, 3
	job.Status.Members = []v1beta1.Member{{Index: 0, UID: "u"}, {Index: 1, State: v1beta1.MemberCompleted}}
	s.bind(job, 1)
	s.bare, job.Status.Attempt.StartTime = map[string]bool{"ctr": true}, metav1.NewTime(now)
	v := s.judge()
	g.Expect(v.Waiting).To(Equal(int32(1)), "it claims room")
	g.Expect(v.Answer.Fits).To(BeTrue(), "for a worker, of which the node has room for seven")
}

func TestLostMasterWaitsAlone(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	job := s.job("ctr", 2, 2)
	nine := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("9")}
	job.Spec.Master = &v1beta1.Master{Resources: &corev1.ResourceRequirements{Limits: nine, Requests: nine}}
	for _, o := range s.objects {
		if pod, ok := o.(*corev1.Pod); ok && pod.Labels[v1beta1.LabelWorkerIndex] == "0" {
			pod.Spec.NodeName, pod.Spec.Containers[0].Resources = "", *job.Spec.Master.Resources
		}
	}
	v := s.judge()
	g.Expect(v.Waiting).To(Equal(int32(1)))
	g.Expect(v.Answer.Short).To(Equal(capacity.Amounts{"nvidia.com/gpu": 2}), "9 of which 7 are free")
}
