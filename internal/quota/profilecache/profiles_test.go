package profilecache

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestFiguresOfAProfileWakeNoJobs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1beta1.ResourceQuotaProfile)
		wakes  bool
	}{
		"figures":           {func(p *v1beta1.ResourceQuotaProfile) { p.Status.Running = 7 }, false},
		"words of a queue":  {func(p *v1beta1.ResourceQuotaProfile) { p.Status.Message = "other" }, false},
		"spec":              {func(p *v1beta1.ResourceQuotaProfile) { p.Generation++ }, true},
		"no queue any more": {func(p *v1beta1.ResourceQuotaProfile) { p.Status.Queue = "" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &v1beta1.ResourceQuotaProfile{}
			before.Status.Queue = "ads"
			after := before.DeepCopy()
			c.change(after)
			woken := ProfileChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
			NewWithT(t).Expect(woken).To(Equal(c.wakes))
		})
	}
	t.Run("why there is no queue", func(t *testing.T) {
		before, after := &v1beta1.ResourceQuotaProfile{}, &v1beta1.ResourceQuotaProfile{}
		after.Status.Message = "Queue ads is not the profile's."
		NewWithT(t).Expect(ProfileChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue())
	})
}
