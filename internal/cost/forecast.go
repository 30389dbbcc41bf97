package cost

import (
	"math"
	"slices"
	"time"

	"github.com/shopspring/decimal"
)

const (
	// fewestPeriods is how many periods a forecast needs, and mostPeriods how many count.
	fewestPeriods, mostPeriods = 3, 12
	// clocks is by how much clocks that are set make periods differ that are as long.
	clocks = 2 * time.Hour
)

// comparablePeriods are the earlier periods that are as long as this one, in their order.
func (in *Input) comparablePeriods() []Earlier {
	length := in.Period.To.Sub(in.Period.From)
	like := slices.DeleteFunc(slices.Clone(in.Earlier), func(e Earlier) bool {
		differs := (e.To.Sub(e.From) - length).Abs()
		return e.Currency != in.Prices.Currency || !e.To.Before(in.Period.To) || differs > clocks || 10*differs > length
	})
	slices.SortFunc(like, func(a, b Earlier) int { return a.To.Compare(b.To) })
	return like
}

// compareWith records the cost that each row had in the last of the earlier periods.
func (r *Report) compareWith(periods []Earlier) {
	if len(periods) == 0 {
		return
	}
	last := &periods[len(periods)-1]
	r.Before = &last.Total
	r.Total.Before = &last.Total.Cost
	type key struct {
		Dimension
		Key
	}
	costs := make(map[key]decimal.Decimal, len(last.Rows))
	for _, row := range last.Rows {
		costs[key{row.Dimension, row.Key.withoutDetails(row.Dimension)}] = row.Cost
	}
	for dimension, rows := range r.By {
		for i := range rows {
			before := costs[key{dimension, rows[i].Key.withoutDetails(dimension)}]
			rows[i].Before = &before
		}
	}
}

// withoutDetails is the key without what only says more of a row, and may change.
func (k Key) withoutDetails(dimension Dimension) Key { return keyOf(dimension, Owner(k)) }

// Summary is what the reports of later periods compare with this one.
func (r *Report) Summary() Earlier {
	e := Earlier{
		From: r.Period.From, To: r.Period.To, Currency: r.Currency,
		Total: Total{Cost: r.Total.Cost, Utilization: r.Total.Utilization, Waste: r.Total.Waste},
	}
	if r.Room != nil {
		e.Total.Unusable = r.Room.Unusable
	}
	for _, dimension := range Dimensions {
		for i := range r.By[dimension] {
			e.Rows = append(e.Rows, EarlierRow{dimension, r.By[dimension][i].Key, r.By[dimension][i].Cost})
		}
	}
	return e
}

// quantiles90 are the 90 % quantiles of Student's distribution, by degrees of freedom from 1.
var quantiles90 = [mostPeriods - 2]float64{3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372}

// forecastNext is what the next period is likely to cost: on the line of least squares through the last periods and this
// one, and between the bounds of its interval of prediction, within which four of five lie if what is off the line is
// normal (Draper and Smith, Applied Regression Analysis, 3.1). It is nil if there are too few periods. It uses floating
// point, because it is an estimate and no amount that is charged.
func forecastNext(in *Input, earlier []Earlier, cost decimal.Decimal) *Forecast {
	var x, y []float64
	length := in.Period.To.Sub(in.Period.From)
	for i := range earlier {
		x = append(x, -float64(in.Period.To.Sub(earlier[i].To))/float64(length))
		y = append(y, earlier[i].Total.Cost.InexactFloat64())
	}
	x, y = append(x, 0), append(y, cost.InexactFloat64())
	n := min(len(x), mostPeriods)
	if n < fewestPeriods {
		return nil
	}
	x, y = x[len(x)-n:], y[len(y)-n:]
	expected, deviation := predict(x, y, 1)
	off := quantiles90[n-fewestPeriods] * deviation
	return &Forecast{
		Cost: roundMoney(expected, in), Low: roundMoney(expected-off, in), High: roundMoney(expected+off, in), Periods: n,
	}
}

// roundMoney is a guess as it is paid; nothing costs less than nothing.
func roundMoney(guess float64, in *Input) decimal.Decimal {
	return RoundAmount(decimal.NewFromFloat(max(guess, 0)), in.Prices.Currency)
}

// predict is the value at a place on the line of least squares, and the standard deviation of what is measured there. Places are
// not all the same.
func predict(x, y []float64, at float64) (expected, deviation float64) {
	n := float64(len(x))
	var meanX, meanY float64
	for i := range x {
		meanX += x[i] / n
		meanY += y[i] / n
	}
	var xx, xy float64
	for i := range x {
		xx += (x[i] - meanX) * (x[i] - meanX)
		xy += (x[i] - meanX) * (y[i] - meanY)
	}
	slope := xy / xx
	var squares float64
	for i := range x {
		off := y[i] - meanY - slope*(x[i]-meanX)
		squares += off * off
	}
	return meanY + slope*(at-meanX), math.Sqrt(squares / (n - 2) * (1 + 1/n + (at-meanX)*(at-meanX)/xx))
}
