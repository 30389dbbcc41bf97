package points

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestAThirdOfThePointsIsTried(t *testing.T) {
	g := NewWithT(t)
	t.Setenv(Variable, "")
	tried := map[int]bool{}
	for range 200 {
		chosen := Choose(t, 1, 9, 3)
		g.Expect(chosen).To(HaveLen(3))
		for _, point := range chosen {
			tried[point] = true
		}
	}
	g.Expect(tried).To(HaveLen(9), "many runs try them all")
	g.Expect(Choose(t, 5, 4, 3)).To(BeEmpty())
}

func TestEachPointIsTried(t *testing.T) {
	t.Setenv(Variable, "each")
	NewWithT(t).Expect(Choose(t, 2, 5, 3)).To(Equal([]int{2, 3, 4, 5}))
}
