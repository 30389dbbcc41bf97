package profile

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var _ = Describe("Reservations", Serial, func() {
	It("behaviour 10: gathers room on a busy cluster, holds it, and hands it over to its task alone", func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads"))
		ads.Submit(ads.job("busy", 1, 16))
		Eventually(ads.Fetch("busy")).Should(testutil.Train(16), "nothing is free")
		reserve("ads", testutil.Profile("ads").Reserve(2, 7, "launch", "alice", time.Now().Add(time.Hour)))
		Eventually(read("ads")).WithTimeout(3*time.Minute).Should(reserved(v1beta1.ReservationHeld), "surplus gave way for it")
		Eventually(read("ads")).Should(HaveField("Status.Accelerators", "16/16/-"), "what is held is the team's use")
		Expect(ads.Read("busy")).To(testutil.HaveRestarts(0))

		ads.Submit(ads.job("other", 8, 8))
		Eventually(ads.Fetch("other")).Should(testutil.Wait(v1beta1.ReasonUnschedulable))
		Consistently(ads.Fetch("other")).WithTimeout(several).
			Should(testutil.Wait(v1beta1.ReasonUnschedulable), "nobody else has the room")
		ads.Submit(ads.job("launch", 12, 12).Owner("alice"))
		Eventually(ads.Fetch("launch")).Should(testutil.Train(12), "it came later, and has the room")
		Eventually(read("ads")).Should(And(reserved(v1beta1.ReservationHandedOver),
			HaveField("Status.Reservations", ContainElement(HaveField("Job",
				&v1beta1.GangRef{Namespace: ads.Namespace, Name: "launch"})))))
		Expect(ads.Fetch("other")()).To(testutil.Wait(v1beta1.ReasonUnschedulable), "the other waits on")
		Eventually(placeholders).Should(BeZero(), "nothing holds room any more")
		Eventually(func() string {
			return testutil.Get(ads.Scenario, &schedulingv1beta1.PodGroup{}, "launch").Spec.PriorityClassName
		}).
			Should(Equal("tideline-exploratory"), "the gang stands where its tier stands")
	})

	It("behaviour 10: keeps the room from a job of the name that is of somebody else, or claims none", func() {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").Reserve(2, 8, "launch", "alice", time.Now().Add(time.Hour)))
		Eventually(read("ads")).Should(reserved(v1beta1.ReservationHeld))
		ads.Submit(ads.job("launch", 16, 16).Owner("bob"))
		Eventually(ads.Fetch("launch")).Should(testutil.Wait(v1beta1.ReasonUnschedulable))
		Eventually(read("ads")).Should(heldFrom(v1beta1.ReasonOtherOwner))
		Consistently(ads.Fetch("launch")).WithTimeout(several).Should(testutil.Wait(v1beta1.ReasonUnschedulable))
		Expect(placeholders()).To(Equal(16), "the room is held as before")

		ads.DeleteJob("launch")
		ads.Submit(ads.job("launch", 16, 16).Owner("alice").
			With(func(job *v1beta1.ElasticTrainingJob) { job.Spec.Suspend = true }))
		Eventually(read("ads")).Should(heldFrom(v1beta1.ReasonSuspended))
		Expect(placeholders()).To(Equal(16))
		ads.Patch(ads.Read("launch"), `{"spec":{"suspend":false}}`)
		Eventually(ads.Fetch("launch")).Should(testutil.Train(16), "it claims the room now")
		Eventually(read("ads")).Should(reserved(v1beta1.ReservationHandedOver))
	})

	It("behaviour 10: gives the room back when its time is over, or its profile is deleted", func(ctx SpecContext) {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").
			Reserve(1, 4, "never", "alice", time.Now().Add(30*time.Second)).Reserve(1, 4, "later", "alice", time.Now().Add(time.Hour)))
		Eventually(placeholders).Should(Equal(8), "both are held")
		ads.Submit(ads.job("a", 12, 12))
		Eventually(ads.Fetch("a")).Should(testutil.Train(12), "one has expired")
		Expect(placeholders()).To(Equal(4))
		gone, err := read("ads")()
		Expect(err).NotTo(HaveOccurred())
		Expect(shared.World.Client.Delete(ctx, gone)).To(Succeed())
		Eventually(placeholders).Should(BeZero())
		Expect(ads.Fetch("a")()).To(testutil.Train(12), "no job is harmed")
	})

	It("behaviour 10: an operator that is killed holds the room all the same", suite.Long, func(ctx SpecContext) {
		ads := newTeam("ads")
		profile(testutil.Profile("ads").Reserve(2, 8, "launch", "alice", time.Now().Add(time.Hour)))
		Eventually(read("ads")).Should(reserved(v1beta1.ReservationHeld))
		shared.Operator().Kill()
		Expect(shared.Operator().Start(ctx)).To(Succeed())
		ads.Submit(ads.job("other", 16, 16))
		Eventually(ads.Fetch("other")).Should(testutil.Wait(v1beta1.ReasonUnschedulable))
		ads.Submit(ads.job("launch", 16, 16).Owner("alice"))
		Eventually(ads.Fetch("launch")).Should(testutil.Train(16))
	})
})

// reserve gives an existing profile the reservations of another.
func reserve(name string, like *testutil.ProfileBuilder) {
	GinkgoHelper()
	p, err := read(name)()
	Expect(err).NotTo(HaveOccurred())
	changed := p.DeepCopy()
	changed.Spec.Reservations = like.Obj().Spec.Reservations
	Expect(shared.World.Client.Patch(GinkgoT().Context(), changed, client.MergeFrom(p))).To(Succeed())
}

// reserved matches a profile with a reservation of that phase.
func reserved(phase v1beta1.ReservationPhase) types.GomegaMatcher {
	return HaveField("Status.Reservations", ContainElement(HaveField("Phase", phase)))
}

// heldFrom matches a profile with a reservation that is held, and says in a word why a job of its name does not get its room.
func heldFrom(reason string) types.GomegaMatcher {
	return HaveField("Status.Reservations", ContainElement(And(
		HaveField("Phase", v1beta1.ReservationHeld), HaveField("Reason", reason), HaveField("Job", BeNil()))))
}

// placeholders counts the GPUs that reservations hold on nodes.
func placeholders() (int, error) {
	pods := &corev1.PodList{}
	if err := shared.World.Client.List(GinkgoT().Context(), pods, client.HasLabels{v1beta1.LabelReservation}); err != nil {
		return 0, err
	}
	n := 0
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName != "" {
			gpus := pods.Items[i].Spec.Containers[0].Resources.Requests[testutil.GPUResource]
			n += int(gpus.Value())
		}
	}
	return n, nil
}
