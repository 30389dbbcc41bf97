package cost

import (
	"slices"
	"time"
)

const wholeDay = 24 * time.Hour

// PeriodUntil is the period of a length that ends at a time. Each 24 hours of its length are a day of the zone, which may have 23
// or 25, so that periods which end at the same time of day follow one another without a gap.
func PeriodUntil(to time.Time, length time.Duration, zone *time.Location) Period {
	to = to.In(zone).Truncate(time.Second)
	return Period{From: to.AddDate(0, 0, -int(length/wholeDay)).Add(-(length % wholeDay)), To: to}
}

// CutTimes are From, To, and all midnights between them, of the zone and of UTC, in their order: between two of them the price,
// the day of the report and the day of the metrics are each the same.
func (p Period) CutTimes() []time.Time {
	cuts := []time.Time{p.From}
	for midnight := nextDay(p.From); midnight.Before(p.To); midnight = nextDay(midnight) {
		cuts = append(cuts, midnight)
	}
	for midnight := nextDay(p.From.UTC()); midnight.Before(p.To); midnight = nextDay(midnight) {
		cuts = append(cuts, midnight.In(p.From.Location()))
	}
	cuts = append(cuts, p.To)
	slices.SortFunc(cuts, time.Time.Compare)
	return slices.CompactFunc(cuts, time.Time.Equal)
}

// dayOf is when the day of a time begins in its zone.
func dayOf(t time.Time) time.Time {
	y, m, d := t.Date()
	return beginOfDay(y, m, d, t.Location())
}

// nextDay is when the day after that of a time begins in its zone.
func nextDay(t time.Time) time.Time {
	y, m, d := t.Date()
	return beginOfDay(y, m, d+1, t.Location())
}

// beginOfDay is when a day begins: at midnight, of two midnights at the first, and where a clock is set forward over
// midnight, then. Of such days time.Date knows no midnight, or either.
func beginOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	noon := time.Date(year, month, day, 12, 0, 0, 0, zone)
	midnight := noon.Add(-wholeDay / 2)
	set, _ := noon.ZoneBounds()
	if set.Before(midnight) {
		return midnight
	}
	_, before := set.Add(-time.Second).Zone()
	_, after := noon.Zone()
	if early := midnight.Add(time.Duration(after-before) * time.Second); early.Before(set) {
		return early
	}
	return set
}
