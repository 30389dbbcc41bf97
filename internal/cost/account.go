package cost

import (
	"maps"
	"slices"

	"github.com/shopspring/decimal"
	corev1 "k8s.io/api/core/v1"
)

// perHour is how many thousandths × seconds are a whole one for an hour.
var perHour = decimal.NewFromInt(3_600_000)

// ofMiB and ofByte are how many thousandths of a GiB they are. Both are exact.
var ofMiB, ofByte = decimal.RequireFromString("0.9765625"), decimal.RequireFromString("0.000000931322574615478515625")

// sums are what was held, used and paid, of some pods. Only what ends is in it, so that it is the same whatever the order in
// which it is summed.
type sums struct {
	cost, waste, recoverable decimal.Decimal
	// devices, cores and gib are hours of them.
	devices, cores, gib totals
	seconds, uncertain  int64
	pods, runs          int64
	trained             trainedSums
}

// totals are hours of one resource.
type totals struct {
	// charged is what is paid for: what was requested, and where more of CPU or memory was used, that.
	charged decimal.Decimal
	// seen is what was requested over the time for which use is known, and used is what was used in that time.
	seen, used decimal.Decimal
}

func (a *totals) add(b totals) {
	addTo(&a.charged, b.charged)
	addTo(&a.seen, b.seen)
	addTo(&a.used, b.used)
}

func (s *sums) add(t *sums) {
	addTo(&s.cost, t.cost)
	addTo(&s.waste, t.waste)
	addTo(&s.recoverable, t.recoverable)
	s.devices.add(t.devices)
	s.cores.add(t.cores)
	s.gib.add(t.gib)
	s.seconds += t.seconds
	s.uncertain += t.uncertain
	s.pods += t.pods
	s.runs += t.runs
	s.trained.add(t.trained)
}

// addTo adds amounts that are not zero: most sums lack some of them.
func addTo(sum *decimal.Decimal, more decimal.Decimal) {
	switch {
	case more.IsZero():
	case sum.IsZero():
		*sum = more
	default:
		*sum = sum.Add(more)
	}
}

// ratioOf is a part of a whole.
func ratioOf(some, whole decimal.Decimal) Ratio {
	if !whole.IsPositive() {
		return Ratio{}
	}
	return Ratio{Value: min(max(some.DivRound(whole, places).InexactFloat64(), 0), 1), Known: true}
}

// line is what each of some pods held and used of a resource, in thousandths.
type line struct {
	totals
	// granted is what sizing would have granted over the time that was seen; at least seen if that is unknown.
	granted decimal.Decimal
	hourly  decimal.Decimal
}

// priceLines sums cost, waste and recoverable cost of lines, for an hour of one pod, in thousandths.
func (s *sums) priceLines(lines ...line) {
	for i := range lines {
		l := &lines[i]
		addTo(&s.cost, l.charged.Mul(l.hourly))
		if wasted := l.seen.Sub(l.used); wasted.IsPositive() {
			addTo(&s.waste, wasted.Mul(l.hourly))
		}
		if beyond := l.seen.Sub(decimal.Max(l.used, l.granted)); beyond.IsPositive() {
			addTo(&s.recoverable, beyond.Mul(l.hourly))
		}
	}
}

// multiplyBy turns sums for an hour of one pod, in thousandths, into sums for seconds of pods.
func (s *sums) multiplyBy(seconds int64) {
	n := decimal.NewFromInt(seconds)
	for _, d := range []*decimal.Decimal{
		&s.cost, &s.waste, &s.recoverable, &s.devices.charged, &s.devices.seen, &s.devices.used, &s.cores.charged, &s.cores.seen,
		&s.cores.used, &s.gib.charged, &s.gib.seen, &s.gib.used,
	} {
		if !d.IsZero() {
			*d = d.Mul(n).DivRound(perHour, places)
		}
	}
}

// accountFor computes the sums of what some pods held and used.
func (c *counter) accountFor(h *Held) sums {
	u, granted := c.useOf(h)
	prices := c.in.Prices.validAt(h.From.In(c.zone))
	devices, base := c.devicesOf(h.Resources, h.Model, h.Surplus, prices)
	var s sums
	for i := range devices {
		d := &devices[i]
		d.seen, d.used = d.charged.Mul(billionths(u.devicesSeen)), d.charged.Mul(billionths(u.devicesActive))
		d.granted = d.seen // how many devices a gang trains on changes what it computes: they are never cut
		s.devices.add(d.totals)
	}
	cores, gib := baseLines(h.Resources, base)
	cores.setUse(billionths(u.cpuSeen), decimal.New(u.microcores, -3), decimal.NewFromInt(granted.Millicores))
	gib.setUse(billionths(u.memorySeen), decimal.NewFromInt(u.bytes).Mul(ofByte),
		decimal.NewFromInt(granted.MemoryBytes).Mul(ofByte))
	s.cores, s.gib = cores.totals, gib.totals
	s.priceLines(append(devices, cores, gib)...)
	s.multiplyBy(h.Seconds)
	s.seconds, s.uncertain, s.pods = h.Seconds, h.Uncertain, h.Pods
	c.noteMissingPrices(h, prices, base)
	return s
}

// noteMissingPrices counts how long pods held resources without a price.
func (c *counter) noteMissingPrices(h *Held, prices *validity, base basePrices) {
	if prices == nil {
		c.before += h.Seconds
		return
	}
	for _, resource := range c.accelerators {
		if _, known := prices.priceOf(resource, h.Model); !known && h.Resources[resource] > 0 {
			c.unpriced[resource] += h.Seconds
		}
	}
	for resource, price := range map[corev1.ResourceName]*decimal.Decimal{
		corev1.ResourceCPU: base.core, corev1.ResourceMemory: base.gib,
	} {
		if price == nil && h.Resources[string(resource)] > 0 {
			c.unpriced[string(resource)] += h.Seconds
		}
	}
}

func billionths(n int64) decimal.Decimal { return decimal.New(n, -9) }

// setUse records the mean use of a line, which is known for the share seen of the time. If more was used than requested,
// the use is charged. granted is 0 if it is unknown.
func (l *line) setUse(seen, used, granted decimal.Decimal) {
	l.seen, l.used = l.charged.Mul(seen), used
	if l.granted = l.seen; granted.IsPositive() {
		l.granted = granted.Mul(seen)
	}
	if beyond := l.used.Sub(l.seen); beyond.IsPositive() {
		l.charged = l.charged.Add(beyond)
	}
}

// basePrices are the prices of a core and a GiB for a pod; nil if unknown.
type basePrices struct{ core, gib *decimal.Decimal }

// devicesOf are the accelerators among resources, by name, with their prices, and what core and memory cost beside them. Prices
// are nil before there are any.
func (c *counter) devicesOf(held Resources, model string, surplus bool, prices *validity) ([]line, basePrices) {
	var lines []line
	var base basePrices
	if prices != nil {
		base = basePrices{prices.core, prices.gib}
	}
	ofNode := false
	for _, resource := range c.accelerators {
		amount := held[resource]
		if amount <= 0 {
			continue
		}
		l := line{totals: totals{charged: decimal.NewFromInt(amount)}}
		if prices != nil {
			p, _ := prices.priceOf(resource, model)
			if l.hourly = p.hourly; surplus {
				l.hourly = p.hourly.Mul(p.kept)
			}
			if p.core != nil && !ofNode {
				base, ofNode = basePrices{p.core, p.gib}, true
			}
		}
		lines = append(lines, l)
	}
	return lines, base
}

// baseLines are CPU and memory among resources.
func baseLines(held Resources, prices basePrices) (cores, gib line) {
	cores.charged = decimal.NewFromInt(held[string(corev1.ResourceCPU)])
	gib.charged = decimal.NewFromInt(held[string(corev1.ResourceMemory)]).Mul(ofMiB)
	if prices.core != nil {
		cores.hourly = *prices.core
	}
	if prices.gib != nil {
		gib.hourly = *prices.gib
	}
	return cores, gib
}

// acceleratorsOf are the resources that count as accelerators, by name.
func acceleratorsOf(in *Input) []string {
	all := map[string]bool{}
	for _, resource := range in.Accelerators {
		all[resource] = true
	}
	for i := range in.Prices.validities {
		for d := range in.Prices.validities[i].devices {
			all[d.resource] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
