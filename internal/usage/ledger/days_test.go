package ledger

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestSplit(t *testing.T) {
	g := NewWithT(t)
	const day = secondsOfDay
	g.Expect(splitAtMidnights(day+10, day+20)).To(Equal([]span{{1, day + 10, day + 20}}))
	g.Expect(splitAtMidnights(day+10, 3*day+5)).To(Equal([]span{{1, day + 10, 2 * day}, {2, 2 * day, 3 * day}, {3, 3 * day,
		3*day + 5}}))
	g.Expect(splitAtMidnights(day, 2*day)).To(Equal([]span{{1, day, 2 * day}}), "midnight is of the day that ends")
	g.Expect(splitAtMidnights(day, day)).To(Equal([]span{{1, day, day}}))
	g.Expect(splitAtMidnights(2*day+7, day)).To(Equal([]span{{2, 2*day + 7, 2*day + 7}}), "never negative")
}

func TestDaysOfARange(t *testing.T) {
	const day = secondsOfDay
	for _, c := range []struct {
		name     string
		from, to string
		whole    int64
		partial  []span
	}{
		{"rolling window", "14 09:00:00", "21 09:00:00", 6, []span{{0, 9 * 3600, day}, {7, 7 * day, 7*day + 9*3600}}},
		{"whole days", "14 00:00:00", "21 00:00:00", 7, nil},
		{"one whole day", "14 00:00:00", "15 00:00:00", 1, nil},
		{"from midnight", "14 00:00:00", "15 00:00:01", 1, []span{{1, day, day + 1}}},
		{"until midnight", "14 23:59:59", "16 00:00:00", 1, []span{{0, day - 1, day}}},
		{"within a day", "14 01:00:00", "14 02:00:00", 0, []span{{0, 3600, 7200}}},
		{"from a midnight within a day", "14 00:00:00", "14 02:00:00", 0, []span{{0, 0, 7200}}},
		{"over a midnight", "14 23:00:00", "15 01:00:00", 0, []span{{0, 23 * 3600, day}, {1, day, day + 3600}}},
		{"empty", "14 01:00:00", "14 01:00:00", 0, nil},
		{"backwards", "15 01:00:00", "14 01:00:00", 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			whole, partial := Query{From: at(c.from), To: at(c.to)}.splitRange()
			first := at("14 00:00:00").Unix() / day
			for i := range partial {
				partial[i].day -= first
				partial[i].begin -= first * day
				partial[i].end -= first * day
			}
			g.Expect(max(whole.end-whole.begin, 0)).To(Equal(c.whole))
			g.Expect(partial).To(Equal(c.partial))
		})
	}
}

func TestResourcesAreTheSameTextAndBounded(t *testing.T) {
	g := NewWithT(t)
	r := Resources{"nvidia.com/gpu": 250, "cpu": MaxAmount + 1, "memory": 0, "ephemeral-storage": -3, "a\x00\xff": 1}
	g.Expect(r.canonicalText()).To(Equal("{\"a\uFFFD\uFFFD\":1,\"cpu\":10000000000,\"nvidia.com/gpu\":250}"))
	g.Expect(Resources(nil).canonicalText()).To(Equal("{}"))
}
