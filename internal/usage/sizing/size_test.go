package sizing

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

var noon = time.Date(2026, time.March, 9, 12, 0, 0, 0, time.UTC)

const gib = 1 << 30

// aDay is a whole day of a container that used so many processors and so much memory.
func aDay(processors float64, memory int64) Usage {
	u := Usage{RunSeconds: day, SeenSeconds: day, EvidenceSeconds: day, MemoryPeak: memory}
	u.CPU.Add(processors, 288)
	return u
}

// trainer is the history of container trainer of a job's workers: of days, one after another, the last one yesterday.
func trainer(days ...Usage) History {
	h := History{WindowDays: 7}
	for i, u := range days {
		h.Add(Part{Worker, "trainer"}, noon.AddDate(0, 0, i-len(days)), u)
	}
	return h
}

func repeat(u Usage, n int) []Usage {
	all := make([]Usage, n)
	for i := range all {
		all[i] = u
	}
	return all
}

// asking is a worker with container trainer, whose limits are what it requests.
func asking(cpu, memory string) Ask {
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	return Ask{Worker, []corev1.Container{{
		Name: "trainer", Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts.DeepCopy()},
	}}}
}

func tier(name string) config.Tier {
	t, _ := config.DefaultTiers().FindTier(name)
	return t
}

// sized sizes one container, and returns what it gets of CPU, in millicores, and of memory, in bytes.
func sized(a Ask, h History, r Rules) (cpu, memory v1beta1.SizedResource) {
	st := SizeRequests([]Ask{a}, h, r, noon)
	return st.Resources[0], st.Resources[1]
}

func enforce(tierName string) Rules { return Rules{Mode: v1beta1.SizingEnforce, Tier: tier(tierName)} }

// oneBucket is how far from an amount the next bucket is.
func oneBucket(millicores float64) OmegaMatcher {
	return WithTransform(func(q resource.Quantity) float64 { return float64(q.MilliValue()) },
		And(BeNumerically(">=", millicores-1), BeNumerically("<=", millicores*step+1)))
}

// Behaviour 1 of the design.
func TestBehaviour1RequestsFollowUse(t *testing.T) {
	g := NewWithT(t)
	week, ask := trainer(repeat(aDay(2, 8*gib), 7)...), asking("16", "64Gi")
	for name, want := range map[string]struct{ cpu, memory float64 }{
		"exploratory": {2500, 8 * 1.15}, "small-traffic": {3080, 8 * 1.30}, "main-traffic": {4000, 12},
	} {
		cpu, memory := sized(ask, week, enforce(name))
		g.Expect(cpu.Sized).To(oneBucket(want.cpu), name)
		g.Expect(memory.Sized.AsApproximateFloat64()/gib).To(BeNumerically("~", want.memory, 0.001), name)
		g.Expect(cpu.Reason).To(Equal(v1beta1.SizedByUse))
	}
	cpu, _ := sized(ask, week, enforce("small-traffic"))
	g.Expect(cpu.Message).To(MatchRegexp(`^2\.\d+ processors in use over 7 of 7 days × 1\.54 = 3\.\d+\.$`))

	oneDay, _ := sized(ask, trainer(aDay(2, 8*gib)), enforce("small-traffic"))
	g.Expect(float64(oneDay.Sized.MilliValue()) / float64(cpu.Sized.MilliValue())).To(BeNumerically("~", 1+1-1.0/7, 0.001))
	g.Expect(oneDay.Message).To(ContainSubstring("× 1.86 for a short history"))

	for name, h := range map[string]History{"no day": trainer(), "no part": {WindowDays: 7}} {
		cpu, memory := sized(ask, h, enforce("main-traffic"))
		for _, r := range []v1beta1.SizedResource{cpu, memory} {
			g.Expect(r.Reason).To(Equal(v1beta1.SizedByHistory), name)
			g.Expect(r.Sized).To(Equal(r.Requested), name)
		}
	}
}

func TestTooLittleWasSeen(t *testing.T) {
	g := NewWithT(t)
	ask := asking("16", "64Gi")
	hours := aDay(2, gib)
	hours.EvidenceSeconds, hours.SeenSeconds, hours.RunSeconds = day-1, day-1, day-1
	cpu, _ := sized(ask, trainer(hours), enforce("exploratory"))
	g.Expect(cpu.Reason).To(Equal(v1beta1.SizedByHistory))
	g.Expect(cpu.Message).To(Equal("The history covers 1 day of the last 7 days; sizing needs at least one day."))

	gaps := aDay(2, gib)
	gaps.RunSeconds, gaps.SeenSeconds = 1000, 799
	cpu, memory := sized(ask, trainer(repeat(gaps, 7)...), enforce("exploratory"))
	g.Expect(cpu.Message).To(Equal("Metrics cover 79 % of the time that the task ran in the last 7 days; sizing needs 80 %."))
	g.Expect(memory.Reason).To(Equal(v1beta1.SizedByHistory))
}

// Behaviour 2: what is not known cuts nothing anew.
func TestBehaviour2WithoutMetricsNothingIsCutAnew(t *testing.T) {
	g := NewWithT(t)
	ask, h := asking("16", "64Gi"), trainer(repeat(aDay(2, 8*gib), 7)...)
	h.Unavailable = "Prometheus does not answer."
	cpu, memory := sized(ask, h, enforce("small-traffic"))
	for _, r := range []v1beta1.SizedResource{cpu, memory} {
		g.Expect(r.Sized).To(Equal(r.Requested))
		g.Expect(r.Reason).To(Equal(v1beta1.SizedByMetrics))
		g.Expect(r.Message).To(Equal("Prometheus does not answer."))
	}
	known := h
	known.Unavailable = ""
	r := enforce("small-traffic")
	r.Before = SizeRequests([]Ask{ask}, known, r, noon)
	cpu, _ = sized(ask, h, r)
	g.Expect(cpu.Sized.Equal(r.Before.Resources[0].Sized)).To(BeTrue(), "what the last attempt was given stays")
	r.Before.Mode = v1beta1.SizingRecommend
	cpu, _ = sized(ask, h, r)
	g.Expect(cpu.Sized).To(Equal(cpu.Requested), "advice was never applied")
}

// Behaviour 3: a container that is held down says how much it needs at least.
func TestBehaviour3HeldDownCutsNothing(t *testing.T) {
	g := NewWithT(t)
	ask := asking("16", "64Gi")
	throttled := Usage{RunSeconds: day, SeenSeconds: day, MemoryPeak: gib}
	throttled.Throttled.Add(4, 288)
	cpu, memory := sized(ask, trainer(repeat(throttled, 7)...), enforce("small-traffic"))
	g.Expect(memory.Sized.Value()).To(BeEquivalentTo(1332*mib), "of memory it had enough")
	g.Expect(cpu.Reason).To(Equal(v1beta1.SizedHeld), "a throttled week says only that more is needed")
	g.Expect(cpu.Sized).To(Equal(cpu.Requested))

	free, _ := sized(ask, trainer(aDay(6, gib)), enforce("small-traffic"))
	mixed, _ := sized(ask, trainer(append(repeat(throttled, 6), aDay(6, gib))...), enforce("small-traffic"))
	g.Expect(mixed.Sized.Cmp(free.Sized)).To(BeNumerically(">=", 0), "throttled days do not lower what a free one calls for")

	full := aDay(2, 0)
	full.MemoryHeld = 63 * gib
	_, memory = sized(asking("16", "128Gi"), trainer(repeat(full, 7)...), enforce("exploratory"))
	g.Expect(memory.Reason).To(Equal(v1beta1.SizedHeld))
	g.Expect(memory.Sized).To(Equal(memory.Requested))

	_, memory = sized(asking("16", "128Gi"), trainer(append(repeat(full, 6), aDay(2, 70*gib))...), enforce("exploratory"))
	g.Expect(memory.Sized.Value()).To(BeEquivalentTo(int64(math.Ceil(70*1024*1.15))*mib), "a day with room says how much it is")
}

func TestBehaviour3OutOfMemory(t *testing.T) {
	g := NewWithT(t)
	killed := aDay(2, 9*gib)
	killed.OOMKills, killed.OOMLimit = 1, 10*gib
	week := trainer(append(repeat(aDay(2, 9*gib), 6), killed)...)
	for asked, want := range map[string]float64{
		"10Gi": 20, // twice as much, until its need is seen
		"11Gi": 12, // the user gave it more already, but not a fifth
		"12Gi": 12, // the user gave it more already
		"64Gi": 64, // it had been given less: back to what was asked
		"9Gi":  18, // its limit is lower than the one at which it was killed
		"5Gi":  10, // twice as much as was asked, at most
	} {
		_, memory := sized(asking("16", asked), week, enforce("small-traffic"))
		g.Expect(memory.Reason).To(Equal(v1beta1.SizedByOOM), asked)
		g.Expect(memory.Sized.AsApproximateFloat64()/gib).To(BeNumerically("~", want, 0.01), asked)
		g.Expect(strings.Contains(memory.Message, "twice its request, or the most of its tier")).To(
			Equal(slices.Contains([]string{"5Gi", "9Gi", "10Gi"}, asked)), "%s: %s", asked, memory.Message)
	}
	small := aDay(2, 0)
	small.OOMKills, small.OOMLimit, small.MemoryHeld = 2, 200*mib, 195*mib
	_, memory := sized(asking("1", "200Mi"), trainer(small), enforce("exploratory"))
	g.Expect(memory.Sized.Value()).To(BeEquivalentTo(400*mib), "what its peak and a short history call for, and twice at most")

	r := enforce("small-traffic")
	r.Tier.Sizing.MaxMemory = "11Gi"
	_, memory = sized(asking("16", "10Gi"), week, r)
	g.Expect(memory.Sized.Value()).To(BeEquivalentTo(11 * gib))
}

func TestAJobRemembersThatItRanOutOfMemory(t *testing.T) {
	g := NewWithT(t)
	week, ask, r := trainer(repeat(aDay(2, 8*gib), 7)...), asking("16", "64Gi"), enforce("small-traffic")
	r.Before = SizeRequests([]Ask{ask}, week, r, noon)
	at := metav1.NewTime(noon.Add(-time.Hour))
	r.Before.Resources[1].OOMKilledTime = &at
	cpu, memory := sized(ask, week, r)
	g.Expect(memory.Sized).To(Equal(memory.Requested))
	g.Expect(memory.OOMKilledTime).To(Equal(&at))
	g.Expect(memory.Message).To(Equal(
		"A container with less memory than its template requests ran out of memory. It gets its full request."))
	g.Expect(cpu.Reason).To(Equal(v1beta1.SizedByUse), "of CPU it has enough")
	at = metav1.NewTime(noon.Add(-7 * 24 * time.Hour))
	_, memory = sized(ask, week, r)
	g.Expect(memory.Reason).To(Equal(v1beta1.SizedByUse), "a week later it is history")
}

func TestSummary(t *testing.T) {
	g := NewWithT(t)
	week, ask, r := trainer(repeat(aDay(2, 8*gib), 7)...), asking("16", "64Gi"), enforce("main-traffic")
	g.Expect(SizeRequests([]Ask{ask}, week, r, noon).Summary).To(MatchRegexp(`^cpu 16→4\.\d+, memory 64Gi→12Gi$`))
	r.Mode = v1beta1.SizingRecommend
	g.Expect(SizeRequests([]Ask{ask}, week, r, noon).Summary).To(MatchRegexp(`^\(cpu 16→4\.\d+, memory 64Gi→12Gi\)$`))
	g.Expect(SizeRequests([]Ask{asking("2", "10Gi")}, week, r, noon).Summary).To(BeEmpty())
	r.Mode = v1beta1.SizingDisabled
	g.Expect(SizeRequests([]Ask{ask}, week, r, noon)).To(BeNil())
}

func TestAccelerators(t *testing.T) {
	g := NewWithT(t)
	h := History{WindowDays: 7, Usage: map[Part]Usage{
		{Master, ""}: {Accelerators: AcceleratorUsage{HeldSeconds: 3600, ActiveMilliseconds: 3600 * 100, MemoryPeakMiB: 2048}},
		{Worker, ""}: {Accelerators: AcceleratorUsage{HeldSeconds: 3600, ActiveMilliseconds: 3600 * 300, MemoryPeakMiB: 4096}},
	}}
	said := "The accelerators were in use 20 % of the time that the task held them in the last 7 days, with at most 4Gi of " +
		"memory on one"
	g.Expect(SizeRequests(nil, h, enforce("exploratory"), noon).Accelerators).To(HavePrefix(said + ". Use fewer workers"))
	h.Usage[Part{Worker, ""}] = Usage{
		Accelerators: AcceleratorUsage{HeldSeconds: 3600, ActiveMilliseconds: 3600 * 900, MemoryPeakMiB: 1},
	}
	g.Expect(SizeRequests(nil, h, enforce("exploratory"), noon).Accelerators).To(
		Equal("The accelerators were in use 50 % of the time that the task held them in the last 7 days, with at most 2Gi of " +
			"memory on one."))
	h.AsOf = noon.Add(-72 * time.Hour)
	g.Expect(SizeRequests(nil, h, enforce("exploratory"), noon).Accelerators).To(HavePrefix(
		"As of "+h.AsOf.Format(time.RFC3339)+", when Prometheus last answered: the accelerators were in use 50 %"), "it is dated")
	g.Expect(SizeRequests(nil, trainer(), enforce("exploratory"), noon).Accelerators).To(BeEmpty(), "unknown")
}

// history draws what a container did in some days.
func history(c *rand.Rand) []Usage {
	all := make([]Usage, 1+c.IntN(9))
	for i := range all {
		u := &all[i]
		u.RunSeconds = c.Int64N(day + 1)
		u.SeenSeconds = u.RunSeconds * (50 + c.Int64N(51)) / 100
		u.EvidenceSeconds = u.SeenSeconds * c.Int64N(2) * c.Int64N(2)
		if c.IntN(3) > 0 {
			u.EvidenceSeconds = day
		}
		for range c.IntN(6) {
			u.CPU.Add(math.Exp(c.Float64()*10-5), c.Int64N(50))
		}
		for range c.IntN(3) * c.IntN(2) {
			u.Throttled.Add(math.Exp(c.Float64()*10-5), c.Int64N(50))
		}
		u.MemoryPeak = c.Int64N(40 * gib)
		if c.IntN(4) == 0 {
			u.MemoryHeld = c.Int64N(40 * gib)
		}
		if c.IntN(8) == 0 {
			u.OOMKills, u.OOMLimit = 1, c.Int64N(40*gib)
		}
	}
	return all
}

func drawnAsk(c *rand.Rand) Ask {
	a := asking("1", "1Gi")
	r := a.Containers[0].Resources
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		list[corev1.ResourceCPU] = toQuantity(1+c.Int64N(64000), CPU)
		list[corev1.ResourceMemory] = toQuantity((1+c.Int64N(64*1024))*mib, Memory)
	}
	if r.Limits.Memory().Cmp(*r.Requests.Memory()) < 0 { // which the API server refuses
		r.Limits[corev1.ResourceMemory], r.Requests[corev1.ResourceMemory] = *r.Requests.Memory(), *r.Limits.Memory()
	}
	if c.IntN(3) == 0 {
		delete(r.Limits, corev1.ResourceMemory)
	}
	return a
}

// resized is the ask of the same container with what it was given, limits in proportion, as pods have it.
func resized(a Ask, st *v1beta1.SizingStatus) Ask {
	c := *a.Containers[0].DeepCopy()
	ApplyRequests(a.Role, []corev1.Container{c}, st)
	return Ask{a.Role, []corev1.Container{c}}
}

// raised tells whether a request may be more than that of its template.
func raised(s v1beta1.SizedResource) bool {
	return s.Reason == v1beta1.SizedByOOM || s.Reason == v1beta1.SizedByPeak
}

func TestLaws(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	c := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		g := NewWithT(t)
		days, ask, r := history(c), drawnAsk(c), enforce([]string{"exploratory", "small-traffic", "main-traffic"}[c.IntN(3)])
		h := trainer(days...)
		st := SizeRequests([]Ask{ask}, h, r, noon)
		for i, s := range st.Resources {
			g.Expect(s.Sized.Cmp(s.Requested) <= 0 || raised(s)).To(BeTrue(), "seed %d: raised: %+v", seed, s)
			again := SizeRequests([]Ask{resized(ask, st)}, h, r, noon).Resources[i]
			if !raised(s) && h.Usage[Part{Worker, "trainer"}].OOMKills == 0 {
				g.Expect(again.Sized.Cmp(s.Sized)).To(BeZero(), "seed %d: sized again it is %s, not %s: %s", seed, again.Sized.String(),
					s.Sized.String(), s.Message)
			}
		}

		part, shuffled := Part{Worker, "trainer"}, History{WindowDays: h.WindowDays}
		for _, i := range c.Perm(len(days)) {
			shuffled.Add(part, noon.AddDate(0, 0, i-len(days)), days[i])
		}
		g.Expect(SizeRequests([]Ask{ask}, shuffled, r, noon)).To(Equal(st), "seed %d: the order in which days are added matters", seed)

		for _, name := range []string{CPU, Memory} {
			e := h.Estimate(part, name, r.Tier.Sizing)
			more := r.Tier.Sizing
			more.CPUPercentile, more.CPUBufferPercent = min(more.CPUPercentile+c.Int32N(10), 100), more.CPUBufferPercent+c.Int32N(100)
			more.MemoryBufferPercent += c.Int32N(100)
			if wider := h.Estimate(part, name, more); wider.Cap > 0 {
				g.Expect(wider.Cap).To(BeNumerically(">=", e.Cap), "seed %d: more buffer, less %s", seed, name)
			}
		}

		held := Usage{}
		held.Throttled.Add(math.Exp(c.Float64()*10-5), 1+c.Int64N(300))
		before := h.Estimate(part, CPU, r.Tier.Sizing)
		if after := trainer(append(days, held)...).Estimate(part, CPU, r.Tier.Sizing); after.Cap > 0 {
			g.Expect(after.Cap).To(BeNumerically(">=", before.Cap), "seed %d: throttled samples lower the cap", seed)
		}
	}
}

func TestMoreImportantTiersGetMore(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	c := rand.New(rand.NewPCG(seed, 1))
	for range 1000 {
		g := NewWithT(t)
		h, ask := trainer(history(c)...), drawnAsk(c)
		last := SizeRequests([]Ask{ask}, h, enforce("exploratory"), noon)
		for _, name := range []string{"small-traffic", "main-traffic"} {
			st := SizeRequests([]Ask{ask}, h, enforce(name), noon)
			for i := range st.Resources {
				g.Expect(st.Resources[i].Sized.Cmp(last.Resources[i].Sized)).To(BeNumerically(">=", 0), "seed %d: %+v, and less in %s: %+v",
					seed, last.Resources[i], name, st.Resources[i])
			}
			last = st
		}
	}
}

func TestBuckets(t *testing.T) {
	g := NewWithT(t)
	for k := range lastBucket + 1 {
		g.Expect(bucketOf(bucketBound(k))).To(Equal(k), "a bucket holds its own upper bound")
	}
	for _, none := range []float64{math.NaN(), -1, 0} {
		g.Expect(bucketOf(none)).To(BeZero())
	}
	g.Expect(bucketOf(math.Inf(1))).To(Equal(lastBucket))
}
