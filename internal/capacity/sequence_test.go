package capacity

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhoIsSeatedInASequence(t *testing.T) {
	gang := func(name string, workers int32, tweak ...func(*Gang)) *Gang {
		g := &Gang{
			Job: types.NamespacedName{Name: name}, Queue: "ads", Workers: workers, Shape: Shape{Requests: Amounts{gpu: 1}},
		}
		for _, f := range tweak {
			f(g)
		}
		return g
	}
	onB := func(g *Gang) { g.Shape.NodeSelector = map[string]string{"on": "b"} }
	onA := func(g *Gang) { g.Shape.NodeSelector = map[string]string{"on": "a"} }
	unknown := func(g *Gang) { g.Shape.Unmodelled = "host ports" }
	elsewhere := func(g *Gang) { g.Queue = "search" }
	// Node a has 2 free beside 6 of surplus, node b 8 free beside none.
	for name, c := range map[string]struct {
		claiming, gangs []*Gang
		long            bool
		seated          []bool
	}{
		"those that fit beside each other":          {nil, []*Gang{gang("x", 6), gang("y", 4)}, false, []bool{true, true}},
		"one for which surplus leaves":              {nil, []*Gang{gang("x", 12)}, false, []bool{true}},
		"one such at a time":                        {nil, []*Gang{gang("x", 12), gang("y", 12)}, false, []bool{true, false}},
		"none that would not fit even so":           {nil, []*Gang{gang("x", 17)}, false, []bool{false}},
		"who never fits holds up no other":          {nil, []*Gang{gang("x", 17), gang("y", 2)}, false, []bool{false, true}},
		"who waits keeps the room that it can use":  {[]*Gang{gang("w", 12)}, []*Gang{gang("x", 2)}, false, []bool{false}},
		"but not from one that was held long":       {[]*Gang{gang("w", 12)}, []*Gang{gang("x", 2)}, true, []bool{true}},
		"room that it cannot use goes to others":    {[]*Gang{gang("w", 4, onA)}, []*Gang{gang("x", 2, onB)}, false, []bool{true}},
		"a gang of another queue keeps no room":     {[]*Gang{gang("w", 12, elsewhere)}, []*Gang{gang("x", 2)}, false, []bool{true}},
		"what is claimed already is not given away": {[]*Gang{gang("w", 8, onB)}, []*Gang{gang("x", 8, onB)}, false, []bool{false}},
		"one that the model does not cover":         {nil, []*Gang{gang("x", 40, unknown)}, false, []bool{true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFairness(16, 0)
			f.s.Nodes[0].Labels, f.s.Nodes[1].Labels = map[string]string{"on": "a"}, map[string]string{"on": "b"}
			f.hold("search", "a", 6, 1, true)
			s := New(f.s).NewSequence("ads", c.claiming, func(types.NamespacedName) bool { return true })
			var seated []bool
			for _, ask := range c.gangs {
				seated = append(seated, s.SeatNext(ask, c.long))
			}
			g.Expect(seated).To(Equal(c.seated))
		})
	}
}
