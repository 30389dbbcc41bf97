package arbiter

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
