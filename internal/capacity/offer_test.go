package capacity

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestOffer(t *testing.T) {
	on := func(name, model string, all int64) Node {
		return Node{
			Name: name, Labels: map[string]string{"model": model}, Allocatable: Amounts{gpu: all},
			Taints: []corev1.Taint{{Key: string(gpu), Effect: corev1.TaintEffectNoSchedule}},
		}
	}
	held := func(node string, n int64) Pod { return Pod{Node: node, Requests: Amounts{gpu: n}} }
	nodes := []Node{on("a", "A100", 8), on("b", "A100", 8), on("c", "A100", 4), on("h", "H100", 8)}
	pods := []Pod{held("a", 3), held("h", 8)}
	for name, c := range map[string]struct {
		queue  Queue
		model  string
		offers Offer
	}{
		"of a model":            {Queue{Name: "q"}, "A100", Offer{Free: 17, WholeNodes: 1, PerNode: 8}},
		"of one that is used":   {Queue{Name: "q"}, "H100", Offer{PerNode: 8}},
		"of none that there is": {Queue{Name: "q"}, "V100", Offer{}},
		"within a capability": {
			Queue{Name: "q", Capability: Amounts{gpu: 10}, Allocated: Amounts{gpu: 4}}, "A100", Offer{Free: 6, PerNode: 8},
		},
		"to another queue, which does not exist": {Queue{Name: "other"}, "A100", Offer{PerNode: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Snapshot{Nodes: nodes, Pods: pods, Queues: []Queue{c.queue}})
			NewWithT(t).Expect(m.OfferFor("q", gpu, map[string]string{"model": c.model})).To(Equal(c.offers))
		})
	}
}
