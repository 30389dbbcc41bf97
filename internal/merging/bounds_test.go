package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestConfigurationBoundsGrace(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) {
		s.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](601)
	}).full(w, 12*time.Hour)
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonLimitExceeded))
	g.Expect(m.status().Message).To(Equal("spec.template.spec.terminationGracePeriodSeconds: Invalid value: 601: must be at most " +
		"600 s, because others wait that long for the room (limits.maxGraceSeconds of the operator's configuration): lower it, or " +
		"ask an administrator to raise the limit."))
	g.Expect(m.pods).To(BeEmpty())
	w.config.Limits.MaxGraceSeconds = 601
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging))
	w.config.Limits.MaxGraceSeconds = 600
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonMerging), "a run that has begun goes on")
}
