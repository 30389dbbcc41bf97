package arbiter

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/platform/topology"
	"github.com/tideline-io/tideline/internal/platform/topologycache"
)

// ReadTopology has gangs judged by the HyperNodes that they must share. It must be called before the arbiter starts.
func (a *Arbiter) ReadTopology(r *topologycache.Reader) { a.hyperNodes = r }

// domains are the HyperNodes; none if they cannot be read, which the log says.
func (c *collector) domains(ctx context.Context) []topology.Domain {
	all, err := c.arbiter.hyperNodes.ReadDomains(ctx)
	if err != nil {
		c.arbiter.log.Error(err, "Could not read which nodes are close to each other")
	}
	return all
}

// nodesOf are the nodes of the members of a PodGroup, each once, in order.
func (m *mirror) nodesOf(group types.NamespacedName) []string {
	var all []string
	for _, p := range m.rollOf(group).pods {
		if p.standing == standsBound {
			all = append(all, p.node)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
