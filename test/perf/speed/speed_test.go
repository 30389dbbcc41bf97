package main

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/test/testutil"
)

func TestProcesses(t *testing.T) {
	g := NewWithT(t)
	g.Expect(parseStat([]byte("7 (a b) c) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 9 9 20 0 1 0 1 1 1"))).To(Equal(2 * time.Second))
	_, err := parseStat([]byte("7 (a) S 1"))
	g.Expect(err).To(HaveOccurred())
	g.Expect(parseStatus("Name:\ta\nVmHWM:\t   30 kB\nVmRSS:\t   20 kB\nRssFile:\t   10 kB\n")).
		To(Equal(memory{peak: 30 << 10, now: 20 << 10, files: 10 << 10}))
	_, err = parseStatus("VmRSS: 1 kB\n")
	g.Expect(err).To(HaveOccurred())
	m, err := memoryOf(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.now).To(And(BeNumerically(">", 1<<20), BeNumerically("<=", m.peak)))
}

func TestWhatIsCounted(t *testing.T) {
	g := NewWithT(t)
	requests := []testutil.Request{
		{User: "a", Verb: "create", Resource: "pods"}, {User: "a", Verb: "patch", Resource: "events"},
		{User: "a", Verb: "get", Resource: "pods"}, {User: "a", Verb: "watch", Resource: "pods"},
		{User: "a", Verb: "update", Resource: "leases"}, {User: "b", Verb: "create", Resource: "pods"},
	}
	g.Expect(count(requests, "a")).To(Equal(counts{writes: 1, events: 1, reads: 1}))
}

func TestTheTableHasEveryRoundAndRatiosOfThem(t *testing.T) {
	g := NewWithT(t)
	o, err := parse([]string{"-jobs=100", "-commit=abc"})
	g.Expect(err).NotTo(HaveOccurred())
	of := func(seconds ...int) (all []figures) {
		for _, s := range seconds {
			took := time.Duration(s) * time.Second
			all = append(all, figures{jobs: 100, running: took, deleted: time.Second, made: counts{writes: 900}, cpu: took})
		}
		return all
	}
	text := report(o, map[string][]figures{
		volcanoJob: of(40, 50), tideline: of(60, 50), trainingOperator: of(100, 100), floor: of(20, 20),
	})
	g.Expect(text).To(ContainSubstring("at commit abc;"))
	g.Expect(text).To(ContainSubstring("| Tideline | 60.0, 50.0 | 9.0, 9.0 |"))
	g.Expect(text).To(ContainSubstring("| all running | 1.50, 1.00 | 0.60, 0.50 |"))
}

func TestASubjectThatStallsHasNoFigures(t *testing.T) {
	g := NewWithT(t)
	o, err := parse(nil)
	g.Expect(err).NotTo(HaveOccurred())
	ran := []figures{{jobs: 500, running: time.Minute, deleted: time.Minute, cpu: time.Second, memory: memory{peak: 1e6}}}
	stalled := stalledError{there: 1990, ready: 1980, wanted: 2000}
	text := report(o, map[string][]figures{
		floor: ran, volcanoJob: ran, tideline: ran, trainingOperator: {{jobs: 500, stalled: stalled.Error()}},
	})
	g.Expect(text).To(ContainSubstring("| training-operator | – | – |"))
	g.Expect(text).To(ContainSubstring("| all running | 1.00 | – |"))
	g.Expect(text).To(ContainSubstring("Round 1 of training-operator came to no end: 1990 pods were there and 1980 ready"))
}

func TestPodsThatComeNoCloserAreNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p := &pods{ready: map[types.UID]bool{"a": false}, changed: make(chan struct{}, 1)}
		began := time.Now()
		go func() {
			for range 4 {
				<-time.After(time.Minute)
				p.changed <- struct{}{} // A condition, or a pod in another's place.
			}
		}()
		g.Expect(p.await(t.Context(), 1)).To(MatchError(stalledError{there: 1, wanted: 1}))
		g.Expect(time.Since(began)).To(Equal(longest))
	})
}

func TestTheTableOfManyHasARowForEachSize(t *testing.T) {
	g := NewWithT(t)
	_, err := parse([]string{"-jobs=500,2000"})
	g.Expect(err).To(MatchError("-jobs: several only with -workload=large"))
	_, err = parse([]string{"-workload=large", "-jobs=500,0"})
	g.Expect(err).To(MatchError(`-jobs: "0" is no number of jobs`))
	_, err = parse([]string{"-workload=large", "-subjects=volcano"})
	g.Expect(err).To(MatchError(ContainSubstring("of Tideline alone")))
	o, err := parse([]string{"-workload=large", "-commit=abc", "-rest=20s"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.sizes).To(Equal([]int{500, 2000, 10000}))

	var runs []figures
	for _, jobs := range o.sizes {
		runs = append(runs, figures{
			jobs: jobs, running: time.Minute, cpu: time.Duration(jobs) * 30 * time.Millisecond,
			idle: 100 * time.Millisecond, rested: 20 * time.Second, memory: memory{peak: 2e8}, restart: 4 * time.Second,
		})
	}
	text := report(o, map[string][]figures{tideline: runs})
	g.Expect(text).To(ContainSubstring("at commit abc;"))
	g.Expect(text).To(MatchRegexp(`(?m)^\| 2000 \| 8000 \| 1001 \| 60\.0 \|.*\| 30\.0 \|.*\| 0\.50 \| 4\.0 \|$`))
	g.Expect(drawMany(runs)).To(ContainSubstring(">10000</text>"))
}

func TestTheFirstWriteForAJobIsTheOneThatCameFirst(t *testing.T) {
	g := NewWithT(t)
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	g.Expect(firstWrite([]testutil.Request{
		{User: "a", Verb: "get", Resource: "pods", Name: "job-00007-worker-0", Received: at(1)},
		{User: "a", Verb: "create", Resource: "pods", Name: "job-00006-worker-0", Received: at(2)},
		{User: "b", Verb: "create", Resource: "pods", Name: "job-00007-worker-0", Received: at(3)},
		{User: "a", Verb: "create", Resource: "pods", Name: "job-00007-worker-0", Received: at(5)},
		{User: "a", Verb: "create", Resource: "services", Name: "job-00007", Received: at(4)},
	}, "a", "job-00007")).To(Equal(at(4)), "requests are in the order in which they were answered")
	g.Expect(firstWrite(nil, "a", "job-00007")).To(BeZero())
}
