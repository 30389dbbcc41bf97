package cost

import (
	"cmp"
	"slices"
	"time"
)

// freeRoom is how much was free in the period; nil if it was not measured.
func (in *Input) freeRoom() *Room {
	if len(in.Rooms) == 0 {
		return nil
	}
	r := &Room{Mix: in.Mix}
	r.Free, r.Unusable = meanRoom(in.Rooms, in.Period.From, in.Period.To)
	return r
}

// meanRoom is the mean of the measurements of free accelerators, and the share of them that no gang could use.
func meanRoom(rooms []Measured, from, to time.Time) (free float64, unusable Ratio) {
	rooms = slices.DeleteFunc(slices.Clone(rooms), func(m Measured) bool { return m.At.Before(from) || !m.At.Before(to) })
	slices.SortFunc(rooms, func(a, b Measured) int { // so that the sum is the same whatever their order
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Free, b.Free), cmp.Compare(a.Unusable.Value, b.Unusable.Value))
	})
	var sum, asked, lying float64
	for _, m := range rooms {
		sum += m.Free
		if m.Unusable.Known {
			asked += m.Free
			lying += m.Free * m.Unusable.Value
		}
	}
	if len(rooms) == 0 {
		return 0, Ratio{}
	}
	if asked > 0 {
		unusable = Ratio{Value: lying / asked, Known: true}
	}
	return sum / float64(len(rooms)), unusable
}

// sumWaits sums up how long gangs waited.
func sumWaits(all []Wait) Waits {
	if len(all) == 0 {
		return Waits{}
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b Wait) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(b.Job, a.Job))
	})
	n := len(all)
	return Waits{
		Gangs: int64(n), Median: (all[(n-1)/2].Time + all[n/2].Time) / 2, Longest: all[n-1].Time, LongestOf: all[n-1].Job,
	}
}
