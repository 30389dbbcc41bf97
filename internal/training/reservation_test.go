package training

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

func TestAGangToWhichRoomIsHandedOverIsTheFirstUntilItIsPlaced(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4)
	w.settle()
	class := func() string { return w.last.Blueprint.CoreGroup().PriorityClass }
	usual := class()
	w.o.Profile = profile()
	w.o.Profile.Status.Reservations = []v1beta1.ReservationStatus{
		{Name: "other", Phase: v1beta1.ReservationHandingOver, Job: &v1beta1.GangRef{Namespace: "ads", Name: "other"}},
		{Name: "launch", Phase: v1beta1.ReservationHandingOver, Job: &v1beta1.GangRef{Namespace: "ads", Name: "ctr"}},
	}
	w.step()
	g.Expect(w.last.RestoreGroups).To(ConsistOf(HaveField("Group.PriorityClass", config.HandoverClass)))
	w.step()
	g.Expect(w.last.RestoreGroups).To(BeEmpty(), "once")
	for i := range int32(2) {
		w.change(i, func(p *podstate.Worker) { p.Scheduled = true })
	}
	w.step()
	g.Expect(w.last.RestoreGroups).To(ConsistOf(HaveField("Group.PriorityClass", usual)), "it is placed")
	w.trains()
	for i := range int32(2) {
		w.deletePod(i)
	}
	w.settle()
	g.Expect(w.last.RestoreGroups).To(BeEmpty(), "one that has trained is as everybody when it waits again")
}

func TestRoomThatWasHandedOverMakesNobodyTheFirstAgain(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 2, 4)
	w.o.Profile = profile()
	w.o.Profile.Status.Reservations = []v1beta1.ReservationStatus{
		{Name: "launch", Phase: v1beta1.ReservationHandedOver, Job: &v1beta1.GangRef{Namespace: "ads", Name: "ctr"}},
	}
	w.settle()
	g.Expect(w.last.RestoreGroups).To(BeEmpty(), "a job of the same name, or one that came before anything was held")
	g.Expect(w.o.Core).NotTo(BeNil())
}
