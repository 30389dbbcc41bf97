package cost

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/usage/sizing"
)

var monday = time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC)

// anHour is a pod of alice's task ctr for an hour, of a GPU, eight cores and 16 GiB.
func anHour(with ...func(*Held)) Held {
	h := Held{
		Owner: Owner{Team: "ads", User: "alice", Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr"}, Tier: "exploratory",
		Role: sizing.Worker, Resources: Resources{"cpu": 8000, "memory": 16 << 10, gpu: 1000, "ephemeral-storage": 1 << 20},
		Outcome: "Succeeded", From: monday, Seconds: 3600, Pods: 1,
	}
	for _, f := range with {
		f(&h)
	}
	return h
}

func by(user string) func(*Held) { return func(h *Held) { h.Owner.User = user } }

func surplus(h *Held) { h.Surplus = true }

func model(name string) func(*Held) { return func(h *Held) { h.Model = name } }

// seen is what workers of ctr used: so many cores and GiB in so many tenths of the time; the rest is unknown.
func seen(cores float64, gib, tenths int64) Used {
	u := Used{Day: monday, Key: sizing.Key{
		Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr", Role: sizing.Worker, Container: "pytorch",
	}}
	u.RunSeconds, u.SeenSeconds, u.MemoryPeak = 1000, 100*tenths, gib<<30
	u.CPU.Add(cores, 1)
	return u
}

// active is for how many of the thousand seconds that were seen accelerators of ctr's workers were in use.
func active(seconds, tenths int64) Used {
	u := seen(0, 0, tenths)
	u.Key.Container, u.CPU, u.MemoryPeak = "", nil, 0
	u.Accelerators = sizing.AcceleratorUsage{HeldSeconds: 1000, ActiveMilliseconds: 1000 * seconds}
	return u
}

func day(held ...Held) *Input {
	return &Input{Period: PeriodUntil(monday.AddDate(0, 0, 1), 24*time.Hour, time.UTC), Prices: prices(example), Held: held}
}

func TestWhatAPodHourCosts(t *testing.T) {
	g := NewWithT(t)
	for name, c := range map[string]struct {
		held []Held
		want string
	}{
		"a GPU":            {[]Held{anHour()}, "10.74"}, // 8.50 + 8 × 0.22 + 16 × 0.03
		"a model":          {[]Held{anHour(model("A100"))}, "23.24"},
		"another model":    {[]Held{anHour(model("H100"))}, "10.74"},
		"surplus":          {[]Held{anHour(surplus)}, "7.34"}, // 8.50 × 0.6
		"no discount":      {[]Held{anHour(surplus, model("A100"))}, "23.24"},
		"half a GPU":       {[]Held{anHour(func(h *Held) { h.Resources = Resources{gpu: 500} })}, "4.25"},
		"nothing priced":   {[]Held{anHour(func(h *Held) { h.Resources = Resources{"pods": 1000} })}, "0"},
		"90 minutes":       {[]Held{anHour(func(h *Held) { h.Seconds = 5400 })}, "16.11"},
		"three of a pod":   {[]Held{anHour(), anHour(), anHour()}, "32.22"},
		"before any price": {[]Held{anHour(func(h *Held) { h.From = h.From.AddDate(-1, 0, 0) })}, "0"},
	} {
		g.Expect(ComputeReport(day(c.held...)).Total.Cost).To(equal(c.want), name)
	}
	r := ComputeReport(day(anHour()))
	g.Expect(r.Total.AcceleratorHours).To(equal("1"))
	g.Expect(r.Total.CPUHours).To(equal("8"))
	g.Expect(r.Total.MemoryGiBHours).To(equal("16"))
}

func TestPricesOfNodes(t *testing.T) {
	g := NewWithT(t)
	in := day(anHour(model("H100")))
	in.Prices = prices(example + "  nodes:\n  - {resource: nvidia.com/gpu, model: H100, devices: 8, cpuCores: 100, " +
		`memoryGiB: 1000, hourly: "400", surplusDiscount: "0.5"}`)
	// 400 × 0.95 / 8 + 8 × 400 × 0.03 / 100 + 16 × 400 × 0.02 / 1000
	g.Expect(ComputeReport(in).Total.Cost).To(equal("48.588"))
	in.Held[0].Surplus = true
	g.Expect(ComputeReport(in).Total.Cost).To(equal("24.838"))
	in.Held[0].Model = ""
	g.Expect(ComputeReport(in).Total.Cost).To(equal("7.34"), "other pods pay for cores what they did")
	in.Prices = prices(`{currency: CNY, prices: [{validFrom: "2026-01-01", nodes: [{resource: nvidia.com/gpu, devices: 8, ` +
		`cpuCores: 100, memoryGiB: 1000, hourly: "400"}]}]}`)
	in.Held = append(in.Held, anHour(func(h *Held) { h.Resources = Resources{"cpu": 1000, "memory": 1024} }))
	r := ComputeReport(in)
	g.Expect(r.Total.Cost).To(equal("48.588"))
	g.Expect(r.Notes).To(ContainElements(
		HavePrefix("The price list has no price of cpu, which pods held for 1.0 h"), HavePrefix("The price list has no price of "+
			"memory, which pods held for 1.0 h")))
}

// A sample stands in the middle of its bucket: of four cores 3.906, of sixteen 16.077.
func TestWhatWasUsed(t *testing.T) {
	g := NewWithT(t)
	for name, c := range map[string]struct {
		used                     []Used
		cost, waste, recoverable string
		devices, cpu, memory     Ratio
	}{
		"unknown": {nil, "10.74", "0", "0", Ratio{}, Ratio{}, Ratio{}},
		"less": {[]Used{seen(4, 4, 10)}, "10.74", "1.26068", "0.8", // 0.22 × 4.094 + 0.03 × 12; 0.22 × 2 + 0.03 × 12
			Ratio{}, Ratio{0.48825, true}, Ratio{0.25, true}},
		"less, half seen":       {[]Used{seen(4, 4, 5)}, "10.74", "0.63034", "0.4", Ratio{}, Ratio{0.48825, true}, Ratio{0.25, true}},
		"more":                  {[]Used{seen(16, 32, 10)}, "12.99694", "0", "0", Ratio{}, Ratio{1, true}, Ratio{1, true}},
		"more, half seen":       {[]Used{seen(16, 32, 5)}, "11.86847", "0", "0", Ratio{}, Ratio{1, true}, Ratio{1, true}},
		"a GPU":                 {[]Used{active(250, 10)}, "10.74", "6.375", "0", Ratio{0.25, true}, Ratio{}, Ratio{}},
		"a GPU half seen":       {[]Used{active(250, 5)}, "10.74", "3.1875", "0", Ratio{0.25, true}, Ratio{}, Ratio{}},
		"more active than held": {[]Used{active(2000, 10)}, "10.74", "0", "0", Ratio{1, true}, Ratio{}, Ratio{}},
		"another role": {[]Used{{Day: monday, Key: sizing.Key{Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr",
			Role: sizing.Master}, Usage: active(250, 10).Usage}}, "10.74", "0", "0", Ratio{}, Ratio{}, Ratio{}},
		"another day": {[]Used{{Day: monday.AddDate(0, 0, 1), Key: active(0, 1).Key, Usage: active(250, 10).Usage}}, "10.74", "0", "0",
			Ratio{}, Ratio{}, Ratio{}},
	} {
		in := day(anHour())
		in.Used = c.used
		in.Granted = func(role sizing.Key, tier string) (Granted, bool) {
			g.Expect(role).To(Equal(sizing.Key{Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr", Role: sizing.Worker}))
			g.Expect(tier).To(Equal("exploratory"))
			return Granted{Millicores: 6000, MemoryBytes: 3 << 30}, true // use is more than what is granted of memory
		}
		r := ComputeReport(in)
		g.Expect(r.Total.Cost).To(equal(c.cost), name)
		g.Expect(r.Total.Waste).To(equal(c.waste), name)
		g.Expect(r.Total.Recoverable).To(equal(c.recoverable), name)
		g.Expect(r.Total.Utilization).To(Equal(c.devices), name)
		g.Expect(r.Total.CPUUtilization).To(Equal(c.cpu), name)
		g.Expect(r.Total.MemoryUtilization).To(Equal(c.memory), name)
		in.Granted = nil
		g.Expect(ComputeReport(in).Total.Recoverable).To(equal("0"), name)
	}
}

func TestUseOfARole(t *testing.T) {
	g := NewWithT(t)
	of := roleDayOf(monday, seen(0, 0, 0).Key)
	for name, c := range map[string]struct {
		used []Used
		want use
	}{
		"more active than held": {[]Used{active(2000, 5)}, use{devicesSeen: billion / 2, devicesActive: billion / 2}},
		"less than not at all":  {[]Used{active(-1, 5)}, use{devicesSeen: billion / 2}},
		"two containers, one of them for half of the time": {
			[]Used{seen(4, 3, 10), seen(4, 3, 5)}, use{cpuSeen: billion, memorySeen: billion, microcores: 5_859_000, bytes: 9 << 29},
		},
		"more was seen than ran": {
			[]Used{seen(0, 3, 20)}, use{cpuSeen: billion, memorySeen: billion, microcores: 1000, bytes: 3 << 30},
		},
		"nothing": {[]Used{seen(4, 3, 0)}, use{}},
	} {
		g.Expect(usesOf(c.used)[of]).To(Equal(c.want), name)
	}
	held := seen(4, 3, 10)
	held.MemoryHeld = 4 << 30
	g.Expect(usesOf([]Used{held})[of].bytes).To(BeEquivalentTo(4<<30), "what was held down used that much at least")
}

func TestRankings(t *testing.T) {
	g := NewWithT(t)
	teamless := func(h *Held) { h.Owner.Team = "" }
	in := day(anHour(by("bob")), anHour(by("alice")), anHour(by("carol"), model("A100")), anHour(by("")),
		anHour(by("alice"), teamless), anHour(by("dave"), surplus))
	in.Runs = []Runs{{Owner: in.Held[0].Owner, Runs: 3}, {Owner: in.Held[4].Owner, Runs: 2}}
	r := ComputeReport(in)
	var users []string
	for _, row := range r.By[ByUser] {
		users = append(users, fmt.Sprintf("%s/%s %s", row.Key.User, row.Key.Team, row.Cost))
	}
	g.Expect(users).To(Equal([]string{"carol/ads 23.24", "alice/ 21.48", "/ads 10.74", "bob/ads 10.74", "dave/ads 7.34"}),
		"ties in the order of their keys")
	g.Expect(rowOf(r, ByTeam, Key{Team: "ads"}).Cost).To(equal("62.8"))
	g.Expect(rowOf(r, ByTeam, Key{}).Cost).To(equal("10.74"))
	g.Expect(r.By[ByTask]).To(HaveLen(1))
	g.Expect(r.By[ByTask][0].Key).To(Equal(Key{Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr"}))
	g.Expect(rowOf(r, ByUser, Key{User: "bob"}).Share.Value).To(BeNumerically("~", 10.74/73.54, 1e-9))
	g.Expect(rowOf(r, ByUser, Key{User: "bob"}).Runs).To(BeEquivalentTo(3))
	g.Expect(r.Total.Runs).To(BeEquivalentTo(5))
	g.Expect(r.Total.Pods).To(BeEquivalentTo(6))
	g.Expect(r.Notes).To(ContainElement("CNY 10.74 was paid for pods without a known owner."))
	g.Expect(ComputeReport(day()).Total.Share).To(Equal(Ratio{}))
}

func TestOutcomesAndMerges(t *testing.T) {
	g := NewWithT(t)
	ended := func(outcome string) func(*Held) { return func(h *Held) { h.Outcome = outcome } }
	merge := func(h *Held) { h.Owner.Kind = "MergeJob" }
	in := day(anHour(ended("")), anHour(ended("Lost")), anHour(ended("Deleted")), anHour(ended("Failed"), merge), anHour())
	in.Runs = []Runs{{Owner: in.Held[3].Owner, Runs: 7}, {Owner: in.Held[0].Owner, Runs: 1}}
	r := ComputeReport(in)
	var names []string
	for _, o := range r.Outcomes {
		names = append(names, o.Name)
		g.Expect(o.Cost).To(equal("10.74"))
		g.Expect(o.Share).To(Equal(Ratio{0.2, true}))
		g.Expect(o.Pods).To(BeEquivalentTo(1))
	}
	g.Expect(names).To(Equal([]string{"Succeeded", "Failed", "Cancelled", "Lost", "Running"}))
	g.Expect(r.Merges.Runs).To(BeEquivalentTo(7))
	g.Expect(r.Merges.Cost).To(equal("10.74"))
}

func TestWhatWasLost(t *testing.T) {
	g := NewWithT(t)
	victim, winner := anHour(by("alice")), anHour(by("bob"))
	winner.Owner.Team, winner.Owner.Task = "rec", "fast"
	in := day(victim, victim, winner)
	gang := func(since, until time.Time) []LostPods {
		return []LostPods{{Number: 2, Since: since, Until: until, Resources: victim.Resources}}
	}
	in.Losses = []Loss{
		{Of: victim.Owner, For: &winner.Owner, Pods: gang(monday.Add(-time.Hour), monday.Add(30*time.Minute))},
		{Of: victim.Owner, Pods: gang(monday.Add(23*time.Hour), monday.Add(30*time.Hour))},
		{Of: victim.Owner, For: &winner.Owner, Pods: gang(monday.AddDate(0, 0, -2), monday.AddDate(0, 0, -1))},
	}
	r := ComputeReport(in)
	g.Expect(r.Lost.Incidents).To(BeEquivalentTo(3))
	g.Expect(r.Lost.Preemptions).To(equal("10.74"), "of the period only")
	g.Expect(r.Lost.Restarts).To(equal("21.48"))
	g.Expect(r.Total.Cost).To(equal("32.22"))
	for dimension, keys := range map[Dimension][2]Key{
		ByUser: {{User: "alice"}, {User: "bob"}}, ByTeam: {{Team: "ads"}, {Team: "rec"}},
		ByTask: {
			{Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr"}, {Namespace: "ads", Kind: "ElasticTrainingJob", Task: "fast"},
		},
	} {
		g.Expect(rowOf(r, dimension, keys[0]).Cost).To(equal("10.74"), "half of what it held is not charged to the victim")
		g.Expect(rowOf(r, dimension, keys[1]).Cost).To(equal("21.48"))
		g.Expect(rowOf(r, dimension, keys[1]).AcceleratorHours).To(equal("1"))
	}
	in.Losses[0].Pods[0].Number = 1000
	g.Expect(rowOf(ComputeReport(in), ByUser, Key{User: "alice"}).Cost).To(equal("0"), "no cost is negative")
	poor := Owner{User: "poor"}
	in.Losses = []Loss{{Of: poor, For: &winner.Owner, Pods: gang(monday, monday.Add(time.Hour))}}
	r = ComputeReport(in)
	g.Expect(rowOf(r, ByUser, Key{User: "bob"}).Cost).To(equal("10.74"), "what was not paid is not moved")
	g.Expect(r.By[ByUser]).To(HaveLen(2))
}

func TestRoomAndWaits(t *testing.T) {
	g := NewWithT(t)
	in := day()
	in.Period = PeriodUntil(monday.AddDate(0, 0, 2), 72*time.Hour, time.UTC)
	g.Expect(ComputeReport(in).Room).To(BeNil())
	in.Mix = "the mix"
	in.Rooms = []Measured{
		{monday, 10, Ratio{0.5, true}}, {monday.Add(time.Hour), 30, Ratio{0.1, true}}, {monday.Add(2 * time.Hour), 20, Ratio{}},
		{monday.AddDate(0, 0, 1), 0, Ratio{0, true}}, {monday.AddDate(0, 0, 9), 1000, Ratio{1, true}},
	}
	in.Waits = []Wait{{"ads/b", time.Hour}, {"ads/a", time.Hour}, {"ads/c", time.Minute}, {"ads/d", 3 * time.Minute}}
	r := ComputeReport(in)
	g.Expect(*r.Room).To(Equal(Room{Free: 15, Unusable: Ratio{0.2, true}, Mix: "the mix"}))
	g.Expect(r.Days).To(HaveExactElements(
		And(HaveField("Free", 0.0), HaveField("Unusable", Ratio{})),
		And(HaveField("Free", 20.0), HaveField("Unusable", Ratio{0.2, true})),
		And(HaveField("Free", 0.0), HaveField("Unusable", Ratio{})),
	))
	g.Expect(r.Waits).To(Equal(Waits{Gangs: 4, Median: 31*time.Minute + 30*time.Second, Longest: time.Hour, LongestOf: "ads/a"}))
	in.Waits = in.Waits[:1]
	g.Expect(ComputeReport(in).Waits.Median).To(Equal(time.Hour))
}

func TestChangeAgainstTheLastReport(t *testing.T) {
	g := NewWithT(t)
	yesterday := day(anHour(by("alice")), anHour(by("eve")))
	yesterday.Period = PeriodUntil(monday, 24*time.Hour, time.UTC)
	yesterday.Rooms = []Measured{{monday.Add(-time.Hour), 4, Ratio{0.5, true}}}
	kept, err := json.Marshal(ComputeReport(yesterday).Summary())
	g.Expect(err).NotTo(HaveOccurred())
	var last Earlier
	g.Expect(json.Unmarshal(kept, &last)).To(Succeed())
	in := day(anHour(by("alice"), surplus), anHour(by("bob")))
	in.Held[0].Owner.Team = "other"
	of := func(change func(*Earlier)) Earlier {
		e := last
		e.Total.Cost = d("1")
		change(&e)
		return e
	}
	in.Earlier = []Earlier{
		last,
		of(func(e *Earlier) { e.From, e.To = e.From.AddDate(0, 0, -1), e.To.AddDate(0, 0, -1) }),
		of(func(e *Earlier) { e.From = e.From.Add(-130 * time.Minute) }),
		of(func(e *Earlier) { e.Currency = "EUR" }),
		of(func(e *Earlier) { e.From, e.To = in.Period.From, in.Period.To }),
	}
	r := ComputeReport(in)
	g.Expect(r.Before.Cost).To(equal("21.48"))
	g.Expect(r.Before.Unusable).To(Equal(Ratio{0.5, true}))
	g.Expect(*r.Total.Before).To(equal("21.48"))
	g.Expect(*rowOf(r, ByUser, Key{User: "alice"}).Before).To(equal("10.74"), "also of another team")
	g.Expect(*rowOf(r, ByUser, Key{User: "bob"}).Before).To(equal("0"))
	hour := day()
	hour.Period.From = hour.Period.To.Add(-time.Hour)
	hour.Earlier = []Earlier{of(func(e *Earlier) { e.From = e.To.Add(-2 * time.Hour) })}
	g.Expect(ComputeReport(hour).Before).To(BeNil(), "two hours are not one, whatever clocks do")
	in.Earlier = in.Earlier[2:]
	r = ComputeReport(in)
	g.Expect(r.Before).To(BeNil())
	g.Expect(r.Total.Before).To(BeNil())
	g.Expect(r.By[ByUser][0].Before).To(BeNil())
}

// periods are earlier reports of so much each. The last one ends when the period begins.
func periods(in *Input, costs ...float64) []Earlier {
	var all []Earlier
	for i, cost := range costs {
		to := in.Period.From.AddDate(0, 0, i+1-len(costs))
		all = append(all, Earlier{From: to.AddDate(0, 0, -1), To: to, Currency: "CNY", Total: Total{Cost: decimal.NewFromFloat(cost)}})
	}
	return all
}

func TestForecast(t *testing.T) {
	g := NewWithT(t)
	in := day(anHour()) // 10.74
	in.Earlier = periods(in, 9.74)
	g.Expect(ComputeReport(in).Forecast).To(BeNil(), "two are too few")
	in.Earlier = periods(in, 8.74, 9.74)
	f := ComputeReport(in).Forecast
	g.Expect(f.Cost).To(equal("11.74"))
	g.Expect(f.Low).To(equal("11.74"))
	g.Expect(f.Periods).To(Equal(3))
	in.Earlier = periods(in, 1000, 100)
	f = ComputeReport(in).Forecast
	g.Expect(f.Cost).To(equal("0"), "never less than nothing")
	g.Expect(f.Low).To(equal("0"))
	g.Expect(f.High.IsPositive()).To(BeTrue())
	in.Earlier = periods(in, append([]float64{1e6, 1e6, 1e6}, make([]float64, 11)...)...)
	g.Expect(ComputeReport(in).Forecast.Periods).To(Equal(12))
	g.Expect(ComputeReport(in).Forecast.Cost.LessThan(d("100"))).To(BeTrue(), "what is long ago does not count")
}

// Of costs around a line four in five are within the bounds, however many periods there were.
func TestForecastHoldsFourTimesOfFive(t *testing.T) {
	g := NewWithT(t)
	r := rand.New(rand.NewPCG(5, 6))
	in := day(anHour())
	for _, n := range []int{3, 4, 6, 12} {
		const tries = 2000
		within := 0
		for range tries {
			slope := r.Float64() * 10
			costs := make([]float64, n+1)
			for i := range costs {
				costs[i] = 10_000 + slope*float64(i) + 100*r.NormFloat64()
			}
			in.Held[0].Resources = Resources{"cpu": int64(costs[n-1] * 1000 / 0.22)}
			in.Earlier = periods(in, costs[:n-1]...)
			f := ComputeReport(in).Forecast
			g.Expect(f.Periods).To(Equal(n))
			next := decimal.NewFromFloat(costs[n])
			if !next.LessThan(f.Low) && !next.GreaterThan(f.High) {
				within++
			}
		}
		g.Expect(float64(within)/tries).To(BeNumerically("~", 0.8, 0.03), "of %d periods", n)
	}
}

func TestNotes(t *testing.T) {
	g := NewWithT(t)
	in := day(anHour(), anHour(func(h *Held) { h.Uncertain = 1800 }))
	in.Used = []Used{active(500, 10), seen(4, 4, 5)}
	in.Notes = []string{"Somebody else's."}
	in.Accelerators = []string{"amd.com/gpu"}
	in.Held[0].Resources = Resources{"amd.com/gpu": 2000}
	in.Held = append(in.Held, anHour(func(h *Held) { h.From, h.Role = time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC), "" }))
	r := ComputeReport(in)
	g.Expect(r.Notes).To(Equal([]string{
		"Somebody else's.",
		"Pods ran for 1.0 h before 2026-01-01, when the first prices of the list begin. These hours are counted at no cost. Add " +
			"prices from an earlier day.",
		"The price list has no price of amd.com/gpu, which pods held for 1.0 h. These hours are counted at no cost. Add a price.",
		"The use of accelerators is known for 75 % of what was held. The rest counts neither as used nor as wasted.",
		"The use of CPU is known for 22 % of what was held. The rest counts neither as used nor as wasted.",
		"The use of memory is known for 24 % of what was held. The rest counts neither as used nor as wasted.",
		"16.7 % of the time is on days on which a pod ended while no operator was running, so its end is a guess.",
	}))
	g.Expect(r.Total.AcceleratorHours).To(equal("4"), "what has no price is counted")
	g.Expect(r.Total.Uncertain.Value).To(BeNumerically("~", 1.0/6, 1e-9))
	g.Expect(ComputeReport(day(anHour())).Notes).To(Equal([]string{
		"The use of accelerators, CPU and memory is known for 0 % of what was held. The rest counts neither as used nor as " +
			"wasted.",
	}))
	in = day(anHour())
	in.Used = []Used{active(500, 10), seen(4, 4, 10)}
	g.Expect(ComputeReport(in).Notes).To(BeEmpty())
}
