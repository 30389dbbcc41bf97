package report

import (
	"strings"

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
)

// Figures are those of a report that stand where there is little room. What is unknown is empty.
type Figures struct {
	// Total cost, and what of it was wasted and could have been saved, with the currency.
	Total, Waste, Recoverable string
	// Utilization of accelerators, and the share of free ones that no gang could use, in percent.
	Utilization, Unusable string
}

// FiguresOf are the figures of a report.
func FiguresOf(r *cost.Report) Figures {
	m := moneyOf(r.Currency)
	f := Figures{Total: plainBlanks(m.withCurrency(r.Total.Cost))}
	if hasKnownUse(r.Total) {
		f.Waste, f.Recoverable = plainBlanks(m.withCurrency(r.Total.Waste)), plainBlanks(m.withCurrency(r.Total.Recoverable))
	}
	if r.Total.Utilization.Known {
		f.Utilization = plainBlanks(formatPercent(r.Total.Utilization))
	}
	if r.Room != nil && r.Room.Unusable.Known {
		f.Unusable = plainBlanks(formatPercent(r.Room.Unusable))
	}
	return f
}

// Numbers are the same figures for programs: amounts in the currency, rounded to what it is paid in, and shares from 0 to 1. What
// is unknown is nil.
type Numbers struct {
	Currency    string   `json:"currency"`
	Cost        float64  `json:"cost"`
	Waste       *float64 `json:"waste,omitempty"`
	Recoverable *float64 `json:"recoverable,omitempty"`
	Utilization *float64 `json:"utilization,omitempty"`
	Unusable    *float64 `json:"unusable,omitempty"`
}

// NumbersOf are the numbers of a report.
func NumbersOf(r *cost.Report) Numbers {
	amount := func(d decimal.Decimal) float64 { return cost.RoundAmount(d, r.Currency).InexactFloat64() }
	share := func(s cost.Ratio) *float64 {
		if !isKnown(s) {
			return nil
		}
		return &s.Value
	}
	n := Numbers{Currency: r.Currency, Cost: amount(r.Total.Cost), Utilization: share(r.Total.Utilization)}
	if hasKnownUse(r.Total) {
		waste, recoverable := amount(r.Total.Waste), amount(r.Total.Recoverable)
		n.Waste, n.Recoverable = &waste, &recoverable
	}
	if r.Room != nil {
		n.Unusable = share(r.Room.Unusable)
	}
	return n
}

// plainBlanks has blanks as terminals know them.
func plainBlanks(s string) string { return strings.ReplaceAll(s, blank, " ") }
