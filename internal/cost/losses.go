package cost

import (
	"cmp"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/platform/moment"
)

// chargeLosses counts lost work. Work that was lost to preemption is moved from the row of the gang that was stopped to the
// row of the gang that got its room.
func (c *counter) chargeLosses() {
	type loss struct {
		*Loss
		cost decimal.Decimal
	}
	losses := make([]loss, 0, len(c.in.Losses))
	for i := range c.in.Losses {
		l := &c.in.Losses[i]
		cost := c.lossOf(l)
		c.lost.Incidents++
		// A gang that failed keeps its cost: no other job caused the loss.
		if l.For == nil {
			addTo(&c.lost.Restarts, cost)
			continue
		}
		addTo(&c.lost.Preemptions, cost)
		losses = append(losses, loss{l, cost})
	}
	// A row gives at most what it has, so the order of the losses matters.
	slices.SortFunc(losses, func(a, b loss) int {
		return cmp.Or(Key(a.Of).compare(Key(b.Of)), Key(*a.For).compare(Key(*b.For)))
	})
	for _, l := range losses {
		c.moveCost(l.cost, l.Of, *l.For)
	}
}

// lossOf is what the pods of a gang cost, in the period, for work that was lost.
func (c *counter) lossOf(l *Loss) decimal.Decimal {
	lost := decimal.Zero
	for i := range l.Pods {
		addTo(&lost, c.lostBy(&l.Pods[i]))
	}
	return lost
}

func (c *counter) lostBy(pods *LostPods) decimal.Decimal {
	p := c.in.Period
	within := Period{From: moment.LaterOf(pods.Since, p.From).In(c.zone), To: moment.EarlierOf(pods.Until, p.To).In(c.zone)}
	lost := decimal.Zero
	if !within.From.Before(within.To) {
		return lost
	}
	// Prices change at midnights only, so each span between two cuts has one price.
	cuts := within.CutTimes()
	for i, from := range cuts[:len(cuts)-1] {
		devices, base := c.devicesOf(pods.Resources, pods.Model, pods.Surplus, c.in.Prices.validAt(from))
		cores, gib := baseLines(pods.Resources, base)
		var s sums
		s.priceLines(append(devices, cores, gib)...)
		s.multiplyBy((cuts[i+1].Unix() - from.Unix()) * pods.Number)
		addTo(&lost, s.cost)
	}
	return lost
}

// moveCost moves a cost from the rows of one owner to those of another, at most what the rows have.
func (c *counter) moveCost(cost decimal.Decimal, from, to Owner) {
	// No row may become negative, and all rankings must move the same amount. So the row with the least decides.
	for _, dimension := range Dimensions {
		if r := c.rows[dimension][keyOf(dimension, from)]; r == nil {
			return
		} else if r.cost.LessThan(cost) {
			cost = r.cost
		}
	}
	c.addToOwner(from, &sums{cost: cost.Neg()})
	c.addToOwner(to, &sums{cost: cost})
}
