package promquery

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/usage/sizing"
)

const gib = 1 << 30

func TestCPUIsOfTheBusiestPod(t *testing.T) {
	g := NewWithT(t)
	usage := folded(Answers{
		CPU: {
			series("a", at(0, 0), 1, 2, 3, 5, 4, 9, unknown),
			series("b", at(0, 0), 2, 1, 3, 4, 4, unknown),
		},
		ThrottledShare: {
			series("a", at(0, 0), 0.9, 0.05, 0.049, unknown, 0.5, 0.9),
			series("b", at(0, 0), 0, 0.9, 0, 0.9, 0, 0.9),
		},
	}, stay("a", at(0, 0)).until(at(0, 30)), stay("b", at(0, 0)).until(at(1, 0)))[train(sizing.Worker)]
	g.Expect(usage.CPU).To(Equal(histogram(2, 3, 5)))
	g.Expect(usage.Throttled).To(Equal(histogram(2, 4)), "of equal ones that which is throttled")
	g.Expect(usage.RunSeconds).To(Equal(int64(3600)), "by our record")
	g.Expect(usage.SeenSeconds).To(Equal(int64(6 * 300)))
	g.Expect(usage.EvidenceSeconds).To(Equal(int64(4*300)), "without what was held down")
}

// They can only be too low, so one that is the highest of its neighbours says something.
func TestRatesOfPartsOfFiveMinutesAreNotBelieved(t *testing.T) {
	for name, c := range map[string]struct {
		stay   Stay
		values []float64
		want   sizing.Histogram
	}{
		"all day":                      {stay("a", at(-1, 0)), always(2, 288), histogram(always(2, 288)...)},
		"until the operator ended":     {stay("a", at(-1, 0)), []float64{2, 2, 1}, histogram(2, 2)},
		"before and after a gap":       {stay("a", at(-1, 0)), []float64{2, 2, 1, unknown, 1, 2, 2, 1}, histogram(2, 2, 2, 2)},
		"since a container began":      {stay("a", at(-1, 0)), []float64{unknown, 1, 2, 2, 1}, histogram(2, 2)},
		"of a pod of these minutes":    {stay("a", at(0, 2)).until(at(0, 4)), []float64{1}, nil},
		"of one that began and ended":  {stay("a", at(0, 2)).until(at(0, 18)), []float64{1, 2, 2, 1, 1, 1}, histogram(2, 2)},
		"of one that began on the dot": {stay("a", at(0, 0)).until(at(0, 10)), []float64{2, 2, 1, 1}, histogram(2, 2)},
		"of a start that is a spike":   {stay("a", at(0, 0)).until(at(0, 18)), []float64{8, 2, 2, 1}, histogram(8, 2, 2)},
		"of a spike in two minutes":    {stay("a", at(0, 3)).until(at(0, 18)), []float64{1.6, 2, 2, 1}, histogram(4, 2, 2)},
		"of a spike in seconds":        {stay("a", at(0, 5).Add(-30*time.Second)), []float64{1, 2, 2, 1}, histogram(2, 2)},
		"of an image that took long":   {stay("a", at(0, 0)), []float64{unknown, 3, 2, 2, 1}, histogram(3, 2, 2)},
		"of 20 minutes":                {stay("a", at(0, 4)).until(at(0, 24)), []float64{1, 2, 2, 2, 1.5}, histogram(5, 2, 2, 2)},
		"of the second of that name":   {stay("a", at(0, 7)), []float64{2, 1.9, 1, 1, 1}, histogram(1, 1)},
	} {
		g := NewWithT(t)
		usage := folded(Answers{CPU: {series("a", at(0, 0), c.values...)}}, c.stay)[train(sizing.Worker)]
		g.Expect(usage.CPU).To(Equal(c.want), name)
		g.Expect(usage.SeenSeconds).To(BeNumerically(">=", max(usage.CPU.SampleCount(), 1)*slotSeconds), name)
	}
}

func TestHighestOfSeriesCounts(t *testing.T) {
	g := NewWithT(t)
	usage := folded(Answers{CPU: {series("a", at(0, 0), 1, 3, 1), series("a", at(0, 0), 2, 2, 1)}}, stay("a", at(0, 0)))
	g.Expect(usage[train(sizing.Worker)].CPU).To(Equal(histogram(2, 3)))
}

func TestMemoryAtItsLimitIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		limit, used float64
		peak, held  int64
	}{
		"with room":         {8 * gib, 7 * gib, 7 * gib, 0},
		"nearly there":      {1000, 949, 949, 0},
		"there":             {1000, 950, 0, 950},
		"without a limit":   {0, gib, gib, 0},
		"an unknown limit":  {unknown, gib, gib, 0},
		"an unknown value":  {gib, unknown, 0, 0},
		"an infinite value": {gib, math.Inf(1), 0, 0},
		"an absurd value":   {gib, 1e300, 0, 0},
	} {
		g := NewWithT(t)
		usage := folded(Answers{
			CPU:         {series("a", at(0, 0), 1)},
			WorkingSet:  {series("a", at(0, 0), c.used)},
			MemoryLimit: {series("a", at(0, 0), c.limit)},
		}, stay("a", at(0, 0)))[train(sizing.Worker)]
		g.Expect(usage.MemoryPeak).To(Equal(c.peak), name)
		g.Expect(usage.MemoryHeld).To(Equal(c.held), name)
	}
}

func TestPeaksAreOfThePodsThatHadThem(t *testing.T) {
	g := NewWithT(t)
	usage := folded(Answers{
		WorkingSet:  {series("a", at(0, 0), 3*gib, 4*gib, 2*gib), series("b", at(0, 0), gib, 2*gib, gib)},
		MemoryLimit: {series("a", at(0, 0), always(8*gib, 3)...), series("b", at(0, 0), always(2*gib, 3)...)},
	}, stay("a", at(0, 0)), stay("b", at(0, 0)))[train(sizing.Worker)]
	g.Expect(usage.MemoryPeak).To(Equal(int64(4 * gib)))
	g.Expect(usage.MemoryHeld).To(Equal(int64(2 * gib)))
	g.Expect(usage.SeenSeconds).To(BeZero(), "there was no sample of CPU")
	g.Expect(usage.EvidenceSeconds).To(BeZero())
}

func TestOOMKillsAreCountedByHand(t *testing.T) {
	limits := series("a", at(0, 0), 1, 2, 3, 4)
	for name, c := range map[string]struct {
		begin    time.Time
		counters []Series
		kills    int64
		limit    int64
	}{
		"none":                            {at(0, 0), []Series{series("a", at(0, 0), 0, 0)}, 0, 0},
		"one":                             {at(0, 0), []Series{series("a", at(0, 0), 0, 1, 1)}, 1, 2},
		"several":                         {at(0, 0), []Series{series("a", at(0, 0), 0, 2, 3)}, 3, 3},
		"in the first five minutes":       {at(0, 0), []Series{series("a", at(0, 0), 1, 1)}, 1, 1},
		"on the day before":               {at(-1, 0), []Series{series("a", at(0, 0), 7, 7)}, 0, 0},
		"after others on the day before":  {at(-1, 0), []Series{series("a", at(0, 0), 7, 8)}, 1, 2},
		"of a counter that began anew":    {at(-1, 0), []Series{series("a", at(0, 0), 7, 1)}, 1, 2},
		"with a gap":                      {at(0, 0), []Series{series("a", at(0, 0), 0, unknown, 1)}, 1, 3},
		"when there is no limit any more": {at(0, 0), []Series{series("a", at(1, 0), 0, 1)}, 1, 4},
		"of a container after another": {at(-1, 0), []Series{
			series("a", at(0, 0), 5).partOf("train", "x"), series("a", at(0, 5), 1, 1).partOf("train", "y"),
		}, 1, 2},
		"of other containers of the pod": {at(-1, 0), []Series{
			series("a", at(0, 0), 0, 0), series("a", at(0, 5), 1).partOf("log", "y"),
		}, 0, 0},
		"twice the same series": {at(0, 0), []Series{series("a", at(0, 0), 0, 1), series("a", at(0, 0), 0, 1)}, 1, 2},
	} {
		g := NewWithT(t)
		usage := folded(Answers{OOMEvents: c.counters, MemoryLimit: {limits}}, stay("a", c.begin))[train(sizing.Worker)]
		g.Expect(usage.OOMKills).To(Equal(c.kills), name)
		g.Expect(usage.OOMLimit).To(Equal(c.limit), name)
	}
}

func TestAccelerators(t *testing.T) {
	first, second := "GPU-1", "GPU-2"
	device := func(name string, values ...float64) Series { return series("a", at(0, 0), values...).partOf("", name) }
	for name, c := range map[string]struct {
		holds   int64
		answers Answers
		want    sizing.AcceleratorUsage
		seen    int64
	}{
		"two of them, and one works": {2000, Answers{EngineActive: {device(first, 0.5, 1), device(second, 0, 0)}},
			sizing.AcceleratorUsage{HeldSeconds: 1200, ActiveMilliseconds: 450_000}, 600},
		"by utilization in percent": {1000, Answers{Utilization: {device(first, 25)}},
			sizing.AcceleratorUsage{HeldSeconds: 300, ActiveMilliseconds: 75_000}, 300},
		"by both, and the first is better": {1000, Answers{EngineActive: {device(first, 0.5, unknown)},
			Utilization: {device(first, 100, 100)}}, sizing.AcceleratorUsage{HeldSeconds: 600, ActiveMilliseconds: 450_000}, 600},
		"one of two is not seen": {2000, Answers{EngineActive: {device(first, 1)}},
			sizing.AcceleratorUsage{HeldSeconds: 300, ActiveMilliseconds: 300_000}, 300},
		"half a device": {500, Answers{EngineActive: {device(first, 0.5)}},
			sizing.AcceleratorUsage{HeldSeconds: 150, ActiveMilliseconds: 75_000}, 300},
		"twice the same": {1000, Answers{EngineActive: {device(first, 0.5), device(first, 0.5)}},
			sizing.AcceleratorUsage{HeldSeconds: 300, ActiveMilliseconds: 150_000}, 300},
		"idle":               {1000, Answers{EngineActive: {device(first, 0)}}, sizing.AcceleratorUsage{HeldSeconds: 300}, 300},
		"nothing attributed": {1000, Answers{}, sizing.AcceleratorUsage{}, 0},
		"memory": {1000, Answers{FramebufferUsed: {device(first, 100, 4000, 200), device(second, 300)}},
			sizing.AcceleratorUsage{MemoryPeakMiB: 4000}, 0},
		"values that DCGM does not know": {1000, Answers{
			EngineActive: {device(first, 140737488355328, unknown)}, Utilization: {device(first, 2147483632, 101)},
			FramebufferUsed: {device(first, 2147483632, 9223372036854775794)},
		}, sizing.AcceleratorUsage{}, 0},
	} {
		g := NewWithT(t)
		usage := folded(c.answers, stay("a", at(0, 0)).holds(c.holds).until(at(1, 0)))
		g.Expect(usage).To(HaveLen(1), name)
		if c.want.HeldSeconds > 0 {
			c.want.LastSeen = day.Unix() + c.seen
		}
		if c.want.LastBusy = c.want.LastSeen; c.want.ActiveMilliseconds == 0 {
			c.want.LastBusy = 0
		}
		g.Expect(usage[whole()]).To(Equal(sizing.Usage{
			RunSeconds: 3600, SeenSeconds: c.seen, EvidenceSeconds: c.seen, Accelerators: c.want,
		}), name)
	}
	NewWithT(t).Expect(folded(Answers{EngineActive: {device(first, 1)}}, stay("a", at(0, 0)))).To(BeEmpty(), "it holds none")
}

func TestWhenADeviceWasLastInUse(t *testing.T) {
	g := NewWithT(t)
	usage := folded(Answers{EngineActive: {series("a", at(0, 0), 0.5, 0.009, 0).partOf("", "GPU-1")}},
		stay("a", at(0, 0)).holds(1000).until(at(1, 0)))
	seen := usage[whole()].Accelerators
	g.Expect(time.Unix(seen.LastBusy, 0)).To(BeTemporally("==", at(0, 5)), "less than a hundredth is not in use")
	g.Expect(time.Unix(seen.LastSeen, 0)).To(BeTemporally("==", at(0, 15)))
}

// A pod may claim to be of the StatefulSet of a colleague's notebook: then samples of the task may be of either.
func TestUsageOfOtherWorkloadsNamesTheirOnlyPod(t *testing.T) {
	other := func(pod string) Stay {
		s := stay(pod, at(0, 0)).of("nb").holds(1000).until(at(1, 0))
		s.Kind, s.Role = "StatefulSet", sizing.Other
		return s
	}
	key := sizing.Key{Namespace: "ads", Kind: "StatefulSet", Task: "nb", Role: sizing.Other}
	device := func(pod string) Series { return series(pod, at(0, 0), 0, 0).partOf("", "GPU-"+pod) }
	both := []Stay{other("nb-0"), other("forged")}
	for name, c := range map[string]struct {
		seen []Series
		pod  string
	}{
		"its own":       {[]Series{device("nb-0")}, "nb-0"},
		"another's":     {[]Series{device("forged")}, "forged"},
		"both":          {[]Series{device("forged"), device("nb-0")}, ""},
		"not at a time": {[]Series{device("nb-0"), series("forged", at(0, 30), 0).partOf("", "GPU-1")}, ""},
		"one is silent": {[]Series{device("nb-0"), series("forged", at(0, 0), unknown).partOf("", "GPU-1")}, "nb-0"},
	} {
		NewWithT(t).Expect(folded(Answers{EngineActive: c.seen}, both...)[key].Accelerators.Pod).To(Equal(c.pod), name)
	}
	ours := folded(Answers{EngineActive: {device("a")}}, stay("a", at(0, 0)).holds(1000).until(at(1, 0)))
	NewWithT(t).Expect(ours[whole()].Accelerators.Pod).To(BeEmpty(), "pods of Tideline's jobs cannot be forged")
}

func TestWhatIsNoNumberIsNotSeen(t *testing.T) {
	g := NewWithT(t)
	usage := folded(Answers{CPU: {series("a", at(0, 0), 0, 0, math.Inf(1), math.Inf(-1), -1, 1e12, unknown)}}, stay("a", at(0, 0)))
	g.Expect(usage[train(sizing.Worker)].SeenSeconds).To(Equal(int64(600)), "zero is a number")
	g.Expect(usage[train(sizing.Worker)].CPU.SampleCount()).To(Equal(int64(1)))
	g.Expect(folded(Answers{CPU: {series("a", at(0, 0), unknown)}}, stay("a", at(0, 0)))).To(BeEmpty(), "unknown, and not zero")
}

func TestSamplesBelongToTheStayThatCoversThem(t *testing.T) {
	cpu := Answers{CPU: {series("a", at(0, 0), 1, 2, 3, 4, 5, 6, 7)}} // the last says nothing
	for name, c := range map[string]struct {
		stays    []Stay
		ctr, cvr sizing.Histogram
	}{
		"one that lasts": {[]Stay{stay("a", at(0, 0))}, histogram(1, 2, 3, 4, 5, 6), nil},
		"one that lasts, and was seen last long ago": {[]Stay{
			{Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr", Pod: "a", Role: sizing.Worker, Begin: at(0, 0), End: at(0, 5)},
		}, histogram(1, 2, 3, 4, 5, 6), nil},
		"some minutes":      {[]Stay{stay("a", at(0, 9)).until(at(0, 16))}, histogram(3), nil},
		"none before five":  {[]Stay{stay("a", at(0, 5)).until(at(0, 10))}, histogram(2), nil},
		"another pod":       {[]Stay{stay("b", at(0, 0))}, nil, nil},
		"another namespace": {[]Stay{{Namespace: "x", Task: "ctr", Pod: "a", Role: sizing.Worker, Begin: at(0, 0)}}, nil, nil},
		"two tasks": {[]Stay{stay("a", at(0, 0)).until(at(0, 10)), stay("a", at(0, 15)).of("cvr")},
			histogram(1, 2), histogram(4, 5, 6)},
		"two that share minutes": {[]Stay{stay("a", at(0, 0)).until(at(0, 12)), stay("a", at(0, 13)).of("cvr")},
			histogram(1, 2), histogram(4, 5, 6)},
		"two attempts in the same minutes": {[]Stay{stay("a", at(0, 0)).until(at(0, 12)), stay("a", at(0, 13))},
			histogram(1, 2, 4, 5, 6), nil},
		"one with an unknown end, and the next": {[]Stay{stay("a", at(0, 15)).of("cvr"), stay("a", at(0, 0))},
			histogram(1, 2, 3), histogram(4, 5, 6)},
	} {
		g := NewWithT(t)
		usage := folded(cpu, c.stays...)
		other := train(sizing.Worker)
		other.Task = "cvr"
		g.Expect(usage[train(sizing.Worker)].CPU).To(Equal(c.ctr), name)
		g.Expect(usage[other].CPU).To(Equal(c.cvr), name)
	}
}

func TestSamplesThatMayBeOfAnotherTaskAreDropped(t *testing.T) {
	g := NewWithT(t)
	answers := Answers{
		CPU:        {series("a", at(0, 0), always(1, 7)...)},
		WorkingSet: {series("a", at(0, 0), 1, 2, 9, 3, 4, 5)},
		OOMEvents:  {series("a", at(0, 0), 0, 0, 7, 7, 7, 7)},
	}
	usage := folded(answers, stay("a", at(0, 0)).until(at(0, 12)), stay("a", at(0, 13)).of("cvr").until(at(0, 30)))
	other := train(sizing.Worker)
	other.Task = "cvr"
	for key, want := range map[sizing.Key]sizing.Usage{
		train(sizing.Worker): {RunSeconds: 900, SeenSeconds: 600, EvidenceSeconds: 600, CPU: histogram(1, 1), MemoryPeak: 2},
		other:                {RunSeconds: 1200, SeenSeconds: 900, EvidenceSeconds: 900, CPU: histogram(1, 1, 1), MemoryPeak: 5},
	} {
		g.Expect(usage[key]).To(Equal(want), key.Task)
	}
}

func TestDayAsFarAsItHasPassed(t *testing.T) {
	for name, c := range map[string]struct {
		now       time.Time
		ran, seen int64
	}{
		"the day before":     {at(-1, 0), 0, 0},
		"its first minutes":  {at(0, 4), 0, 0},
		"five minutes":       {at(0, 5), 300, 300},
		"half an hour":       {at(0, 34), 1800, 1800},
		"beyond the samples": {at(12, 0), 12 * 3600, 2 * 3600},
		"the whole day":      {tomorrow, 86400, 2 * 3600},
		"a week later":       {tomorrow.Add(7 * 24 * time.Hour), 86400, 2 * 3600},
	} {
		g := NewWithT(t)
		d := NewDay(day.Add(5*time.Hour), []Stay{stay("a", at(-20, 0))}, c.now)
		from, to, some := d.TimeRange()
		g.Expect(some).To(Equal(c.ran > 0), name)
		g.Expect(from).To(Equal(at(0, 5)))
		g.Expect(to).To(Equal(day.Add(time.Duration(c.ran)*time.Second)), name)
		if c.ran == 0 {
			g.Expect(d.PendingBatches()).To(BeEmpty(), name)
		}
		usage := foldedAt(c.now, Answers{CPU: {series("a", at(0, 0), always(1, 24)...)}}, stay("a", at(-20, 0)))[train(sizing.Worker)]
		g.Expect(usage.RunSeconds).To(Equal(c.ran), name)
		g.Expect(usage.SeenSeconds).To(Equal(c.seen), name)
	}
}

func TestRunThatEndedWellIsWorthADay(t *testing.T) {
	run := stay("a", at(1, 0)).until(at(2, 0)).master("r", true)
	worker := stay("b", at(1, 0)).until(at(2, 0))
	worker.Run = "r"
	for name, c := range map[string]struct {
		seen  int
		stays []Stay
		worth int64
	}{
		"seen well":                  {10, []Stay{run}, 86400},
		"not seen enough":            {9, []Stay{run}, 2700},
		"with a worker, ended badly": {10, []Stay{run, worker}, 86400},
		"ended badly":                {10, []Stay{stay("a", at(1, 0)).until(at(2, 0)).master("r", false)}, 3000},
		"not ended": {10, []Stay{{Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr", Pod: "a", Run: "r",
			Role: sizing.Master, Begin: at(1, 0), Well: true}}, 3000},
		"begun on the day before": {10, []Stay{stay("a", at(-1, 0)).until(at(2, 0)).master("r", true)}, 3000},
		"a stay of it was before": {10, []Stay{stay("z", at(-1, 0)).until(at(-1, 30)).master("r", false), run}, 3000},
		"without an id":           {10, []Stay{stay("a", at(1, 0)).until(at(2, 0)).master("", true)}, 3000},
		"a master before failed":  {12, []Stay{stay("a", at(0, 50)).until(at(0, 60)).master("r", false), run}, 86400},
		"a master after failed":   {10, []Stay{run, stay("a", at(2, 0)).until(at(2, 5)).master("r", false)}, 3000},
		"of another task":         {10, []Stay{run.of("cvr"), stay("b", at(0, 0)).until(at(3, 0)).master("r", false)}, 0},
	} {
		g := NewWithT(t)
		usage := folded(Answers{CPU: {series("a", at(1, 0), always(1, c.seen)...)}}, c.stays...)
		g.Expect(usage[train(sizing.Master)].EvidenceSeconds).To(Equal(c.worth), name)
	}
	g := NewWithT(t)
	hour := []Series{series("a", at(1, 0), always(1, 12)...)}
	held := folded(Answers{CPU: hour, ThrottledShare: hour}, run)
	g.Expect(held[train(sizing.Master)].EvidenceSeconds).To(Equal(int64(86400)), "it came to its end with what it had")
}

func TestRolesOfWhichNotAllIsKnownAreForgotten(t *testing.T) {
	g := NewWithT(t)
	d := NewDay(day, []Stay{stay("a", at(0, 0)), stay("b", at(0, 0)), stay("c", at(0, 0)).master("r", true)}, tomorrow)
	answers := Answers{CPU: {series("a", at(0, 0), 1), series("c", at(0, 0), 1)}}
	d.FoldAnswers(Batch{Namespace: "ads", Pods: []string{"a", "c"}}, answers)
	g.Expect(d.UsageByKey()).To(And(HaveKey(train(sizing.Worker)), HaveKey(train(sizing.Master))))
	d.ForgetBatch(Batch{Namespace: "ads", Pods: []string{"b"}})
	g.Expect(d.UsageByKey()).To(And(HaveLen(1), HaveKey(train(sizing.Master))))
}

func TestRolesThatWereNotSeenAreNotThere(t *testing.T) {
	g := NewWithT(t)
	first, second := stay("a", at(0, 0)).until(at(1, 0)), stay("a", at(2, 0)).of("cvr")
	g.Expect(folded(Answers{WorkingSet: {series("a", at(0, 0), 1, 2, 3)}}, first, second)).To(
		And(HaveLen(1), HaveKey(train(sizing.Worker))))
	g.Expect(folded(Answers{}, first, second)).To(BeEmpty())
}

// drawnPods is what pods of a namespace did, drawn by lot.
type drawnPods struct {
	stays   []Stay
	pods    []string
	answers Answers
}

func drawWorld(r *rand.Rand) drawnPods {
	w := drawnPods{pods: names(1 + r.IntN(4)), answers: Answers{}}
	for _, name := range w.pods {
		begin := at(-2, 0)
		for range 1 + r.IntN(4) {
			begin = begin.Add(time.Duration(r.IntN(120)) * time.Minute)
			s := stay(name, begin).of([]string{"ctr", "cvr"}[r.IntN(2)]).holds(int64(r.IntN(3)) * 700)
			s.Run = []string{"", "r1", "r2"}[r.IntN(3)]
			if r.IntN(3) > 0 {
				s.Role = sizing.Master
			}
			begin = begin.Add(time.Duration(r.IntN(300)) * time.Minute)
			if r.IntN(5) > 0 {
				s = s.until(begin)
				s.Well = r.IntN(2) == 0
			}
			w.stays = append(w.stays, s)
		}
		for metric := CPU; metric <= FramebufferUsed; metric++ {
			for part := range 1 + r.IntN(2) {
				values := make([]float64, r.IntN(100))
				for i := range values {
					values[i] = []float64{0, 0.03, 0.3, 1, 2, 2.1, 50, unknown, math.Inf(1)}[r.IntN(9)]
				}
				s := series(name, at(r.IntN(8), 0), values...)
				switch metric {
				case OOMEvents:
					s = s.partOf("train", names(2)[part])
				case EngineActive, Utilization, FramebufferUsed:
					s = s.partOf("", names(2)[part])
				default:
					s = s.partOf([]string{"train", "log"}[part], "")
				}
				w.answers[metric] = append(w.answers[metric], s)
			}
		}
	}
	return w
}

// about are the answers about one pod.
func (a Answers) about(pod string) Answers {
	own := Answers{}
	for metric, all := range a {
		for _, s := range all {
			if s.Pod == pod {
				own[metric] = append(own[metric], s)
			}
		}
	}
	return own
}

// Neither the order of anything, nor what is there twice, nor how pods are cut into batches says anything of what was used.
func TestUsageIsOfWhatWasUsedOnly(t *testing.T) {
	for seed := range uint64(40) {
		g := NewWithT(t)
		r := rand.New(rand.NewPCG(seed, 1)) // the same worlds each time
		w := drawWorld(r)
		want := folded(maps.Clone(w.answers), w.stays...)

		shuffled := Answers{}
		for metric, all := range w.answers {
			doubled := append(slices.Clone(all), all[r.IntN(len(all))])
			r.Shuffle(len(doubled), func(i, j int) { doubled[i], doubled[j] = doubled[j], doubled[i] })
			for i := range doubled {
				points := slices.Clone(doubled[i].Points)
				r.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
				doubled[i].Points = points
			}
			shuffled[metric] = doubled
		}
		stays := slices.Clone(w.stays)
		r.Shuffle(len(stays), func(i, j int) { stays[i], stays[j] = stays[j], stays[i] })
		g.Expect(folded(shuffled, stays...)).To(Equal(want), "seed %d, in another order and twice", seed)

		d := NewDay(day, stays, tomorrow)
		pods := slices.Clone(w.pods)
		r.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		for _, pod := range pods {
			d.FoldAnswers(Batch{Namespace: "ads", Pods: []string{pod}}, w.answers.about(pod))
		}
		g.Expect(d.UsageByKey()).To(Equal(want), "seed %d, one by one", seed)

		for key, u := range want {
			g.Expect(u.SeenSeconds).To(BeNumerically("<=", u.RunSeconds), "seed %d, %v", seed, key)
			g.Expect(u.EvidenceSeconds == wholeDay || u.EvidenceSeconds <= u.SeenSeconds).To(BeTrue(), "seed %d, %v", seed, key)
			g.Expect((u.CPU.SampleCount() + u.Throttled.SampleCount()) * slotSeconds).To(BeNumerically("<=", u.SeenSeconds))
			g.Expect(u.Accelerators.ActiveMilliseconds).To(BeNumerically("<=", 1000*u.Accelerators.HeldSeconds+1000))
		}
	}
}
