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

// Whoever may create pods in a namespace can have one pass for a pod of a colleague's notebook.
func TestDaysWithOtherPodsDoNotCount(t *testing.T) {
	monday := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	idle := func(days int, pod string) DeviceDay {
		day := monday.AddDate(0, 0, days)
		return DeviceDay{Day: day, LastSeen: day.AddDate(0, 0, 1), Seen: 24 * time.Hour, Pod: pod}
	}
	for name, c := range map[string]struct {
		days  []DeviceDay
		hours int
	}{
		"its own days":                      {[]DeviceDay{idle(0, "nb-0"), idle(1, "nb-0")}, 48},
		"of another pod only":               {[]DeviceDay{idle(0, "forged"), idle(1, "forged")}, 0},
		"of both":                           {[]DeviceDay{idle(0, "nb-0"), idle(1, "")}, 0},
		"since the other was seen last":     {[]DeviceDay{idle(0, ""), idle(1, "nb-0")}, 24},
		"in whatever order days are listed": {[]DeviceDay{idle(2, "nb-0"), idle(1, "forged"), idle(0, "nb-0")}, 24},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(PodIdleTime(c.days, "nb-0", monday)).To(Equal(time.Duration(c.hours) * time.Hour))
			g.Expect(PodIdleTime(c.days, "nb-0", monday)).To(BeNumerically("<=", IdleTime(c.days, monday)))
		})
	}
	NewWithT(t).Expect(PodIdleTime([]DeviceDay{idle(0, "before"), idle(1, "nb-0")}, "nb-0", monday.AddDate(0, 0, 1))).To(
		Equal(24*time.Hour), "before the pod began others may have been there")
}

func TestUsageOfOnePodNamesIt(t *testing.T) {
	g := NewWithT(t)
	of := func(pod string) Usage {
		return Usage{Accelerators: AcceleratorUsage{HeldSeconds: 60, LastSeen: 60, Pod: pod}}
	}
	g.Expect(of("a").Merge(of("a")).Accelerators.Pod).To(Equal("a"))
	g.Expect(of("a").Merge(of("b")).Accelerators.Pod).To(BeEmpty())
	g.Expect(of("a").Merge(of("")).Accelerators.Pod).To(BeEmpty())
	g.Expect(of("a").Merge(Usage{}).Accelerators.Pod).To(Equal("a"))
	g.Expect(Usage{}.Merge(of("a")).Accelerators.Pod).To(Equal("a"))
}
