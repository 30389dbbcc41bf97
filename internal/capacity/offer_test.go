package capacity

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// anOffer is one of nodes of 8, where nothing gives way.
func anOffer(free, whole int32) Offer {
	r := Room{Free: free, WholeNodes: whole}
	return Offer{Room: r, WithSurplus: r, PerNode: 8}
}

func TestWhatSurplusWouldLeave(t *testing.T) {
	g := NewWithT(t)
	worker := func(node, queue, job string) Pod {
		return Pod{Node: node, Queue: queue, Requests: Amounts{gpu: 2}, Surplus: &Surplus{
			Job: types.NamespacedName{Name: job}, UID: types.UID(node + job),
		}}
	}
	m := New(Snapshot{
		Nodes: []Node{{Name: "a", Allocatable: Amounts{gpu: 8}}, {Name: "b", Allocatable: Amounts{gpu: 8}}},
		Pods: []Pod{
			{Node: "a", Queue: "q", Requests: Amounts{gpu: 2}}, worker("a", "q", "ours"), worker("b", "q", "ours"),
			worker("b", "borrows", "theirs"), worker("a", "keeps", "share"),
		},
		Queues: []Queue{
			{Name: "q", Deserved: Amounts{gpu: 12}, Allocated: Amounts{gpu: 6}}, {Name: "borrows", Allocated: Amounts{gpu: 2}},
			{Name: "keeps", Deserved: Amounts{gpu: 2}, Allocated: Amounts{gpu: 2}},
		},
	})
	g.Expect(m.OfferFor("q", gpu, nil)).To(Equal(Offer{
		Room: Room{Free: 6}, WithSurplus: Room{Free: 12, WholeNodes: 1}, PerNode: 8,
	}), "its own gives way, and what a queue without a share borrows, but no queue's share")
	g.Expect(m.OfferFor("keeps", gpu, nil).WithSurplus).To(Equal(Room{Free: 8}), "it has its share, and its own surplus")
}

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
		"of a model":            {Queue{Name: "q"}, "A100", anOffer(17, 1)},
		"of one that is used":   {Queue{Name: "q"}, "H100", anOffer(0, 0)},
		"of none that there is": {Queue{Name: "q"}, "V100", Offer{}},
		"within a capability": {
			Queue{Name: "q", Capability: Amounts{gpu: 10}, Allocated: Amounts{gpu: 4}}, "A100", anOffer(6, 0),
		},
		"to another queue, which does not exist": {Queue{Name: "other"}, "A100", anOffer(0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Snapshot{Nodes: nodes, Pods: pods, Queues: []Queue{c.queue}})
			NewWithT(t).Expect(m.OfferFor("q", gpu, map[string]string{"model": c.model})).To(Equal(c.offers))
		})
	}
}
