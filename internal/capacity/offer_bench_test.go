package capacity

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// 5,000 nodes of 8 devices, with 10,000 surplus workers of 50 queues: what one queue is told of one device.
func BenchmarkOffer(b *testing.B) {
	var s Snapshot
	for i := range 5000 {
		s.Nodes = append(s.Nodes, Node{Name: fmt.Sprint("n", i), Allocatable: Amounts{gpu: 8}})
		for j := range 2 {
			queue := fmt.Sprint("q", i%50)
			s.Pods = append(s.Pods, Pod{Node: fmt.Sprint("n", i), Queue: queue, Requests: Amounts{gpu: 2}, Surplus: &Surplus{
				Job: types.NamespacedName{Name: fmt.Sprint("j", i)}, UID: types.UID(fmt.Sprint(i, "-", j)), Index: int32(j),
			}})
		}
	}
	for i := range 50 {
		s.Queues = append(s.Queues, Queue{Name: fmt.Sprint("q", i), Deserved: Amounts{gpu: 2000}, Allocated: Amounts{gpu: 400}})
	}
	s.Queues = append(s.Queues, Queue{Name: "borrows", Allocated: Amounts{gpu: 0}})
	m := New(s)
	for b.Loop() {
		m.OfferFor("q0", gpu, nil)
	}
}
