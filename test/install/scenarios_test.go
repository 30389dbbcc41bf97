package install

import (
	"context"

	. "github.com/onsi/ginkgo/v2"

	"github.com/tideline-io/tideline/test/testutil/story"
)

// The rights, webhooks, configuration and arguments are those of the installation. test/olm shows the same of OLM's.
var _ = DescribeTable("An installation shows scenarios 1 and 3",
	func(ctx SpecContext, render func(context.Context, version) installation) {
		in := render(ctx, thisVersion)
		r := &rollout{target: newTarget(ctx)}
		r.apply(ctx, in.objects, r.next())
		r.replace(ctx, in)
		story.GangIsPlacedWhole(r.NewScenario(GinkgoT(), "s1", 3))
		story.MakesRoom(r.NewScenario(GinkgoT(), "s3", 8))
	},
	Entry("by kustomize", func(ctx context.Context, v version) installation { return v.render(ctx) }),
	Entry("by Helm", func(ctx context.Context, v version) installation { return v.renderChart(ctx) }),
)
