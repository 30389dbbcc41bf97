package install

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/upgrade"
)

var _ = Describe("Another version", func() {
	It("takes over from the one before and gives back, while jobs train on", func(ctx SpecContext) {
		before, now := previousVersion.render(ctx), thisVersion.render(ctx)
		if !upgrade.HasJobField(before.objects, "suspend") {
			AddReportEntry(before.version.Name + " has other field names, so that this version stands for the one before it.")
			before = thisVersion.render(ctx)
		}
		r := &rollout{target: newTarget(ctx)}
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
})

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
