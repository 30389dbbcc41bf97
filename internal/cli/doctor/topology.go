package doctor

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/gang"
)

// gatherHyperNodes counts the HyperNodes. A cluster need not serve their kind.
func gatherHyperNodes(ctx context.Context, c client.Client, f *Facts) error {
	all := gang.NewHyperNodeList()
	if err := c.List(ctx, all); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list HyperNodes: %w", err)
	}
	f.HyperNodes = meta.LenList(all)
	return nil
}

// topology finds nothing in a cluster without HyperNodes, whose trainings cannot ask for any.
func topology(f Facts) []Finding {
	switch {
	case f.HyperNodes == 0:
		return nil
	case f.PlacesByTopology:
		return []Finding{{Level: OK, What: fmt.Sprintf("Volcano places trainings with spec.networkTopology by HyperNodes (%d).",
			f.HyperNodes)}}
	}
	return []Finding{{
		Level: Warn,
		What: fmt.Sprintf("There are HyperNodes (%d), and Volcano's configuration has no plugin network-topology-aware, so "+
			"that trainings with spec.networkTopology go anywhere.", f.HyperNodes),
		Do: fmt.Sprintf("Have the line - name: network-topology-aware in ConfigMap %s, or apply config/volcano:",
			gang.SchedulerConfigMap),
		Run: "kubectl apply -k config/volcano",
	}}
}
