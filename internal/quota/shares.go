package quota

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/capacity"
)

// For each resource, with amounts in whole units (devices, thousandths of cores, MiB):
//
//	left      = what there is - sum of fixed shares - sum of guarantees of the others, at least 0
//	share     = deserved                                             of a claim with a fixed share
//	          = guarantee + min(left × weight ÷ sum of weights, capability - guarantee)   of the others
//
// What capability cuts off one claim is divided among the others again (byWeight). Units lost by rounding go to the claims that
// lost most (largest remainder method), so that the shares add up to what there is.

// Claim is what one profile asks of the nodes.
type Claim struct {
	Name   string
	Weight int64
	// Guarantee is its own in any case. Deserved is a share that is given as it is, by resource; of other resources the share
	// follows from the weight. Capability bounds such a share; a resource that is not listed has no bound.
	Guarantee, Deserved, Capability capacity.Amounts
}

// ComputeShares divides what there is by the formula above. The shares of a resource add up to what there is, unless no claim may
// use more, or guarantees and fixed shares exceed it.
func ComputeShares(there capacity.Amounts, claims []Claim) map[string]capacity.Amounts {
	shares := make(map[string]capacity.Amounts, len(claims))
	for i := range claims {
		shares[claims[i].Name] = capacity.Amounts{}
	}
	for resource := range resourcesOf(there, claims) {
		for name, amount := range divideResource(resource, there[resource], claims) {
			shares[name][resource] = amount
		}
	}
	return shares
}

// CommittedAmounts is what guarantees and fixed shares take of each resource, together.
func CommittedAmounts(claims []Claim) capacity.Amounts {
	committed := capacity.Amounts{}
	for i := range claims {
		for resource, amount := range claims[i].Guarantee {
			if _, fixed := claims[i].Deserved[resource]; !fixed {
				committed[resource] = addCapped(committed[resource], amount)
			}
		}
		for resource, amount := range claims[i].Deserved {
			committed[resource] = addCapped(committed[resource], amount)
		}
	}
	return committed
}

func resourcesOf(there capacity.Amounts, claims []Claim) map[corev1.ResourceName]bool {
	all := map[corev1.ResourceName]bool{}
	for name := range there {
		all[name] = true
	}
	for i := range claims {
		for _, amounts := range []capacity.Amounts{claims[i].Guarantee, claims[i].Deserved} {
			for name := range amounts {
				all[name] = true
			}
		}
	}
	return all
}

// addCapped adds amounts that are not negative. A sum that would overflow becomes the largest int64.
func addCapped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// shareUnit is the unit of a share: 1 MiB of memory, one device, a thousandth of a core.
func shareUnit(resource corev1.ResourceName) int64 {
	if capacity.IsBytes(resource) {
		return 1 << 20
	}
	return 1
}

// part is one claim on what is divided by weight.
type part struct {
	name         string
	weight, most int64
	got          int64
	// rest is what rounding to whole units took from the part, in units of 1 ÷ sum of weights.
	rest int64
}

// divideResource gives each claim its share of one resource.
func divideResource(resource corev1.ResourceName, there int64, claims []Claim) map[string]int64 {
	shares := make(map[string]int64, len(claims))
	left := there - CommittedAmounts(claims)[resource]
	var parts []*part
	for i := range claims {
		c := &claims[i]
		if fixed, ok := c.Deserved[resource]; ok {
			shares[c.Name] = fixed
			continue
		}
		shares[c.Name] = c.Guarantee[resource]
		most := int64(math.MaxInt64)
		if bound, ok := c.Capability[resource]; ok {
			most = max(bound-c.Guarantee[resource], 0) / shareUnit(resource)
		}
		parts = append(parts, &part{name: c.Name, weight: c.Weight, most: most})
	}
	byWeight(max(left, 0)/shareUnit(resource), parts)
	for _, p := range parts {
		shares[p.name] += p.got * shareUnit(resource)
	}
	return shares
}

// byWeight divides an amount by weight, with at most part.most for each.
func byWeight(amount int64, parts []*part) {
	open := slices.Clone(parts)
	for {
		weights := int64(0)
		for _, p := range open {
			weights += p.weight
		}
		if weights == 0 {
			return
		}
		// A part whose limit is below its proportion gets the limit. The others divide the rest, which makes their proportions larger
		// and never smaller. So this one stays right, and the loop ends after at most one round a part.
		full := slices.IndexFunc(open, func(p *part) bool {
			whole, _ := proportion(amount, p.weight, weights)
			return p.most <= whole
		})
		if full < 0 {
			largestRests(amount, weights, open)
			return
		}
		open[full].got = open[full].most
		amount -= open[full].most
		open = slices.Delete(open, full, full+1)
	}
}

// largestRests divides whole units by weight. The units that rounding leaves over go to the parts with the largest
// remainders, by name among equals, so that the result does not depend on the order of the profiles.
func largestRests(amount, weights int64, parts []*part) {
	left := amount
	for _, p := range parts {
		p.got, p.rest = proportion(amount, p.weight, weights)
		left -= p.got
	}
	slices.SortFunc(parts, func(a, b *part) int { return cmp.Or(cmp.Compare(b.rest, a.rest), cmp.Compare(a.name, b.name)) })
	for _, p := range parts[:left] {
		p.got++
	}
}

// proportion is amount × part ÷ of, and the rest; part is at most of. Bytes by bytes may not fit into 64 bits.
func proportion(amount, part, of int64) (whole, rest int64) {
	high, low := bits.Mul64(uint64(amount), uint64(part))
	quotient, remainder := bits.Div64(high, low, uint64(of))
	return int64(quotient), int64(remainder)
}

// lendIdle divides what is borrowed among the idle shares, in proportion to them: no pod holds the idle GPU of one certain
// profile.
func lendIdle(borrowed int64, idle map[string]int64) map[string]int64 {
	var parts []*part
	for _, name := range slices.Sorted(maps.Keys(idle)) {
		if idle[name] > 0 {
			parts = append(parts, &part{name: name, weight: idle[name], most: idle[name]})
		}
	}
	byWeight(borrowed, parts)
	lent := map[string]int64{}
	for _, p := range parts {
		lent[p.name] = p.got
	}
	return lent
}
