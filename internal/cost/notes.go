package cost

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// writeNotes say what is uncertain or unknown.
func (c *counter) writeNotes(r *Report) []string {
	notes := slices.Clone(c.in.Notes)
	add := func(format string, a ...any) { notes = append(notes, fmt.Sprintf(format, a...)) }
	if c.before > 0 {
		add("Pods were there for %s h before %s, when the first prices of the list hold: that is counted in hours and costs nothing. "+
			"Add prices from an earlier day on.", formatHours(c.before), c.in.Prices.validities[0].from.Format(time.DateOnly))
	}
	for _, resource := range slices.Sorted(maps.Keys(c.unpriced)) {
		add("Pods held %s for %s h of which the price list does not say what it costs: it cost nothing. Add a price.",
			resource, formatHours(c.unpriced[resource]))
	}
	for _, of := range c.unseenOwners() {
		add("What was used of %s is known for %s %% of what was held. The rest counts neither as used nor as wasted.",
			of.resources, of.percent)
	}
	if u := r.Total.Uncertain; u.Value > 0 {
		add("%.1f %% of the time is of days on which a pod ended while nobody looked, so that its end is a guess.", 100*u.Value)
	}
	if nobody := c.rows[ByUser][Key{}]; nobody != nil && nobody.cost.IsPositive() {
		add("%s %s was paid for pods of which nobody knows who answers for them.", r.Currency, Round(nobody.cost, r.Currency).
			StringFixed(MinorUnits(r.Currency)))
	}
	return notes
}

// unseen are resources of which it is not known of all that was held what was used: together those of which it is known of the
// same part, in percent.
type unseen struct{ resources, percent string }

func (c *counter) unseenOwners() []unseen {
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
