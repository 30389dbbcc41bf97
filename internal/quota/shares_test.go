package quota

import (
	"fmt"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/capacity"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

func gpus(n int64) capacity.Amounts { return capacity.Amounts{gpu: n} }

func TestShares(t *testing.T) {
	for name, c := range map[string]struct {
		there  capacity.Amounts
		claims []Claim
		want   map[string]capacity.Amounts
	}{
		"by weight": {
			gpus(16), []Claim{{Name: "a", Weight: 3}, {Name: "b", Weight: 1}},
			map[string]capacity.Amounts{"a": gpus(12), "b": gpus(4)},
		},
		"beyond the guarantees": {
			gpus(16), []Claim{{Name: "a", Weight: 1, Guarantee: gpus(8)}, {Name: "b", Weight: 3}},
			map[string]capacity.Amounts{"a": gpus(10), "b": gpus(6)},
		},
		"what one may not use goes to the others": {
			gpus(16), []Claim{{Name: "a", Weight: 2, Capability: gpus(4)}, {Name: "b", Weight: 1}, {Name: "c", Weight: 1}},
			map[string]capacity.Amounts{"a": gpus(4), "b": gpus(6), "c": gpus(6)},
		},
		"fixed": {
			gpus(16), []Claim{{Name: "a", Weight: 1, Deserved: gpus(10)}, {Name: "b", Weight: 1}},
			map[string]capacity.Amounts{"a": gpus(10), "b": gpus(6)},
		},
		"whole devices, the first by name where it is equal": {
			gpus(8), []Claim{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}, {Name: "c", Weight: 1}},
			map[string]capacity.Amounts{"a": gpus(3), "b": gpus(3), "c": gpus(2)},
		},
		"guarantees of more than there is": {
			gpus(8), []Claim{{Name: "a", Weight: 1, Guarantee: gpus(6)}, {Name: "b", Weight: 1, Guarantee: gpus(6)}},
			map[string]capacity.Amounts{"a": gpus(6), "b": gpus(6)},
		},
		"whole mebibytes": {
			capacity.Amounts{corev1.ResourceMemory: 3<<20 + 5}, []Claim{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}},
			map[string]capacity.Amounts{"a": {corev1.ResourceMemory: 2 << 20}, "b": {corev1.ResourceMemory: 1 << 20}},
		},
		"exabytes": {
			capacity.Amounts{corev1.ResourceMemory: 1 << 62}, []Claim{{Name: "a", Weight: 1000}, {Name: "b", Weight: 1000}},
			map[string]capacity.Amounts{"a": {corev1.ResourceMemory: 1 << 61}, "b": {corev1.ResourceMemory: 1 << 61}},
		},
		"nothing to divide": {
			nil, []Claim{{Name: "a", Weight: 1, Guarantee: gpus(1)}}, map[string]capacity.Amounts{"a": gpus(1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ComputeShares(c.there, c.claims)).To(Equal(c.want))
		})
	}
}

// TestSharesKeepTheirLaws tries random claims: no claim gets less than the guarantee or, by weight, more than the
// capability; what the nodes have is given out, and no more; who weighs more gets no less; and the order of claims does not
// matter.
func TestSharesKeepTheirLaws(t *testing.T) {
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 0))
		there := random.Int64N(200)
		claims := make([]Claim, 1+random.IntN(6))
		for i := range claims {
			c := Claim{Name: fmt.Sprintf("p%d", i), Weight: 1 + random.Int64N(9)}
			if random.IntN(3) == 0 {
				c.Guarantee = gpus(random.Int64N(there/4 + 2))
			}
			if random.IntN(3) == 0 {
				c.Capability = gpus(c.Guarantee[gpu] + random.Int64N(there+2))
			}
			if random.IntN(5) == 0 {
				c.Deserved = gpus(c.Guarantee[gpu] + random.Int64N(5))
			}
			claims[i] = c
		}
		shares := ComputeShares(gpus(there), claims)
		g := NewWithT(t)
		total, open := int64(0), false
		for i := range claims {
			c, share := &claims[i], shares[claims[i].Name][gpu]
			total += share
			g.Expect(share).To(BeNumerically(">=", c.Guarantee[gpu]), "seed %d", seed)
			fixed, isFixed := c.Deserved[gpu]
			if isFixed {
				g.Expect(share).To(Equal(fixed), "seed %d", seed)
				continue
			}
			bound, bounded := c.Capability[gpu]
			if bounded {
				g.Expect(share).To(BeNumerically("<=", bound), "seed %d", seed)
			}
			open = open || !bounded || share < bound
			for j := range claims {
				o := &claims[j]
				if alike := o.Deserved == nil && o.Guarantee == nil && o.Capability == nil; alike && c.Guarantee == nil &&
					c.Capability == nil && c.Weight > o.Weight {
					g.Expect(share).To(BeNumerically(">=", shares[o.Name][gpu]), "seed %d", seed)
				}
			}
		}
		if committed := CommittedAmounts(claims)[gpu]; committed <= there {
			g.Expect(total).To(BeNumerically("<=", there), "seed %d", seed)
			if open {
				g.Expect(total).To(Equal(there), "seed %d: all is given out while somebody may have it", seed)
			}
		}
		random.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
		g.Expect(ComputeShares(gpus(there), claims)).To(Equal(shares), "seed %d", seed)
	}
}

func TestLend(t *testing.T) {
	g := NewWithT(t)
	g.Expect(lendIdle(4, map[string]int64{"a": 6, "b": 2, "c": 0})).To(Equal(map[string]int64{"a": 3, "b": 1}))
	g.Expect(lendIdle(100, map[string]int64{"a": 6, "b": 2})).To(Equal(map[string]int64{"a": 6, "b": 2}), "no more than is idle")
	g.Expect(lendIdle(1<<61, map[string]int64{"a": 1 << 61, "b": 1 << 61})).To(Equal(map[string]int64{"a": 1 << 60, "b": 1 << 60}))
}
