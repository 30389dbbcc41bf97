package recorder

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

func TestStaysAreRecordedAsTheyBeginRunAndEnd(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		c.start()
		pass(7 * time.Second)
		began := now()
		c.set(newPod("a", waiting))
		c.set(newPod("a", boundOn(began)))
		c.set(newPod("cpu", asks(gpu, "0"), boundOn(began)))
		pass(endsInterval)
		g.Expect(m.get("a").Begin).To(BeTemporally("==", began), "it is recorded at once that it began")
		c.set(newPod("short", boundOn(now())))
		pass(time.Second)
		shortEnd := now()
		c.set(newPod("short", boundOn(shortEnd.Add(-time.Second)), phase(corev1.PodSucceeded, shortEnd)))
		pass(2 * time.Minute)
		g.Expect(m.get("short")).To(And(HaveField("Outcome", ledger.Succeeded), HaveField("End", BeTemporally("==", shortEnd)),
			HaveField("Begin", BeTemporally("==", shortEnd.Add(-time.Second)))), "a second counts as a second")
		g.Expect(m.get("a").Final).To(BeFalse())
		g.Expect(time.Since(m.get("a").End)).To(BeNumerically("<=", time.Minute), "it is seen each minute")
		c.drop(newPod("a", boundOn(began)), true)
		ended := now()
		pass(endsInterval)
		g.Expect(m.get("a")).To(And(HaveField("Outcome", ledger.Deleted), HaveField("End", BeTemporally("~", ended, time.Second))))
		g.Expect(m.get("cpu").Final).To(BeFalse(), "it counts without a GPU too")
		c.drop(newPod("cpu", asks(gpu, "0"), boundOn(began)), true)
		pass(endsInterval)
		g.Expect(c.recorder.size()).To(BeZero())
		g.Expect(c.recorder.backlog.open).To(BeEmpty(), "nothing is kept of what has ended")
	})
}

// The totals are those of an operator that never ended, whichever write it dies at, before or after the write arrived.
func TestKilledAtEveryWrite(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		total := history(t, 0, false)
		if len(total) != 6 {
			t.Fatalf("the history has %d stays", len(total))
		}
		for write := 1; ; write++ {
			killed := history(t, write, arrives)
			if killed == nil {
				if write < 10 {
					t.Errorf("there were %d writes", write-1)
				}
				break
			}
			if !maps.Equal(killed, total) {
				t.Errorf("killed at write %d (arrived: %t): %v, not %v", write, arrives, killed, total)
			}
		}
	}
}

// history is the begin, the end and the outcome of the stays of pods that come and go in some minutes, with an operator that is
// killed at a write and started again; nil if there were fewer writes.
func history(t *testing.T, killedAt int, arrives bool) map[string]string {
	t.Helper()
	var told map[string]string
	inBubble(t, func(_ *WithT, c *cluster, m *memory) {
		zero, killed := now(), make(chan struct{})
		m.fail = func(write int) (bool, error) {
			if write != killedAt {
				return false, nil
			}
			close(killed)
			m.down = true // Its lock is held.
			return arrives, errDown
		}
		c.start()
		for step := range 40 {
			name := fmt.Sprintf("p%d", step/5)
			switch {
			case step >= 30: // The last minutes are for those that run to be seen.
			case step%5 == 0:
				c.set(newPod(name, boundOn(now())))
			case step%5 == 3:
				c.set(newPod(name, boundOn(now().Add(-30*time.Second)), phase(corev1.PodSucceeded, now())))
			}
			pass(10 * time.Second)
			select {
			case <-killed:
				killed = nil
				c.stop()
				m.down = false
				c.start()
			default:
			}
		}
		if killedAt > m.writes {
			return
		}
		told = map[string]string{}
		for uid, s := range m.stays {
			told[uid] = fmt.Sprint(s.Begin.Sub(zero), s.End.Sub(zero), s.Final, s.Outcome, s.Uncertain)
		}
	})
	return told
}

func TestGapIsClosedAtTheStart(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		old := now()
		pass(3 * 24 * time.Hour)
		began := now()
		c.start()
		for _, name := range []string{"runs", "says", "silent", "gone"} {
			c.set(newPod(name, boundOn(began)))
		}
		pass(90 * time.Second)
		c.crash()
		seen := m.get("gone").End
		pass(10 * time.Minute)
		ended := now()
		c.stand() // No operator leads meanwhile.
		c.set(newPod("says", boundOn(began), phase(corev1.PodFailed, ended)))
		c.set(newPod("silent", boundOn(began), phase(corev1.PodFailed, time.Time{})))
		c.drop(newPod("gone", boundOn(began)), true)
		c.set(newPod("old", boundOn(old), phase(corev1.PodFailed, time.Time{}), readyUntil(old.Add(time.Minute))))
		c.set(newPod("between", boundOn(ended), phase(corev1.PodSucceeded, ended.Add(time.Second))))
		pass(10 * time.Minute)
		c.start()
		pass(endsInterval)
		g.Expect(m.get("runs")).To(And(HaveField("Final", false), HaveField("End", BeTemporally("~", now(), endsInterval))))
		g.Expect(m.get("says")).To(And(HaveField("Outcome", ledger.Failed), HaveField("End", BeTemporally("==", ended)),
			HaveField("Uncertain", false)))
		g.Expect(m.get("silent")).To(And(HaveField("Outcome", ledger.Failed), HaveField("Uncertain", true),
			HaveField("End", BeTemporally("==", seen))), "when it was last seen to run")
		g.Expect(m.get("old")).To(And(HaveField("Outcome", ledger.Failed), HaveField("Uncertain", true),
			HaveField("End", BeTemporally("==", old.Add(time.Minute)))), "the days since cost nothing")
		g.Expect(m.get("gone")).To(And(HaveField("Outcome", ledger.Lost), HaveField("Uncertain", true),
			HaveField("End", BeTemporally("==", seen))))
		g.Expect(m.get("between")).To(And(HaveField("Outcome", ledger.Succeeded), HaveField("Uncertain", false),
			HaveField("Begin", BeTemporally("==", ended))), "what came and ended meanwhile, and is still there")
	})
}

func TestPodsThatWereThereWhenTheWatchBeganDoNotEndNow(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		bound := now()
		pass(3 * 24 * time.Hour)
		c.start()
		ended := newPod("a", boundOn(bound), phase(corev1.PodFailed, time.Time{}))
		c.recorder.podHandler(c.t.Context()).OnAdd(ended, true)
		pass(time.Minute)
		g.Expect(m.stays).To(BeEmpty())
		c.set(newPod("b", boundOn(now())))
		pass(time.Minute)
		g.Expect(m.stays).To(HaveLen(1))
	})
}

func TestNoPodCountsAsLostBeforeAllAreKnown(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		m.stays["uid-a"] = StayOf(newPod("a", boundOn(now())), Place{}, config.DefaultConfiguration(), now())
		c.stand()
		var known atomic.Bool
		c.recorder.synced = known.Load
		ctx, cancel := context.WithCancel(c.t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = c.recorder.Start(ctx)
		}()
		pass(time.Minute)
		g.Expect(m.writes).To(BeZero())
		c.set(newPod("a", boundOn(now())))
		known.Store(true)
		pass(time.Minute)
		g.Expect(m.get("a").Final).To(BeFalse())
		g.Expect(m.writes).NotTo(BeZero())
		cancel()
		<-ended
	})
}

func TestRefusedEntriesHoldUpNoOthers(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		c.start()
		for i := range 20 {
			c.set(newPod(strconv.Itoa(i), boundOn(now())))
			c.recorder.Decided(ledger.Decision{At: now(), Name: strconv.Itoa(i)})
		}
		never := newPod("never", boundOn(time.Time{}))
		never.CreationTimestamp.Reset()
		c.set(never)
		c.recorder.Decided(ledger.Decision{Name: "never"})
		pass(endsInterval)
		g.Expect(m.stays).To(HaveLen(20))
		g.Expect(m.decisions).To(HaveLen(20))
		g.Expect(testutil.ToFloat64(c.recorder.metrics.stays)).To(BeNumerically(">=", 1))
		g.Expect(testutil.ToFloat64(c.recorder.metrics.decisions)).To(Equal(1.0))
		g.Expect(testutil.ToFloat64(c.recorder.metrics.failures)).To(BeZero())
		g.Expect(c.recorder.size()).To(BeZero())
	})
}

func TestNothingIsLostWhileTheLedgerIsDown(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		began := now()
		c.start()
		c.set(newPod("before", boundOn(began)))
		c.set(newPod("through", boundOn(began)))
		pass(time.Minute)
		c.recorder.Decided(ledger.Decision{At: now(), Name: "first"})
		m.setDown(true)
		ends := map[string]time.Time{}
		for i := range 60 {
			name := strconv.Itoa(i)
			c.set(newPod(name, boundOn(now())))
			pass(30 * time.Second)
			c.drop(newPod(name, boundOn(now().Add(-30*time.Second))), true)
			ends[name] = now()
			pass(30 * time.Second)
		}
		c.drop(newPod("before", boundOn(began)), true)
		c.recorder.Decided(ledger.Decision{At: now(), Name: "a"})
		g.Expect(testutil.ToFloat64(c.recorder.metrics.failures)).To(BeNumerically(">", 50))
		g.Expect(c.recorder.size()).To(Equal(63))
		m.setDown(false)
		pass(lastRetry + endsInterval)
		for name, at := range ends {
			g.Expect(m.get(name)).To(And(HaveField("Outcome", ledger.Deleted), HaveField("Uncertain", false),
				HaveField("End", BeTemporally("~", at, time.Second))), name)
		}
		g.Expect(m.get("before").Outcome).To(Equal(ledger.Deleted))
		g.Expect(m.get("through").End).To(BeTemporally("~", now(), time.Minute))
		g.Expect(m.decisions).To(HaveExactElements(HaveField("Name", "first"), HaveField("Name", "a")))
		g.Expect(testutil.ToFloat64(c.recorder.metrics.stays)).To(BeZero())
		g.Expect(c.recorder.size()).To(BeZero())
	})
}

func TestClockThatIsSetBack(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		began := now()
		c.start()
		c.set(newPod("a", boundOn(began)))
		c.set(newPod("b", boundOn(began)))
		pass(10 * time.Minute)
		seen, before := m.get("a").End, m.writes
		c.ahead.Store(int64(-time.Hour))
		c.recorder.Decided(ledger.Decision{At: now(), Name: "a"})
		pass(10 * time.Minute)
		g.Expect(m.writes).To(BeNumerically(">=", before+10), "it goes on")
		g.Expect(m.get("a").End).To(Equal(seen), "a stay only grows")
		done := now()
		c.set(newPod("a", boundOn(began), phase(corev1.PodSucceeded, done)))
		c.drop(newPod("b", boundOn(began)), true)
		pass(endsInterval)
		g.Expect(m.get("a").Final).To(BeTrue())
		g.Expect(m.get("b").Final).To(BeTrue())
		c.ahead.Store(0)
		pass(time.Minute)
		g.Expect(m.decisions).To(HaveLen(1))
	})
}

func TestOperatorThatEndsRecordsTheLast(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		c.start()
		c.set(newPod("a", boundOn(now())))
		pass(32 * time.Second)
		c.drop(newPod("b", boundOn(now().Add(-time.Second))), true)
		c.recorder.Decided(ledger.Decision{At: now(), Name: "a"})
		c.stop()
		g.Expect(m.get("a").End).To(BeTemporally("<", now().Add(-20*time.Second)), "the next operator sees what runs")
		g.Expect(m.get("b").Outcome).To(Equal(ledger.Deleted))
		g.Expect(m.decisions).To(HaveLen(1))
	})
}

func TestWhatWasMissedOfPods(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		began := now()
		c.start()
		c.set(newPod("a", boundOn(began)))
		c.set(newPod("b", boundOn(began)))
		pass(time.Minute)
		other := newPod("a", boundOn(now()))
		other.UID = "uid-other"
		c.set(other)
		c.drop(newPod("b", boundOn(began)), false)
		missed := toolscache.DeletedFinalStateUnknown{Key: "ads/b", Obj: newPod("b", boundOn(began))}
		c.recorder.podHandler(c.t.Context()).OnDelete(missed)
		pass(endsInterval)
		for _, name := range []string{"a", "b"} {
			g.Expect(m.get(name)).To(And(HaveField("Outcome", ledger.Lost), HaveField("Uncertain", true)), name)
		}
		g.Expect(m.get("other").Final).To(BeFalse())
	})
}

func TestPodCountsUntilItEndsWhateverBecomesOfItsNamespace(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		began := now()
		c.start()
		c.set(newPod("a", boundOn(began)))
		pass(endsInterval)
		c.profile.Store("")
		pass(5 * time.Minute)
		g.Expect(m.get("a").End).To(BeTemporally("~", now(), time.Minute), "it is still seen")
		c.drop(newPod("a", boundOn(began)), true)
		c.set(newPod("late", boundOn(now())))
		pass(time.Minute)
		g.Expect(m.get("a")).To(And(HaveField("Final", true), HaveField("Profile", "ads")))
		g.Expect(m.stays).NotTo(HaveKey("uid-late"))
	})
}

func TestWhoDoesNotLeadKeepsNothing(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, _ *memory) {
		c.stand()
		c.set(newPod("a", boundOn(now())))
		c.set(newPod("b", boundOn(now())))
		c.drop(newPod("b", boundOn(now())), true)
		c.recorder.Decided(ledger.Decision{At: now()})
		g.Expect(c.recorder.size()).To(BeZero())
		_, err := c.recorder.SpendingOf("ads", time.Hour)
		g.Expect(err).To(MatchError(ErrUnknown))
		none := &Recorder{now: time.Now}
		none.Decided(ledger.Decision{At: now()})
		g.Expect(none.size()).To(BeZero(), "nor does one without a ledger")
	})
}

func TestOldDaysAreDeleted(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		c.start()
		c.set(newPod("a", boundOn(now())))
		pass(13 * time.Hour)
		g.Expect(m.pruned).To(HaveLen(3), "at the start, and every six hours")
		g.Expect(m.pruned[2]).To(BeTemporally("~", now().AddDate(0, 0, -400), 2*time.Hour))
		for range 20 { // each time the ledger is opened anew
			m.setDown(true)
			pass(time.Minute)
			m.setDown(false)
			pass(2 * time.Minute)
		}
		g.Expect(m.pruned).To(HaveLen(3), "nor more often when it fails")
		c.stop()
		c.config.Ledger.RetentionDays = 0
		c.start()
		pass(time.Hour)
		g.Expect(m.pruned).To(HaveLen(3), "0 keeps all")
	})
}

func TestLedgerInAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger", "ledger.db")
	open := func(ctx context.Context) (*ledger.Ledger, error) { return OpenLedger(ctx, config.Ledger{File: file}) }
	began := time.Now().Add(-time.Hour).Truncate(time.Second)
	g := NewWithT(t)
	// operate lets an operator have some turns, and end.
	operate := func(pods ...*corev1.Pod) *cluster {
		l, err := open(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { g.Expect(l.Close()).To(Succeed()) }()
		c := newCluster(t, l)
		c.stand()
		for _, pod := range pods {
			c.set(pod)
		}
		c.recorder.beginLeading()
		g.Expect(c.recorder.closeGap(t.Context(), l)).To(Succeed())
		g.Expect(c.recorder.writeWaiting(t.Context(), l, true)).To(Succeed())
		_, _ = c.recorder.SpendingOf("ads", 2*time.Hour)
		c.recorder.readSpendings(t.Context(), l, true)
		return c
	}
	user := labelled("tideline.io/owner", "alice")
	ended := newPod("b", boundOn(began), user, phase(corev1.PodSucceeded, began.Add(30*time.Minute)))
	operate(newPod("a", boundOn(began), user), newPod("b", boundOn(began), user), newPod("c", boundOn(began), user))
	c := operate(newPod("a", boundOn(began), user), ended)
	for range 2 { // what ended is recorded again
		c = operate(newPod("a", boundOn(began), user), ended)
	}
	spent, err := c.recorder.SpendingOf("ads", 2*time.Hour)
	g.Expect(err).NotTo(HaveOccurred())
	const hour = 3_600_000
	g.Expect(spent.ByUser).To(HaveKeyWithValue("alice", BeNumerically("~", 2.5*hour, 0.05*hour)),
		"an hour of a, an hour of c until it was last seen, and half an hour of b: what it was taken for running since is taken back")
	l, err := open(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	stays, err := l.OpenStays(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	runs := And(HaveField("Name", "a"), HaveField("User", "alice"), HaveField("Begin", BeTemporally("==", began)))
	g.Expect(stays).To(ConsistOf(runs))
}

func TestLedgerThatCannotBeOpened(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	for _, at := range []config.Ledger{
		{File: filepath.Join(folder, "a", "b", "ledger.db")}, {File: folder}, {PostgresDSNFile: filepath.Join(folder, "none")},
	} {
		_, err := OpenLedger(t.Context(), at)
		g.Expect(err).To(HaveOccurred())
	}
}

func TestUntilWhenTheLedgerHasAllStays(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		c.stand()
		g.Expect(c.recorder.CompleteUntil()).To(BeZero(), "nothing was recorded yet")
		m.setDown(true)
		c.start()
		c.set(newPod("a", boundOn(now())))
		pass(10 * time.Minute)
		g.Expect(c.recorder.CompleteUntil()).To(BeZero())
		m.setDown(false)
		pass(10 * time.Minute)
		complete := c.recorder.CompleteUntil()
		g.Expect(complete).To(BeTemporally("~", now(), seenInterval), "all that run are recorded once a minute")
		m.setDown(true)
		pass(10 * time.Minute)
		g.Expect(now().Sub(c.recorder.CompleteUntil())).To(BeNumerically(">=", 10*time.Minute))
	})
}
