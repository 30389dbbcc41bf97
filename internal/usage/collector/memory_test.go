package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// ctr is the container of the workers of ads/ctr.
var ctr = sizing.Key{Namespace: "ads", Kind: training, Task: "ctr", Role: sizing.Worker, Container: "pytorch"}

// killed are how many kills are known of ctr, and the highest limit in GiB.
func killed(w *fixture) [2]int64 {
	u := w.TaskHistory("ads", training, "ctr").Usage[workers]
	return [2]int64{u.OOMKills, u.OOMLimit >> 30}
}

func TestKillIsKnownAtOnceAndCountsOnce(t *testing.T) {
	w := newFixture(t)
	w.record(stay("ctr", "21 00:00:00", "22 12:00:00"))
	first := OOMKill{Pod: "a", Key: ctr, At: at("22 11:00:00"), LimitBytes: 1 << 30}
	second := OOMKill{Pod: "a", Restarts: 1, Key: ctr, At: at("22 11:30:00"), LimitBytes: 2 << 30}
	w.OOMKilled(first)
	w.Expect(killed(w)).To(Equal([2]int64{1, 1}), "before the ledger was read")
	w.pass(time.Minute)
	seen := w.TaskHistory("ads", training, "ctr").Usage[workers].SeenSeconds
	w.Expect(seen).To(BeNumerically(">", 0))
	for range 3 {
		w.OOMKilled(first)
		w.OOMKilled(second)
		w.Expect(killed(w)).To(Equal([2]int64{2, 2}))
		w.Expect(w.TaskHistory("ads", training, "ctr").Usage[workers].SeenSeconds).To(Equal(seen), "beside what else is known")
		w.pass(turnLength)
		kills, err := w.ledger.OOMKills(t.Context(), at("15 00:00:00"), at("23 00:00:00"))
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(kills).To(HaveLen(2), "each is recorded in the next turn")
	}
	w.pass(time.Hour)
	w.Expect(killed(w)).To(Equal([2]int64{2, 2}), "the next collection leaves them")
	w.Expect(w.told).To(BeEmpty(), "memory has them")
	w.Expect(w.recorded).To(BeEmpty())
	w.start()
	w.pass(turnLength)
	w.OOMKilled(second)
	w.Expect(killed(w)).To(Equal([2]int64{2, 2}), "and so has the next operator")
	w.Expect(w.waiting).To(BeEmpty())

	third := second
	third.Pod, third.LimitBytes = "b", 0
	w.OOMKilled(third)
	w.Expect(killed(w)).To(Equal([2]int64{3, 2}))
	other := third
	other.Key.Container, other.Key.Role = "sidecar", sizing.Master
	w.OOMKilled(other)
	w.Expect(killed(w)).To(Equal([2]int64{3, 2}), "of another container")
	w.Expect(w.TaskHistory("ads", training, "ctr").Usage).To(HaveLen(2))
	w.Expect(w.TaskHistory("ads", merge, "ctr").Usage).To(BeEmpty(), "of another task")
}

// A kill outlasts the window, in the ledger and with the next operator, as the limit that it happened at.
func TestTheLimitOfAKillIsKnownBeyondTheWindow(t *testing.T) {
	w := newFixture(t)
	limit := func() int64 { return w.TaskHistory("ads", training, "ctr").Killed[workers] }
	w.record(stay("ctr", "21 00:00:00", "22 12:00:00"))
	w.OOMKilled(OOMKill{Pod: "a", Key: ctr, At: at("22 11:00:00"), LimitBytes: 2 << 30})
	w.Expect(limit()).To(BeEquivalentTo(2<<30), "at once")
	w.OOMKilled(OOMKill{Pod: "b", Key: ctr, At: at("22 11:00:00"), LimitBytes: 1 << 30})
	w.pass(time.Minute)
	w.clock = w.clock.AddDate(0, 0, 60)
	w.start()
	w.pass(time.Minute)
	w.Expect(killed(w)).To(Equal([2]int64{0, 0}), "it is not in the window any more")
	w.Expect(limit()).To(BeEquivalentTo(2 << 30))
	w.Expect(w.TaskHistory("ads", merge, "ctr").Killed).To(BeEmpty(), "of another task")
}

func TestKillThatIsToldWhileAnotherIsRecorded(t *testing.T) {
	w := newFixture(t)
	w.pass(turnLength)
	w.OOMKilled(OOMKill{Pod: "a", Key: ctr})
	opened := w.faults.calls + 1
	w.faults.fail = func(call int) (bool, error) {
		if call > opened {
			w.OOMKilled(OOMKill{Pod: "b", Key: ctr})
		}
		return true, nil
	}
	w.pass(2 * turnLength)
	w.Expect(w.ledger.OOMKills(t.Context(), at("22 00:00:00"), at("23 00:00:00"))).To(HaveLen(2))
	w.Expect(killed(w)[0]).To(BeEquivalentTo(2))
}

func TestKillsThatPrometheusSawTooCountOnce(t *testing.T) {
	w := newFixture(t)
	w.record(stay("ctr", "22 06:00:00", "22 12:00:00"))
	w.prometheus.kills = 2
	w.OOMKilled(OOMKill{Pod: "a", Key: ctr, At: at("22 11:00:00"), LimitBytes: 3 << 30})
	w.pass(turnLength)
	w.Expect(killed(w)).To(Equal([2]int64{2, 3}))
	for restarts := range int32(4) {
		w.OOMKilled(OOMKill{Pod: "a", Restarts: restarts, Key: ctr, At: at("22 11:00:00"), LimitBytes: 3 << 30})
	}
	w.Expect(killed(w)).To(Equal([2]int64{4, 3}))
}

func TestKillsAreKeptWithinBoundsAndTimes(t *testing.T) {
	w := newFixture(t)
	kill := OOMKill{Pod: "a", Key: ctr, At: at("07 23:59:59")}
	w.OOMKilled(kill)
	w.Expect(w.told).To(BeEmpty(), "before the window")
	kill.At = at("25 00:00:00")
	w.OOMKilled(kill)
	w.Expect(w.waiting).To(ConsistOf(HaveField("At", w.clock)), "a clock was ahead")
	w.OOMKilled(OOMKill{Pod: "b", Key: ctr})
	w.Expect(w.waiting[1].At).To(Equal(w.clock), "its time is unknown")
	w.waiting = append(w.waiting, make([]ledger.OOMKill, mostKills-2)...)
	w.OOMKilled(OOMKill{Pod: "c", Key: ctr})
	w.Expect(w.waiting).To(HaveLen(mostKills))
	w.Expect(w.told[task{"ads", training, "ctr"}]).To(HaveLen(2))
	w.config.Prometheus.URL = ""
	w.start()
	w.OOMKilled(kill)
	w.Expect(w.told).To(BeEmpty(), "it would never be recorded")
}

func TestWhyItIsNotKnown(t *testing.T) {
	w := newFixture(t)
	why := func() string { return w.TaskHistory("ads", training, "ctr").Unavailable }
	w.Expect(why()).To(Equal("The use of the task is unknown: since the operator started at 2026-11-22T12:00:00Z it has not read " +
		"its ledger. It does so in seconds; if it cannot, its log says why, and so does alert TidelineLedgerFails."))
	w.prometheus.fail = func(question) error { return errPrometheus }
	w.record(stay("ctr", "15 00:00:00", "22 12:00:00"))
	w.pass(turnLength)
	w.Expect(why()).To(Equal("The use of the task is unknown: since the operator started at 2026-11-22T12:00:00Z Prometheus has " +
		"not told it. It asks again and again; its log says why it fails, and so does alert TidelinePrometheusFails."))
	w.prometheus.fail = nil
	w.pass(time.Hour)
	w.Expect(why()).To(BeEmpty())
	w.prometheus.fail = func(question) error { return errPrometheus }
	w.pass(2*time.Hour + lateness - turnLength)
	w.Expect(why()).To(BeEmpty())
	w.pass(2 * turnLength)
	w.Expect(w.TaskHistory("ads", training, "ctr").AsOf).To(Equal(at("22 13:00:00")))
	w.Expect(why()).To(Equal("What the task used since 2026-11-22T13:00:00Z is unknown: Prometheus did not answer. The " +
		"operator asks again and again; its log says why it fails, and so does alert TidelinePrometheusFails."))
	w.config.Ledger = config.DefaultLedger()
	w.Expect(why()).To(ContainSubstring("ledger.postgresDSNFile"))
	w.config.Prometheus.URL = ""
	w.Expect(why()).To(ContainSubstring("prometheus.url"))
	w.Expect(w.TaskHistory("ads", training, "ctr").WindowDays).To(Equal(14))
}

// What is asked for while memory is made anew is all of one state.
func TestMemoryIsReplacedAtOnce(t *testing.T) {
	w := newFixture(t)
	l, err := w.open(t.Context())
	w.Expect(err).NotTo(HaveOccurred())
	defer func() { w.Expect(l.Close()).To(Succeed()) }()
	generation := func(n int) {
		u := sizing.Usage{SeenSeconds: int64(n), MemoryPeak: int64(n)}
		content, err := json.Marshal(u)
		w.Expect(err).NotTo(HaveOccurred())
		var days []ledger.PartDay
		for _, container := range []string{"a", "b", "c"} {
			key := ctr
			key.Container = container
			days = append(days, ledger.PartDay{Part: partOf(key), Day: w.clock, SeenSeconds: int64(n), Content: string(content)})
		}
		w.Expect(w.ledger.RecordEntries(t.Context(), ledger.Entries{PartDays: days})).To(Succeed())
	}
	generation(1)
	w.Expect(w.loadMemory(t.Context(), l)).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				used := w.TaskHistory("ads", training, "ctr").Usage
				a := used[sizing.Part{Role: sizing.Worker, Container: "a"}].MemoryPeak
				for part, u := range used {
					if len(used) != 3 || a == 0 || u.MemoryPeak != a {
						t.Errorf("of %d parts, %v is of generation %d, and a of %d", len(used), part, u.MemoryPeak, a)
					}
				}
			}
		})
	}
	for n := 2; n < 20; n++ {
		generation(n)
		w.Expect(w.loadMemory(t.Context(), l)).To(Succeed())
	}
	cancel()
	readers.Wait()
}

// A row that this operator cannot read counts as not seen, and keeps none of the others from being known.
func TestUnreadableRows(t *testing.T) {
	w := newFixture(t)
	other := ctr
	other.Container = "other"
	w.Expect(w.ledger.RecordEntries(t.Context(), ledger.Entries{PartDays: []ledger.PartDay{
		{Part: partOf(ctr), Day: at("21 00:00:00"), SeenSeconds: 1, Content: `{"seenSeconds":1,"some":"thing new"}`},
		{Part: partOf(other), Day: at("21 00:00:00"), SeenSeconds: 1, Content: "Dear diary"},
	}})).To(Succeed())
	w.pass(turnLength)
	w.Expect(w.TaskHistory("ads", training, "ctr").Usage).To(Equal(map[sizing.Part]sizing.Usage{workers: {SeenSeconds: 1}}))
}

// What is kept of 10,000 tasks is far below 200 MB, also while it is made anew.
func TestMemoryOfManyTasks(t *testing.T) {
	const tasks = 1000
	g := NewWithT(t)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	m := &memory{used: map[task]*sizing.History{}, kills: kills{}}
	for day := range 8 {
		for i := range tasks {
			for _, role := range []sizing.Role{sizing.Master, sizing.Worker} {
				u := sizing.Usage{RunSeconds: 86400, SeenSeconds: 86400, EvidenceSeconds: 86400, MemoryPeak: 1 << 30}
				for bucket := range 30 { // from 1 to 4.3 processors
					u.CPU.Add(1.05*float64(day+1)/8+float64(bucket)/10, 9)
				}
				for _, container := range []string{"sidecar", "pytorch"} {
					m.addDay(ledger.PartDay{Day: at("15 00:00:00").AddDate(0, 0, day), Part: ledger.Part{
						Namespace: "team", Kind: training, Task: fmt.Sprintf("task-%d", i), Role: string(role), Container: container,
					}}, u)
				}
			}
		}
	}
	perTask := (heap() - before) / tasks
	t.Logf("%d bytes a task, %d MB of 10,000 tasks", perTask, perTask*10_000>>20)
	g.Expect(perTask).To(BeNumerically("<", 9_000), "twice 90 MB while it is made anew")
	runtime.KeepAlive(m)
}

func TestOperatorThatBeginsAndEnds(t *testing.T) {
	g := NewWithT(t)
	g.Expect((*Collector)(nil).NeedLeaderElection()).To(BeTrue())
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		started := time.Now()
		w.Collector.now = func() time.Time { return at("22 12:00:00").Add(time.Since(started)) }
		w.Collector.complete = w.Collector.now
		w.record(stay("ctr", "22 06:00:00", "22 12:00:00"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Expect(w.Start(ctx)).To(Succeed())
		}()
		<-time.After(2*time.Hour + time.Minute)
		w.Expect(w.prometheus.asked).To(HaveLen(3), "once soon, and once an hour")
		w.OOMKilled(OOMKill{Pod: "a", Key: ctr})
		cancel()
		<-done
		kills, err := w.ledger.OOMKills(t.Context(), at("22 00:00:00"), at("23 00:00:00"))
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(kills).To(HaveLen(1), "the last is recorded")
	})
}

// A node without a clock of its own may say that something happened in 1970.
func TestAKillThatIsRefusedHoldsUpNoOther(t *testing.T) {
	w := newFixture(t)
	now := w.clock
	w.clock = time.Unix(60, 0)
	w.OOMKilled(OOMKill{Pod: "a", Key: ctr, At: w.clock, LimitBytes: 1 << 30})
	w.clock = now
	w.OOMKilled(OOMKill{Pod: "b", Key: ctr, At: at("22 11:00:00"), LimitBytes: 1 << 30})
	w.pass(turnLength)
	kills, err := w.ledger.OOMKills(t.Context(), at("15 00:00:00"), at("23 00:00:00"))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(kills).To(HaveLen(1))
	w.Expect(w.waiting).To(BeEmpty())
	w.Expect(w.TaskHistory("ads", training, "ctr").Unavailable).To(BeEmpty())
}
