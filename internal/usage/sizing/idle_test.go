package sizing

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestTimeWithoutUse(t *testing.T) {
	monday := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	at := func(days, hours int) time.Time {
		return monday.AddDate(0, 0, days).Add(time.Duration(hours) * time.Hour)
	}
	seen := func(days, busy, until, hours int) DeviceDay {
		d := DeviceDay{Day: at(days, 0), LastSeen: at(days, until), Seen: time.Duration(hours) * time.Hour}
		if busy > 0 {
			d.LastBusy = at(days, busy)
		}
		return d
	}
	for name, c := range map[string]struct {
		days  []DeviceDay
		since time.Time
		hours int
	}{
		"nothing seen":                      {nil, at(0, 0), 0},
		"never in use":                      {[]DeviceDay{seen(0, 0, 24, 24), seen(1, 0, 6, 6)}, at(0, 0), 30},
		"since the last use":                {[]DeviceDay{seen(0, 20, 24, 24), seen(1, 0, 6, 6)}, at(0, 0), 10},
		"in use today":                      {[]DeviceDay{seen(0, 0, 24, 24), seen(1, 5, 6, 6)}, at(0, 0), 1},
		"not before the pod began":          {[]DeviceDay{seen(0, 0, 24, 24), seen(1, 0, 6, 6)}, at(1, 2), 4},
		"time without samples is not idle":  {[]DeviceDay{seen(0, 0, 24, 3), seen(2, 0, 6, 2)}, at(0, 0), 5},
		"in whatever order days are listed": {[]DeviceDay{seen(1, 0, 6, 6), seen(0, 20, 24, 24)}, at(0, 0), 10},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(IdleTime(c.days, c.since)).To(Equal(time.Duration(c.hours) * time.Hour))
		})
	}
	g := NewWithT(t)
	_, known := DeviceDayOf(monday, Usage{SeenSeconds: 60})
	g.Expect(known).To(BeFalse(), "nobody saw an accelerator")
	old := Usage{SeenSeconds: 3600, Accelerators: AcceleratorUsage{HeldSeconds: 3600, ActiveMilliseconds: 1}}
	d, known := DeviceDayOf(monday, old)
	g.Expect(known).To(BeTrue())
	g.Expect(IdleTime([]DeviceDay{d}, monday)).To(BeZero(), "a day of an older operator in which it was in use")
}
