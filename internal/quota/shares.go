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

// Claim is what one profile asks of the nodes.
type Claim struct {
	Name   string
	Weight int64
	// Guarantee is its own in any case. Deserved is a share that is given as it is, by resource; of other resources the share
	// follows from the weight. Capability bounds such a share; a resource that is not listed has no bound.
	Guarantee, Deserved, Capability capacity.Amounts
}

// Shares divides what there is: each claim gets its guarantee, and of what is left when all guarantees and fixed shares are taken
// off, a part by its weight. What a claim may not use goes to the others. Amounts are whole units: devices, thousandths of cores,
// mebibytes. The shares of a resource are as much as there is together, unless no claim may use more, or guarantees and fixed
// shares are more than there is.
func Shares(there capacity.Amounts, claims []Claim) map[string]capacity.Amounts {
	shares := make(map[string]capacity.Amounts, len(claims))
	for i := range claims {
		shares[claims[i].Name] = capacity.Amounts{}
	}
	for resource := range resourcesOf(there, claims) {
		for name, amount := range divide(resource, there[resource], claims) {
			shares[name][resource] = amount
		}
	}
	return shares
}

// Committed is what guarantees and fixed shares take of each resource, together.
func Committed(claims []Claim) capacity.Amounts {
	committed := capacity.Amounts{}
	for i := range claims {
		for resource, amount := range claims[i].Guarantee {
			if _, fixed := claims[i].Deserved[resource]; !fixed {
				committed[resource] = plus(committed[resource], amount)
			}
		}
		for resource, amount := range claims[i].Deserved {
			committed[resource] = plus(committed[resource], amount)
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

// plus adds amounts, which are not negative: more than can be counted is the most that can be.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// unit is what a share of the resource is a whole number of.
func unit(resource corev1.ResourceName) int64 {
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
	// rest is what is lost of the part by whole units, in parts of the sum of weights.
	rest int64
}

// divide gives each claim its share of one resource.
func divide(resource corev1.ResourceName, there int64, claims []Claim) map[string]int64 {
	shares := make(map[string]int64, len(claims))
	left := there - Committed(claims)[resource]
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
			most = max(bound-c.Guarantee[resource], 0) / unit(resource)
		}
		parts = append(parts, &part{name: c.Name, weight: c.Weight, most: most})
	}
	byWeight(max(left, 0)/unit(resource), parts)
	for _, p := range parts {
		shares[p.name] += p.got * unit(resource)
	}
	return shares
}

// byWeight gives parts of an amount by their weights, none more than its most.
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
		// Who may have less than its part gets that, and the others divide what is left anew.
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

// largestRests gives whole units by weight, and the units that are left over to those who lost most by that.
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

// lend divides what is borrowed among the idle parts of shares, by their size.
func lend(borrowed int64, idle map[string]int64) map[string]int64 {
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
