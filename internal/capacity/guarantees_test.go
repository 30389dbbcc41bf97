package capacity

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestGuaranteesOfOthersAreNamed(t *testing.T) {
	g := NewWithT(t)
	ask := func(own Queue, others ...Queue) Answer {
		own.Name = "default"
		m := New(Snapshot{Nodes: []Node{nodeOf("a", 8)}, Queues: append(others, own)})
		return m.Ask(gangOf(6, 1))
	}
	guarantee := func(name string, n int64) Queue { return Queue{Name: name, Guarantee: Amounts{gpu: n}} }
	a := ask(Queue{}, guarantee("ads", 3), guarantee("shop", 1))
	g.Expect(a.QueueLimit).To(BeTrue())
	g.Expect(a.SayFree()).To(HaveSuffix("What is guaranteed to other queues (ads: 3 nvidia.com/gpu, shop: 1 nvidia.com/gpu) " +
		"leaves it short of 2 nvidia.com/gpu."))
	g.Expect(a.SayEmpty("pod")).To(ContainSubstring("by what is guaranteed to other queues (ads: 3"))
	a = ask(Queue{Capability: Amounts{gpu: 4}}, guarantee("ads", 1))
	g.Expect(a.Guarantees).To(BeEmpty(), "its own limit is less")
	g.Expect(a.SayFree()).To(HaveSuffix("The limit of its Queue leaves it short of 2 nvidia.com/gpu."))
	a = ask(Queue{Capability: Amounts{gpu: 5}}, guarantee("ads", 5))
	g.Expect(a.Guarantees).To(Equal("ads: 5 nvidia.com/gpu"), "the guarantee leaves less")
	a = ask(Queue{}, guarantee("a", 1), guarantee("b", 1), guarantee("c", 1), guarantee("d", 1), guarantee("e", 2))
	g.Expect(a.Guarantees).To(HaveSuffix("b: 1 nvidia.com/gpu, 2 more queues"))
	g.Expect(ask(Queue{}, guarantee("ads", 1)).Guarantees).To(BeEmpty(), "it fits")
}
