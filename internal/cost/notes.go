package cost

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// writeNotes lists what is uncertain or unknown about the report.
func (c *counter) writeNotes(r *Report) []string {
	notes := slices.Clone(c.in.Notes)
	add := func(format string, a ...any) { notes = append(notes, fmt.Sprintf(format, a...)) }
	if c.before > 0 {
		add("Pods ran for %s h before %s, when the first prices of the list begin. These hours are counted at no cost. "+
			"Add prices from an earlier day.", formatHours(c.before), c.in.Prices.validities[0].from.Format(time.DateOnly))
	}
	for _, resource := range slices.Sorted(maps.Keys(c.unpriced)) {
		add("The price list has no price of %s, which pods held for %s h. These hours are counted at no cost. Add a price.",
			resource, formatHours(c.unpriced[resource]))
	}
	for _, of := range c.unseenResources() {
		add("The use of %s is known for %s %% of what was held. The rest counts neither as used nor as wasted.",
			of.resources, of.percent)
	}
	if g := r.Total.Goodput; g.IsKnown() {
		if of := ratioOf(g.Held, r.Total.AcceleratorHours); of.Known && of.Value < 0.995 {
			add("What became steps is known for %.0f %% of the accelerator hours: of trainings that report progress, while their workers "+
				"are ready.", 100*of.Value)
		}
	}
	if u := r.Total.Uncertain; u.Value > 0 {
		add("%.1f %% of the time is on days on which a pod ended while no operator was running, so its end is a guess.", 100*u.Value)
	}
	if unowned := c.rows[ByUser][Key{}]; unowned != nil && unowned.cost.IsPositive() {
		add("%s %s was paid for pods without a known owner.", r.Currency, RoundAmount(unowned.cost, r.Currency).
			StringFixed(MinorUnits(r.Currency)))
	}
	return notes
}

// unseen are resources whose use is known only in part. Resources that are known for the same share, in percent, are joined.
type unseen struct{ resources, percent string }

func (c *counter) unseenResources() []unseen {
	var list []unseen
	for _, of := range []struct {
		name string
		totals
	}{{"accelerators", c.total.devices}, {"CPU", c.total.cores}, {"memory", c.total.gib}} {
		known := ratioOf(of.seen, of.charged)
		if !known.Known || known.Value >= 0.995 {
			continue
		}
		percent := fmt.Sprintf("%.0f", 100*known.Value)
		if i := slices.IndexFunc(list, func(u unseen) bool { return u.percent == percent }); i >= 0 {
			list[i].resources = strings.Replace(list[i].resources, " and ", ", ", 1) + " and " + of.name
		} else {
			list = append(list, unseen{of.name, percent})
		}
	}
	return list
}

// formatHours are so many seconds in words.
func formatHours(seconds int64) string {
	return decimal.New(seconds, 0).DivRound(decimal.New(3600, 0), 1).StringFixed(1)
}
