package install

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/upgrade"
)

var _ = Describe("Another version", func() {
	It("takes over from the one before and gives back, while jobs train on", func(ctx SpecContext) {
		before, now := previousVersion.render(ctx), thisVersion.render(ctx)
		r := &rollout{target: newTarget(ctx)}
		Expect(r.SpeakVersion(v1beta1.OwnerVersion)).To(Succeed(), "the version of the API that both have")
		r.apply(ctx, before.objects, r.next())
		r.replace(ctx, before)
		jobs := upgrade.StartJobs(r.NewScenario(GinkgoT(), "upgrade", 6))

		jobs.StayAsTheyAre("the upgrade to this version", func() {
			r.apply(ctx, now.objects, r.next())
			r.replace(ctx, now)
		})
		jobs.Work()
		definitions, others := upgrade.Split(before.objects)
		jobs.StayAsTheyAre("the way back, without the definitions", func() {
			r.apply(ctx, others, r.next())
			r.replace(ctx, before)
		})
		jobs.Work()
		jobs.StayAsTheyAre("the way back of the definitions", func() { r.apply(ctx, definitions, "") })
		jobs.Work()
	})

	It("stores objects in the next version of the API, and drops the earlier one, while jobs train on", func(ctx SpecContext) {
		now := thisVersion.render(ctx)
		r := &rollout{target: newTarget(ctx)}
		r.apply(ctx, now.objects, r.next())
		r.replace(ctx, now)
		jobs := upgrade.StartJobs(r.NewScenario(GinkgoT(), "storage", 6))
		definitions, _ := upgrade.Split(now.objects)

		jobs.StayAsTheyAre("what a later release does", func() {
			r.apply(ctx, storing(definitions, true), "")
			Expect(r.tideline(ctx, "doctor")).To(ContainSubstring("Have them stored in the current version:"), "the doctor sees it")
			Expect(r.tideline(ctx, "migrate-storage")).To(MatchRegexp(`elastictrainingjobs\.tideline\.io: all 4 objects are stored in `+
				`v1beta1 now, and v1alpha1 is off the list of stored versions\.`), "all is written again")
			Expect(r.tideline(ctx, "migrate-storage")).To(ContainSubstring("elastictrainingjobs.tideline.io: all objects were stored in "+
				"v1beta1 already."), "once")
		})
		jobs.StayAsTheyAre("the end of the earlier version", func() { r.apply(ctx, storing(definitions, false), "") })
		jobs.Work()
	})
})

// storing are the definitions as a later release has them, which stores objects in this version of the API: with the earlier
// version or without it.
func storing(definitions []*unstructured.Unstructured, earlier bool) []*unstructured.Unstructured {
	GinkgoHelper()
	var later []*unstructured.Unstructured
	for _, o := range definitions {
		o = o.DeepCopy()
		versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
		Expect(err).NotTo(HaveOccurred(), "the definition has versions")
		var offered []any
		for _, each := range versions {
			version := each.(map[string]any)
			isNow := version["name"] == v1beta1.GroupVersion.Version
			version["storage"] = isNow
			if isNow || earlier {
				offered = append(offered, version)
			}
		}
		Expect(unstructured.SetNestedSlice(o.Object, offered, "spec", "versions")).To(Succeed())
		later = append(later, o)
	}
	return later
}

// rollout stands for the Deployment.
type rollout struct {
	*target

	operator *testutil.Operator // who runs; nil at first
	address  string             // of the webhooks of who is to run next
	count    int
}

// next is the address of who is to run next.
func (r *rollout) next() string {
	GinkgoHelper()
	r.address = freeAddress()
	return r.address
}

// replace starts a version's operator, and ends who ran before when it answers.
func (r *rollout) replace(ctx context.Context, in installation) {
	GinkgoHelper()
	r.count++
	operator := r.launch(ctx, in, fmt.Sprint("operator-", r.count), r.address)
	Expect(r.AwaitWebhooks(ctx)).To(Succeed(), "the webhooks of %s answer", in.version.Name)
	if r.operator != nil {
		Expect(r.operator.Stop()).To(Succeed(), "who ran before ends in order")
	}
	Expect(operator.AwaitReady(ctx)).To(Succeed(), "%s leads", in.version.Name)
	r.operator = operator
}
