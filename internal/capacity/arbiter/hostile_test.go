package arbiter

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/weight"
)

// Whatever labels, annotations and owners somebody writes on pods of another namespace, they are nobody's workers.
func TestPodsForgedInOtherNamespacesClaimNothing(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	j := s.claimant()
	s.hold(j, func(*corev1.Pod) {})
	forged := 0
	for i, o := range s.objects {
		if pod, is := o.(*corev1.Pod); is && pod.Labels[v1beta1.LabelJob] == j.Name {
			other := pod.DeepCopy()
			other.Namespace = "evil"
			s.objects[i] = other
			forged++
		}
	}
	g.Expect(forged).To(Equal(2))
	a := s.arbiter()
	_, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("gang")).Waiting).To(BeZero())
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(BeEmpty(), "nobody leaves for pods that another namespace forged")
	g.Expect(a.VerdictFor(key("ctr")).Preempt).To(BeNil())
}

// hostileTerms are as many terms of node affinity as a template may have, unlike those of every other number.
func hostileTerms(number int) *corev1.Affinity {
	selector := &corev1.NodeSelector{}
	for i := range 8 {
		term := corev1.NodeSelectorTerm{}
		for j := range 16 {
			values := make([]string, 44)
			for k := range values {
				values[k] = fmt.Sprintf("v%d-%d", number, k)
			}
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: fmt.Sprintf("feature.node.kubernetes.io/cpu-feature-%02d", i+j), Operator: corev1.NodeSelectorOpNotIn, Values: values,
			})
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
}

// evaluationTime is what of a processor the first and a later evaluation take while 10 jobs wait on 1,000 nodes.
func evaluationTime(t *testing.T, change func(spec *corev1.PodSpec, number int)) (first, later time.Duration) {
	t.Helper()
	g := NewWithT(t)
	s := newSceneOf(1000, 2000, 10, false)
	number := 0
	for _, o := range slices.Concat(s.lists[reflect.TypeFor[*v1beta1.ElasticTrainingJobList]()],
		s.lists[reflect.TypeFor[*corev1.PodList]()]) {
		spec, name := templateOf(o)
		if strings.HasPrefix(name, "wait-") {
			_, err := fmt.Sscanf(name, "wait-%d", &number)
			g.Expect(err).NotTo(HaveOccurred())
			change(spec, number)
		}
	}
	a := s.arbiter(t.Context())
	took := func(at time.Time) time.Duration {
		began := cpuTime(t)
		_, err := a.evaluate(t.Context(), at)
		g.Expect(err).NotTo(HaveOccurred())
		return cpuTime(t) - began
	}
	return took(now), took(now.Add(time.Second))
}

func templateOf(o runtime.Object) (spec *corev1.PodSpec, name string) {
	switch o := o.(type) {
	case *v1beta1.ElasticTrainingJob:
		return &o.Spec.Template.Spec, o.Name
	case *corev1.Pod:
		return &o.Spec, o.Name
	}
	return nil, ""
}

// Templates with as many terms as fit into their weight, each job's unlike the others', take a hundredth of a second each, and
// less once they are known: without bounds one of them took 3.8 s, each time.
func TestHostileTemplatesCostTheArbiterLittle(t *testing.T) {
	g := NewWithT(t)
	g.Expect(weight.Of(hostileTerms(0))).To(BeNumerically("~", weight.MostOfTemplate, weight.MostOfTemplate/8))
	// Ten times what it takes, for machines that are busy and the detector of races, and the best of a few: what other processes
	// do to caches and memory counts as time of this one.
	const mostFirst, mostLater = 5 * time.Second, 2 * time.Second
	var first, later time.Duration
	for range 3 {
		first, later = evaluationTime(t, func(spec *corev1.PodSpec, number int) { spec.Affinity = hostileTerms(number) })
		if first < mostFirst && later < mostLater {
			return
		}
	}
	g.Expect(first).To(BeNumerically("<", mostFirst))
	g.Expect(later).To(BeNumerically("<", mostLater))
}
