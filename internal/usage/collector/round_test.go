package collector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/promquery"
	"github.com/tideline-io/tideline/internal/usage/sizing"
	"github.com/tideline-io/tideline/test/testutil/points"
)

var (
	workers = sizing.Part{Role: sizing.Worker, Container: "pytorch"}
	master  = sizing.Part{Role: sizing.Master, Container: "pytorch"}
)

func TestDaysAreCollectedOnceAndTodayAgain(t *testing.T) {
	w := newFixture(t)
	w.record(stay("ctr", "01 00:00:00", "22 12:00:00"), stay("old", "06 00:00:00", "08 06:00:00", ended(ledger.Failed)),
		stay("older", "06 00:00:00", "08 00:00:00", ended(ledger.Failed)),
		stay("app", "20 00:00:00", "22 00:00:00", func(s *ledger.Stay) { s.Kind = "Deployment" }))
	w.pass(turnLength)
	w.Expect(w.prometheus.asked[0]).To(Equal(question{"22", []string{"ctr"}}), "the newest first")
	w.Expect(w.prometheus.asked[14]).To(Equal(question{"08", []string{"ctr", "old"}}))
	w.Expect(w.prometheus.forget()).To(HaveLen(15))
	h := w.TaskHistory("ads", training, "ctr")
	w.Expect(h.Unavailable).To(BeEmpty())
	w.Expect(h.WindowDays).To(Equal(14))
	w.Expect(h.Usage).To(HaveLen(1))
	u := h.Usage[workers]
	w.Expect(u.SeenSeconds).To(BeEquivalentTo(14.5*86400+5), "fourteen days and today")
	w.Expect(u.CPU.SampleCount()).To(BeEquivalentTo(14.5 * 288))
	w.Expect(u.MemoryPeak).To(BeEquivalentTo(12 << 20))
	w.Expect(w.TaskHistory("ads", training, "old").Usage[workers].SeenSeconds).To(BeEquivalentTo(6 * 3600))
	w.Expect(w.TaskHistory("ads", training, "older").Usage).To(BeEmpty())
	w.Expect(w.TaskHistory("ads", "Deployment", "app").Usage).To(BeEmpty())
	w.Expect(w.days()).To(And(HaveLen(15), HaveKeyWithValue("22", "22 12:00:05"), HaveKeyWithValue("08", "22 12:00:05")))

	w.pass(59 * time.Minute)
	w.Expect(w.prometheus.forget()).To(BeEmpty(), "it is no hour later")
	w.pass(11 * time.Hour)
	w.Expect(w.prometheus.forget()).To(And(HaveLen(11), HaveEach(HaveField("Day", "22"))), "once an hour, today only")
	w.start()
	w.pass(turnLength)
	w.Expect(w.prometheus.forget()).To(And(HaveLen(1), HaveEach(HaveField("Day", "22"))), "another operator knows that")
	w.pass(3 * time.Hour)
	asked := w.prometheus.forget()
	w.Expect(asked).To(ContainElement(HaveField("Day", "22")), "the end of the day was not seen yet")
	w.pass(5 * time.Hour)
	w.Expect(w.prometheus.forget()).To(BeEmpty(), "of the new day the ledger has no stays")
	w.Expect(w.days()).To(And(HaveKeyWithValue("23", HavePrefix("23 0")), HaveKeyWithValue("22", HavePrefix("23 0"))))
	w.Expect(testutil.ToFloat64(w.metrics.days)).To(Equal(10.0), "of this operator: the 22nd twice, the 23rd eight times")
}

func TestAClockThatWasAheadLeavesNoDayOut(t *testing.T) {
	w := newFixture(t)
	w.record(stay("ctr", "01 00:00:00", "25 12:00:00"))
	w.clock = w.clock.AddDate(0, 0, 3)
	w.pass(turnLength)
	w.Expect(w.prometheus.forget()).To(ContainElement(HaveField("Day", "22")))
	w.clock = w.clock.AddDate(0, 0, -3)
	w.pass(2 * time.Hour)
	w.Expect(w.prometheus.forget()).To(ContainElement(HaveField("Day", "22")))
	w.Expect(w.TaskHistory("ads", training, "ctr").Unavailable).To(BeEmpty())
	w.Expect(w.days()).To(HaveKeyWithValue("22", HavePrefix("22 1")))
}

func TestDayIsFinishedTenMinutesAfterItsEnd(t *testing.T) {
	g := NewWithT(t)
	g.Expect(isFinished(at("22 00:00:00"), at("23 00:09:59"))).To(BeFalse())
	g.Expect(isFinished(at("22 00:00:00"), at("23 00:10:00"))).To(BeTrue())
}

// What the ledger does not have yet cannot be asked about, and a day is not finished before it has all of it.
func TestNothingIsAskedBeforeTheLedgerHasAllStays(t *testing.T) {
	w := newFixture(t)
	w.record(stay("ctr", "21 00:00:00", "22 12:00:00"))
	zero := func() time.Time { return time.Time{} }
	w.Collector.complete = zero
	w.pass(2 * time.Hour)
	w.Expect(w.prometheus.asked).To(BeEmpty())
	w.Expect(w.TaskHistory("ads", training, "ctr").Unavailable).NotTo(BeEmpty())
	w.Collector.complete = func() time.Time { return at("22 00:05:00") } // it could not be written since
	w.pass(turnLength)
	w.Expect(w.days()).To(And(HaveKeyWithValue("21", "22 00:05:00"), HaveKeyWithValue("20", "22 00:05:00")))
	w.prometheus.forget()
	w.Collector.complete = func() time.Time { return w.clock }
	w.pass(time.Hour)
	w.Expect(w.prometheus.forget()).To(Equal([]question{{"22", []string{"ctr"}}, {"21", []string{"ctr"}}}))
}

func TestWhatIsAskedAboutStays(t *testing.T) {
	w := newFixture(t)
	w.record(
		stay("ctr", "21 22:00:00", "22 03:00:00", ended(ledger.Succeeded), named("ctr-worker-0")),
		stay("ctr", "21 22:00:00", "22 02:00:00", ended(ledger.Deleted), func(s *ledger.Stay) { s.Resources = nil }),
		stay("ctr", "22 04:00:00", "22 05:00:00", ended(ledger.Succeeded), func(s *ledger.Stay) { s.Uncertain = true }),
		stay("ctr", "22 06:00:00", "22 07:00:00", func(s *ledger.Stay) { s.Run = "2" }),
		stay("ctr", "22 06:00:00", "22 07:00:00", named("stranger")),
		stay("full", "22 06:00:00", "22 07:00:00", named("full-merge-0"), func(s *ledger.Stay) { s.Kind = merge }))
	w.pass(turnLength)
	asked := w.prometheus.stays[:5] // of today
	of := func(pod, run, begin, end string, final, well bool, accelerators int64) promquery.Stay {
		s := promquery.Stay{
			Namespace: "ads", Kind: training, Task: "ctr", Pod: pod, Run: run, Role: sizing.Worker, Begin: at(begin), End: at(end),
			Final: final, Well: well, Accelerators: accelerators,
		}
		return s
	}
	first := of("ctr-worker-0", "1", "21 22:00:00", "22 03:00:00", true, true, 1500)
	first.Role = sizing.Master
	merged := of("full-merge-0", "1", "22 06:00:00", "22 07:00:00", false, false, 1500)
	merged.Role, merged.Kind, merged.Task = sizing.Master, merge, "full"
	w.Expect(asked).To(ConsistOf(first, of("ctr-worker-1", "1", "21 22:00:00", "22 02:00:00", true, false, 0),
		of("ctr-worker-1", "1", "22 04:00:00", "22 05:00:00", true, false, 1500),
		of("ctr-worker-1", "2", "22 06:00:00", "22 07:00:00", false, false, 1500), merged))
	w.Expect(w.TaskHistory("ads", training, "ctr").Usage).To(And(HaveKey(master), HaveKey(workers)))
	w.Expect(w.TaskHistory("ads", merge, "full").Usage).To(HaveKey(master))
}

func TestPartsOfAcceleratorsCountOnce(t *testing.T) {
	w := newFixture(t)
	w.config.Sharing = config.Sharing{{Resource: "nvidia.com/gpu.shared", CountsAs: "nvidia.com/gpu", Whole: 4}}
	w.record(stay("ctr", "22 06:00:00", "22 12:00:00"))
	w.pass(turnLength)
	w.Expect(w.prometheus.stays).To(ConsistOf(HaveField("Accelerators", int64(1000))))
}

func TestBatches(t *testing.T) {
	g := NewWithT(t)
	g.Expect(makeBatches(nil, 500)).To(BeEmpty())
	var sizes [][]int64
	for _, b := range makeBatches([]ledger.TaskDay{{Pods: 200}, {Pods: 300}, {Pods: 1}, {Pods: 4096}, {Pods: 499}, {Pods: 1}}, 500) {
		var pods []int64
		for i := range b {
			pods = append(pods, b[i].Pods)
		}
		sizes = append(sizes, pods)
	}
	g.Expect(sizes).To(Equal([][]int64{{200, 300}, {1}, {4096}, {499, 1}}), "a task is not taken apart")
}

// manyTasks gives the ledger tasks of yesterday and today, and each is asked about alone.
func manyTasks(w *fixture, n int) {
	w.THelper()
	for i := range n {
		w.record(stay(fmt.Sprintf("t%02d", i), "21 22:00:00", "22 12:00:00"))
	}
	w.mostPods = 1
}

func TestOnlyWhatFailedIsTriedAgain(t *testing.T) {
	w := newFixture(t)
	manyTasks(w, 6)
	w.prometheus.fail = func(q question) error {
		if q.Day == "22" && (q.Tasks[0] == "t01" || q.Tasks[0] == "t02") {
			return errPrometheus
		}
		return nil
	}
	w.pass(turnLength)
	w.Expect(w.prometheus.forget()).To(HaveLen(12), "what fails does not keep others from being asked")
	w.Expect(w.days()).NotTo(HaveKey("22"))
	w.Expect(w.days()).To(HaveKey("21"))
	w.Expect(w.TaskHistory("ads", training, "t03").Usage).NotTo(BeEmpty())
	w.Expect(w.TaskHistory("ads", training, "t01").Usage[workers].SeenSeconds).To(BeEquivalentTo(2*3600), "of the 21st")
	w.Expect(testutil.ToFloat64(w.metrics.up)).To(BeZero())
	w.pass(turnLength)
	w.Expect(w.prometheus.forget()).To(Equal([]question{{"22", []string{"t01"}}, {"22", []string{"t02"}}}))
	w.pass(turnLength)
	w.Expect(w.prometheus.forget()).To(BeEmpty(), "each rest is longer than the one before")
	w.pass(50 * time.Minute)
	w.Expect(len(w.prometheus.forget())).To(BeNumerically("~", 2*15, 4), "and none longer than five minutes")
	w.pass(10 * time.Minute)
	w.Expect(w.prometheus.forget()).To(ContainElement(question{"22", []string{"t03"}}), "after an hour what was answered is old")
	w.prometheus.fail = nil
	w.pass(5 * time.Minute)
	w.Expect(w.prometheus.forget()).To(HaveLen(2))
	w.Expect(w.days()).To(HaveKeyWithValue("22", "22 13:00:00"), "what was answered first is of then")
	w.Expect(testutil.ToFloat64(w.metrics.up)).To(Equal(1.0))
}

func TestPrometheusThatIsDown(t *testing.T) {
	w := newFixture(t)
	manyTasks(w, 6)
	w.pass(turnLength)
	w.prometheus.forget()
	before := w.TaskHistory("ads", training, "t00")
	w.prometheus.fail = func(question) error { return errPrometheus }
	w.pass(2 * time.Hour)
	asked := w.prometheus.forget()
	w.Expect(asked).To(HaveEach(HaveField("Day", "22")))
	rounds := testutil.ToFloat64(w.metrics.failures)
	w.Expect(rounds).To(BeNumerically("~", 18, 3), "they rest")
	w.Expect(asked).To(HaveLen(3*int(rounds)), "three failures end a round")
	tried := map[string]bool{}
	for _, q := range asked {
		tried[q.Tasks[0]] = true
	}
	w.Expect(tried).To(HaveLen(6), "those that failed are the last that are tried again")
	w.Expect(w.TaskHistory("ads", training, "t00")).To(Equal(before), "what was known stays")
	w.pass(10*time.Minute + turnLength)
	w.Expect(w.TaskHistory("ads", training, "t00")).To(And(HaveField("Usage", before.Usage), HaveField("Unavailable", And(
		ContainSubstring("since 2026-11-22T12:00:05Z"), ContainSubstring("TidelinePrometheusFails")))))
	w.start()
	w.pass(turnLength)
	w.Expect(w.TaskHistory("ads", training, "t00").Usage).To(Equal(before.Usage), "also for the next operator")
	w.Expect(w.TaskHistory("ads", training, "t00").Unavailable).NotTo(BeEmpty())
	w.prometheus.fail = nil
	w.pass(10 * time.Minute)
	w.Expect(w.TaskHistory("ads", training, "t00").Unavailable).To(BeEmpty())
	w.Expect(w.TaskHistory("ads", training, "t00").Usage[workers].SeenSeconds).To(BeNumerically(">",
		before.Usage[workers].SeenSeconds))
}

// Of a batch a part may be answered: that part is kept, and the batch is asked about again.
func TestPartOfAnAnswerIsKept(t *testing.T) {
	w := newFixture(t)
	w.record(stay("a", "22 06:00:00", "22 12:00:00"), stay("b", "22 06:00:00", "22 12:00:00"))
	w.prometheus.fail = func(question) error { return errPrometheus }
	w.prometheus.answered = func(k sizing.Key) bool { return k.Task == "a" }
	w.pass(turnLength)
	w.Expect(w.TaskHistory("ads", training, "a").Usage).NotTo(BeEmpty())
	w.Expect(w.TaskHistory("ads", training, "b").Usage).To(BeEmpty())
	w.Expect(w.days()).NotTo(HaveKey("22"))
}

// A Prometheus that has lost what it had says less than is known.
func TestLessThanIsKnownIsNotKept(t *testing.T) {
	w := newFixture(t)
	w.record(stay("ctr", "22 06:00:00", "22 12:00:00"))
	w.pass(turnLength)
	before := w.TaskHistory("ads", training, "ctr").Usage[workers]
	w.Collector.collect = func(
		_ context.Context, _ time.Time, _ []promquery.Stay, _ time.Time,
	) (map[sizing.Key]sizing.Usage, error) {
		return map[sizing.Key]sizing.Usage{
			{Namespace: "ads", Kind: training, Task: "ctr", Role: sizing.Worker, Container: "pytorch"}: {RunSeconds: 7 * 3600},
		}, nil
	}
	w.pass(time.Hour)
	w.Expect(w.days()).To(HaveKeyWithValue("22", HavePrefix("22 13")))
	w.Expect(w.TaskHistory("ads", training, "ctr").Usage[workers]).To(Equal(before))
}

// end is how a history ends: what is known, and which days were collected.
func end(w *fixture) string {
	h := w.TaskHistory("ads", training, "ctr")
	return fmt.Sprint(h.Usage, h.Unavailable, w.TaskHistory("ads", training, "new").Usage, slices.Sorted(maps.Keys(w.days())))
}

// tell tells an operator of kills while time passes.
func tell(w *fixture, pass func()) {
	for step := range 5 {
		if step == 2 {
			w.clock = at("23 00:30:00")
		}
		for restarts := range min(step, 3) { // all of them, as long as the pod is there
			w.OOMKilled(OOMKill{
				Pod: "pod", Restarts: int32(restarts), At: at("22 11:00:00"), LimitBytes: int64(restarts+1) << 30,
				Key: sizing.Key{Namespace: "ads", Kind: training, Task: "ctr", Role: sizing.Worker, Container: "pytorch"},
			})
		}
		pass()
	}
}

// fault has an operator collect, and lets one call of the ledger fail, or the operator be killed at it, before or after it
// arrives.
func fault(t *testing.T, call int, arrives, killed bool) (known string, of *faults) {
	t.Helper()
	w := newFixture(t)
	w.record(stay("ctr", "21 00:00:00", "22 12:00:00"), stay("new", "22 10:00:00", "22 12:00:00"))
	var done []ledger.Collected
	for day := range 6 {
		done = append(done, ledger.Collected{Day: at("15 00:00:00").AddDate(0, 0, day), Until: w.clock})
	}
	w.Expect(w.ledger.RecordEntries(t.Context(), ledger.Entries{Collected: done})).To(Succeed())
	down := false
	w.faults.fail = func(n int) (bool, error) {
		if down = down && killed || n == call; down {
			return arrives, errDown
		}
		return true, nil
	}
	tell(w, func() {
		w.pass(turnLength)
		if down && killed {
			down = false
			w.start()
		}
		w.pass(time.Minute)
	})
	w.faults.fail = nil
	w.pass(time.Hour)
	w.clock = at("23 02:00:00")
	w.start()
	w.pass(turnLength)
	w.Expect(w.TaskHistory("ads", training, "ctr").Usage[workers]).To(And(
		HaveField("OOMKills", int64(3)), HaveField("OOMLimit", int64(3<<30))))
	return end(w), w.faults
}

// Whichever call of the ledger fails, arrived or not, and whether the operator lives on or is killed at it, what is known in the
// end is what it would be without.
func TestFaultsOfTheLedgerAtEveryCall(t *testing.T) {
	want, of := fault(t, 0, true, false)
	NewWithT(t).Expect(of.calls).To(BeNumerically(">", 40))
	for _, call := range points.Choose(t, 1, of.calls, 3) {
		for _, arrives := range []bool{false, true} {
			for _, killed := range []bool{false, true} {
				if (arrives || killed) && !of.writes[call] {
					continue // to be killed at a read is to be killed before the next write
				}
				t.Run(fmt.Sprintf("call %d arrived %t killed %t", call, arrives, killed), func(t *testing.T) {
					t.Parallel() // they wait for the disk
					known, _ := fault(t, call, arrives, killed)
					NewWithT(t).Expect(known).To(Equal(want))
				})
			}
		}
	}
}

func TestLedgerThatIsDown(t *testing.T) {
	w := newFixture(t)
	w.record(stay("ctr", "21 00:00:00", "22 12:00:00"))
	down := true
	w.faults.fail = func(int) (bool, error) {
		if down {
			return false, errDown
		}
		return true, nil
	}
	w.pass(30 * time.Minute)
	w.Expect(w.TaskHistory("ads", training, "ctr").Unavailable).To(ContainSubstring("has not read its ledger"))
	w.Expect(w.prometheus.asked).To(BeEmpty())
	w.Expect(w.faults.calls).To(BeNumerically("~", 12, 2), "it rests between tries")
	down = false
	w.pass(5 * time.Minute)
	before := w.TaskHistory("ads", training, "ctr")
	w.Expect(before.Unavailable).To(BeEmpty())
	down = true
	w.pass(2 * time.Hour)
	w.Expect(w.TaskHistory("ads", training, "ctr")).To(Equal(before), "what is known stays")
}

func TestWindowMovesOn(t *testing.T) {
	w := newFixture(t)
	w.record(stay("ctr", "08 00:00:00", "08 12:00:00", ended(ledger.Succeeded)))
	w.pass(turnLength)
	w.Expect(w.TaskHistory("ads", training, "ctr").Usage).NotTo(BeEmpty())
	w.clock = at("23 12:00:00")
	w.pass(time.Hour)
	w.Expect(w.TaskHistory("ads", training, "ctr").Usage).To(BeEmpty())
	from, to := windowOf(at("22 23:59:59"), sizing.DefaultWindowDays)
	w.Expect([]time.Time{from, to}).To(Equal([]time.Time{at("08 00:00:00"), at("23 00:00:00")}))
}

func TestWindowsOfProfiles(t *testing.T) {
	w := newFixture(t)
	w.windows = &windows{most: 16, days: map[string]int{"ads": 16, "brief": 1}}
	of := func(namespace string) func(*ledger.Stay) {
		return func(s *ledger.Stay) { s.Namespace, s.Name = namespace, namespace+"-worker-1" }
	}
	for _, namespace := range []string{"ads", "brief", "unowned"} {
		w.record(stay("ctr", "06 00:00:00", "06 12:00:00", ended(ledger.Succeeded), of(namespace)),
			stay("ctr", "21 00:00:00", "21 12:00:00", ended(ledger.Succeeded), of(namespace)))
	}
	w.pass(time.Minute)
	seen := func(namespace string) (days, hours int64) {
		h := w.TaskHistory(namespace, training, "ctr")
		for _, u := range h.Usage {
			hours = max(hours, u.RunSeconds/3600)
		}
		return int64(h.WindowDays), hours
	}
	days, hours := seen("ads")
	w.Expect([]int64{days, hours}).To(Equal([]int64{16, 24}), "what is sixteen days ago counts in a longer window")
	days, hours = seen("brief")
	w.Expect([]int64{days, hours}).To(Equal([]int64{1, 12}))
	days, hours = seen("unowned")
	w.Expect([]int64{days, hours}).To(Equal([]int64{14, 12}), "and the default is two weeks")
}
