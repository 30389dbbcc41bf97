package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

func TestTierDecidesOnResources(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) {
		s.Tier = "main-traffic"
		delete(s.Template.Spec.Containers[0].Resources.Requests, corev1.ResourceMemory)
	}).full(w, 12*time.Hour)
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonQoSNotMet))
	g.Expect(EventsBetween(&v1beta1.MergeJobStatus{}, m.status())).To(ContainElement(statuspace.Event{
		Type: "Warning", Reason: v1beta1.ReasonQoSNotMet, Message: m.status().Message,
	}))
	g.Expect(m.status().Summary).To(Equal("Waiting (QoS not met)"))
	g.Expect(m.status().Message).To(Equal("spec.template.spec.containers[0].resources.requests[memory]: Required value: tier " +
		"main-traffic (Guaranteed) needs cpu and memory requests on every container, and \"merge\" has none for memory: add it, or " +
		"choose another tier. Change spec.template or spec.tier."))
	g.Expect(m.pods).To(BeEmpty())
	m.object.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
	m.object.Generation++
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging), "with another template it goes on")
}

func TestRunThatHasBegunOutlivesAnotherQoS(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, 12*time.Hour)
	m.object.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	w.settle()
	w.config.Tiers[0].QoS = config.QoSGuaranteed
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging))
	runs := m.status().DeepCopy()
	w.merge(m)
	w.settle()
	g.Expect(m.status().History[0].Outcome).To(Equal(v1beta1.OutcomeMerged))
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonQoSNotMet), "the next is held to it")
	g.Expect(EventsBetween(runs, m.status())).To(ContainElement(And(HaveField("Type", "Warning"),
		HaveField("Reason", v1beta1.ReasonQoSNotMet))), "which is said")
}
