package recorder

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

func (m *memory) setBlind(blind bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blind = blind
}

func (m *memory) questions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.askedSurplus
}

func TestHowSurplusFaredIsReadNowAndThen(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		m.held = map[string]time.Duration{"ads": 10 * time.Hour, "rec": time.Hour}
		m.left = map[string]int64{"ads": 5, "gone": 1}
		c.stand()
		g.Expect(c.recorder.StayIn("ads")).To(BeZero(), "an operator that does not lead knows nothing")
		c.start()
		g.Expect(c.recorder.StayIn("ads")).To(BeZero(), "not read yet")
		pass(endsInterval)
		g.Expect(c.recorder.StayIn("ads")).To(Equal(growth.Stay{Held: 10 * time.Hour, Left: 5}))
		g.Expect(c.recorder.StayIn("rec")).To(Equal(growth.Stay{Held: time.Hour}))
		g.Expect(c.recorder.StayIn("gone")).To(Equal(growth.Stay{Left: 1}))
		g.Expect(c.recorder.StayIn("none")).To(BeZero())
		m.mu.Lock()
		m.held = map[string]time.Duration{"ads": 20 * time.Hour}
		m.mu.Unlock()
		pass(growthInterval - endsInterval)
		g.Expect(m.questions()).To(Equal(1))
		pass(2 * endsInterval)
		g.Expect(c.recorder.StayIn("ads").Held).To(Equal(20 * time.Hour))
		pass(time.Hour)
		g.Expect(m.questions()).To(BeNumerically("~", 14, 1))
	})
}

func TestHowSurplusFaredCannotBeRead(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		m.held = map[string]time.Duration{"ads": time.Hour}
		c.start()
		pass(endsInterval)
		m.setBlind(true)
		opened := m.opened
		c.set(newPod("a", boundOn(now())))
		pass(time.Hour)
		g.Expect(c.recorder.StayIn("ads").Held).To(Equal(time.Hour), "the last that is known")
		g.Expect(m.opened).To(Equal(opened), "the ledger stays open")
		g.Expect(m.get("a").End).To(BeTemporally("~", now(), time.Minute), "and is written")
		g.Expect(m.questions()).To(BeNumerically("~", 14, 1), "it is tried after 1, 2, 4 and then each 5 minutes")
		g.Expect(testutil.ToFloat64(c.recorder.metrics.failures)).To(BeNumerically("==", m.questions()-1))
		m.setBlind(false)
		pass(growthInterval)
		asked := m.questions()
		m.setBlind(true)
		pass(growthInterval + growthRetry + 2*endsInterval)
		g.Expect(m.questions()).To(BeNumerically(">=", asked+2), "the pauses begin anew")
	})
}

// measured is a decision that an outage was measured.
func measured(task string, seconds int, at time.Time) ledger.Decision {
	return ledger.Decision{
		At: at, Kind: decisionlog.OutageMeasured, Namespace: "ads", Name: task + "-1", UID: "u",
		Figures: map[string]string{decisionlog.Task: task, decisionlog.Seconds: strconv.Itoa(seconds)},
	}
}

func TestOutagesOfTasks(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		start := now()
		pass(40 * 24 * time.Hour)
		m.decisions = []ledger.Decision{
			measured("old", 9, start), measured("ctr", 40, now().Add(-2*time.Hour)), measured("ctr", 50, now().Add(-time.Hour)),
		}
		// A job whose last measurement the ledger does not have, and one that last changed its size before others measured more.
		for task, resized := range map[string]time.Duration{"unrecorded": -time.Minute, "ctr": -24 * time.Hour} {
			job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: task, UID: "j"}}
			job.Status.Elasticity = &v1beta1.ElasticityStatus{
				OutageSeconds: 70, LastGrowthTime: ptr.To(metav1.NewTime(now().Add(resized))),
			}
			g.Expect(c.trainings.Add(job)).To(Succeed())
		}
		outageOf := func(namespace, task string) time.Duration {
			lasted, known := c.recorder.OutageOf(namespace, task)
			g.Expect(known).To(Equal(lasted > 0))
			return lasted
		}
		c.stand()
		c.recorder.Decided(measured("ctr", 99, now()))
		g.Expect(outageOf("ads", "ctr")).To(BeZero(), "an operator that does not lead knows nothing")
		c.start()
		pass(endsInterval)
		g.Expect(outageOf("ads", "ctr")).To(Equal(50 * time.Second))
		g.Expect(outageOf("ads", "unrecorded")).To(Equal(70 * time.Second))
		g.Expect(outageOf("ads", "old")).To(BeZero())
		g.Expect(outageOf("rec", "ctr")).To(BeZero(), "a task is of its namespace")
		c.recorder.Decided(measured("ctr", 60, now()))
		g.Expect(outageOf("ads", "ctr")).To(Equal(60*time.Second), "at once")
		c.recorder.Decided(measured("ctr", 10, now().Add(-time.Hour)))
		c.recorder.Decided(ledger.Decision{At: now(), Kind: decisionlog.Ran, Namespace: "ads", Figures: map[string]string{
			decisionlog.Task: "ctr", decisionlog.Seconds: "1",
		}})
		g.Expect(outageOf("ads", "ctr")).To(Equal(60 * time.Second))
		for i := range mostTasks + 1 {
			c.recorder.Decided(measured("t"+strconv.Itoa(i), 5, now().Add(time.Duration(i)*time.Millisecond)))
		}
		g.Expect(len(c.recorder.growths.outages)).To(And(BeNumerically("<=", mostTasks), BeNumerically(">", mostTasks/2)))
		g.Expect(outageOf("ads", "t"+strconv.Itoa(mostTasks))).To(Equal(5 * time.Second))
		g.Expect(outageOf("ads", "ctr")).To(BeZero(), "of too many the oldest are dropped")
	})
}

// sped is a decision that a speed was measured.
func sped(task string, workers int, perHour string, at time.Time) ledger.Decision {
	return ledger.Decision{
		At: at, Kind: decisionlog.SpeedMeasured, Namespace: "ads", Name: task + "-1", UID: "u", Figures: map[string]string{
			decisionlog.Task: task, decisionlog.Workers: strconv.Itoa(workers), decisionlog.PercentPerHour: perHour,
		},
	}
}

func TestSpeedsOfTasks(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		start := now()
		pass(40 * 24 * time.Hour)
		m.decisions = []ledger.Decision{
			sped("ctr", 2, "9", start), sped("ctr", 8, "20", now().Add(-2*time.Hour)), sped("ctr", 4, "12.5", now().Add(-time.Hour)),
			sped("ctr", 16, "fast", now().Add(-time.Hour)), sped("ctr", -1, "3", now().Add(-time.Hour)),
		}
		speeds := func(namespace, task string) (all []string) {
			for _, s := range c.recorder.SpeedsOf(namespace, task) {
				all = append(all, strconv.Itoa(int(s.Workers))+": "+s.PercentPerHour)
			}
			return all
		}
		c.start()
		pass(endsInterval)
		g.Expect(speeds("ads", "ctr")).To(Equal([]string{"4: 12.5", "8: 20"}), "of the last 30 days, without nonsense")
		g.Expect(speeds("rec", "ctr")).To(BeEmpty(), "a task is of its namespace")
		c.recorder.Decided(sped("ctr", 8, "25", now()))
		c.recorder.Decided(sped("ctr", 4, "1", now().Add(-3*time.Hour)))
		g.Expect(speeds("ads", "ctr")).To(Equal([]string{"4: 12.5", "8: 25"}), "at once, unless something newer is known")
		for i := range mostTasks + 1 {
			c.recorder.Decided(sped("t"+strconv.Itoa(i), 2, "5", now()))
		}
		g.Expect(c.recorder.growths.speeds).To(HaveLen(mostTasks))
	})
}

// What the operator tells of a job and its pods comes back to later jobs, through a ledger on disk.
func TestGrowthComesBackFromTheLedger(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	l, err := OpenLedger(ctx, config.Ledger{File: filepath.Join(t.TempDir(), "ledger.db")})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	midday := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr-7", UID: "j"}}
	job.Spec.Task = "ctr"
	before := &v1beta1.ElasticTrainingJobStatus{
		Queue: "ads-q", Attempt: &v1beta1.AttemptStatus{Number: 1, MinReplicas: 1, MaxReplicas: 4, StartTime: metav1.NewTime(midday)},
		Members: []v1beta1.Member{{Index: 0}, {Index: 1}, {Index: 2}, {Index: 3}},
	}
	after := before.DeepCopy()
	after.Elasticity = &v1beta1.ElasticityStatus{
		Evicted: []int32{1, 2}, LastEvictionTime: ptr.To(metav1.NewTime(midday)), OutageSeconds: 45,
	}
	told := list{}
	TellTraining(&told, job, before, after, midday)
	stay := func(uid, role string, lasted time.Duration) ledger.Stay {
		return ledger.Stay{Pod: ledger.Pod{
			UID: uid, Namespace: "ads", Name: uid, Queue: "ads-q", Kind: v1beta1.ElasticTrainingJobKind, Task: "ctr", Role: role,
			Resources: ledger.Resources{gpu: 8000, "cpu": 64000},
		}, Begin: midday, End: midday.Add(lasted)}
	}
	g.Expect(l.RecordEntries(ctx, ledger.Entries{Decisions: told, Stays: []ledger.Stay{
		stay("a", v1beta1.PartCore, 9*time.Hour), stay("b", v1beta1.PartSurplus, time.Hour),
		stay("c", v1beta1.PartSurplus, 2*time.Hour),
	}})).To(Succeed())
	read := func(now time.Time) *Recorder {
		r := &Recorder{now: func() time.Time { return now }, log: logr.Discard()}
		r.metrics = newMetrics(func() float64 { return 0 })
		r.readGrowth(ctx, l)
		g.Expect(testutil.ToFloat64(r.metrics.failures)).To(BeZero())
		return r
	}
	r := read(midday.Add(35 * time.Hour))
	g.Expect(r.StayIn("ads-q")).To(Equal(growth.Stay{Held: 3 * time.Hour, Left: 2}))
	lasted, known := r.OutageOf("ads", "ctr")
	g.Expect(known).To(BeTrue())
	g.Expect(lasted).To(Equal(45 * time.Second))
	r = read(midday.Add(36 * time.Hour))
	g.Expect(r.StayIn("ads-q")).To(BeZero(), "the day before yesterday does not count")
}
