package quota

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

func TestWhoHoldsTheTeamsAccelerators(t *testing.T) {
	g := NewWithT(t)
	b := newBooking()
	b.o.Holdings = []Holding{
		{Namespace: "ads-dev", Tier: "exploratory", User: "bob", Accelerators: 2000},
		{Namespace: "ads-dev", Tier: "main-traffic", User: "alice", Accelerators: 4000},
		{Namespace: "ads-dev", User: "alice", Accelerators: 500},
		{Namespace: "search", Tier: "exploratory", User: "carol", Accelerators: 8000},
		{Namespace: "tideline-system", Profile: "ads", Tier: "exploratory", Accelerators: 8000},
		{Namespace: "tideline-system", Profile: "search", Accelerators: 8000},
	}
	b.o.Offers = map[string][]v1beta1.AvailableStatus{"ads": {{Resource: "nvidia.com/gpu", Free: 3}}}
	b.step()
	g.Expect(b.last.Status.Tiers).To(Equal([]v1beta1.UsageStatus{
		{Name: "exploratory", Held: "10"}, {Name: "main-traffic", Held: "4"}, {Name: "", Held: "0.5"},
	}))
	g.Expect(b.last.Status.Users).To(Equal([]v1beta1.UsageStatus{
		{Name: "", Held: "8"}, {Name: "alice", Held: "4.5"}, {Name: "bob", Held: "2"},
	}))
	g.Expect(b.last.Status.Available).To(Equal(b.o.Offers["ads"]))
	written := b.last.Status.DeepCopy()
	b.o.Holdings[0].Accelerators = 3000
	b.o.Offers = map[string][]v1beta1.AvailableStatus{"ads": {{Resource: "nvidia.com/gpu", Free: 2}}}
	g.Expect(PaceOf(written, &b.step().last.Status)).To(Equal(statuspace.Calm), "figures alone")
}
