package cost

import (
	"time"

	"github.com/shopspring/decimal"
)

// places are how many digits behind the point amounts have where they are divided: an hour has 3,600 seconds, and a ninth has no
// end. It is done once for each [Held], so that whatever it is summed by has the same sum.
const places = 18

// minorUnits are the digits behind the point of currencies that have not two (ISO 4217).
var minorUnits = map[string]int32{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0, "UGX": 0, "UYI": 0, "VND": 0,
	"VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
	"CLF": 4, "UYW": 4,
}

// RoundAmount rounds an amount of money, half to even, to what the currency is paid in. It is done once, where an amount is
// written.
func RoundAmount(amount decimal.Decimal, currency string) decimal.Decimal {
	return amount.RoundBank(MinorUnits(currency))
}

// MinorUnits is how many digits a currency has behind the point, by its ISO 4217 code; 2 for an unknown code.
func MinorUnits(currency string) int32 {
	if places, listed := minorUnits[currency]; listed {
		return places
	}
	return 2
}

// Prices is a price list with the days from which prices hold. [ParsePrices] makes it.
type Prices struct {
	// Currency by its ISO 4217 code.
	Currency string
	// validities are in the order of their days.
	validities []validity
}

// validity is what things cost from a day on.
type validity struct {
	// from has the day, as one of UTC.
	from time.Time
	// core and gib are for an hour of pods that hold no device of a node below; nil if unknown.
	core, gib *decimal.Decimal
	devices   map[device]price
}

// device is what accelerators are told apart by. Without a model it is all others of the resource.
type device struct{ resource, model string }

// price is what a device costs.
type price struct {
	hourly decimal.Decimal
	// kept is the share of it that surplus workers pay.
	kept decimal.Decimal
	// core and gib are what these cost pods that hold such devices; nil for the same as others.
	core, gib *decimal.Decimal
}

// validAt are the prices at a time, by the day of its zone; nil before the first ones.
func (p *Prices) validAt(t time.Time) *validity {
	y, m, d := t.Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	var last *validity
	for i := range p.validities {
		if !p.validities[i].from.After(day) {
			last = &p.validities[i]
		}
	}
	return last
}

// priceOf is the price of a device: that of its model, or else of the resource.
func (v *validity) priceOf(resource, model string) (price, bool) {
	for _, d := range []device{{resource, model}, {resource: resource}} {
		if p, known := v.devices[d]; known {
			return p, true
		}
	}
	return price{}, false
}
