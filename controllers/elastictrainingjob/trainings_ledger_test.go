package elastictrainingjob

import (
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/progress"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// leader is an operator that follows the job of a stage, by a clock that it shares with others, and records in a ledger.
type leader struct {
	*stage

	g       *WithT
	c       *clock
	t       *testing.T
	crashed bool
}

func newLeader(t *testing.T, g *WithT, c *clock, l *ledger.Ledger) *leader {
	t.Helper()
	s := &leader{stage: newStage(t), g: g, c: c, t: t}
	s.hearNothing(c)
	s.record = func(e ledger.Trained) {
		if !s.crashed {
			g.Expect(l.RecordEntries(t.Context(), ledger.Entries{Trained: []ledger.Trained{e, e}})).To(Succeed())
		}
	}
	s.look("a")
	return s
}

// say has the training say a line now.
func (s *leader) say(step, checkpoint int64, phase progress.Phase) {
	r := progress.Report{Step: step, Total: 1000, Checkpoint: checkpoint, Phase: phase}
	s.g.Expect(s.jobs[client.ObjectKeyFromObject(s.job)].meter.NoteReport(r, s.c.now, s.c.now)).To(Succeed())
}

// train takes steps, one in ten seconds.
func (s *leader) train(from, to int64) {
	for step := from + 1; step <= to; step++ {
		s.c.pass(10 * time.Second)
		s.say(step, -1, progress.PhaseTrain)
		s.listDue()
	}
}

func end(job *v1beta1.ElasticTrainingJob, phase v1beta1.JobPhase, condition string) {
	job.Status.Phase = phase
	meta.SetStatusCondition(&job.Status.Conditions, metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: condition,
	})
}

// A worker is lost two hours after a checkpoint of a training of ten hours. Halfway the operator is replaced by another, which
// follows the training from its last lines.
func TestTheLedgerIsToldWhatBecameOfGPUTime(t *testing.T) {
	g := NewWithT(t)
	l, err := ledger.Open(t.Context(), ledger.Options{File: filepath.Join(t.TempDir(), "ledger.db")})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	c := newClock()
	begin := c.now
	a := newLeader(t, g, c, l)
	a.say(0, -1, progress.PhaseStart)
	a.train(0, 360)
	a.say(360, 360, progress.PhaseTrain)
	a.train(360, 900)

	b := newLeader(t, g, c, l)
	for _, s := range []*leader{a, b} { // both follow it for an hour
		s.say(900, -1, progress.PhaseTrain)
	}
	for step := int64(901); step <= 1080; step++ {
		c.pass(10 * time.Second)
		for _, s := range []*leader{a, b} {
			s.say(step, -1, progress.PhaseTrain)
			s.listDue()
		}
	}
	a.crashed = true
	b.say(360, -1, progress.PhaseStart)
	b.train(360, 2520)
	b.say(2520, 2520, progress.PhaseTrain)
	end(b.job, v1beta1.PhaseFailed, v1beta1.ConditionFailed)
	b.look("a")
	b.crashed = true
	list, err := l.QueryGoodput(t.Context(), begin, c.now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveLen(1))
	hours := func(gpuSeconds int64) float64 { return float64(gpuSeconds) / 8 / 3600 }
	g.Expect(list[0]).To(And(HaveField("Namespace", a.job.Namespace), HaveField("Task", "ctr"), HaveField("Queue", "ads")))
	g.Expect(hours(list[0].Held)).To(BeNumerically("~", 9, 0.001))
	g.Expect(hours(list[0].Kept)).To(BeNumerically("~", 7, 0.02))
	g.Expect(hours(list[0].Lost)).To(BeNumerically("~", 2, 0.02))
}

// The ledger is told every five minutes, and when the GPUs change.
func TestTheLedgerIsToldInFewEntries(t *testing.T) {
	g, s := NewWithT(t), newStage(t)
	c := newClock()
	s.trainings.now = func() time.Time { return c.now }
	var told []ledger.Trained
	s.record = func(e ledger.Trained) { told = append(told, e) }
	s.look("a")
	for range 360 {
		c.pass(10 * time.Second)
		s.listDue()
	}
	g.Expect(told).To(HaveLen(12))
	g.Expect(told).To(HaveEach(And(HaveField("GPUs", BeEquivalentTo(8)), HaveField("Stretches", BeEmpty()))), "it said nothing")
	c.pass(time.Minute)
	s.observe(s.job, "ads", nil, 4)
	g.Expect(told).To(HaveLen(13))
	g.Expect(told[12].To.Sub(told[12].From)).To(Equal(time.Minute))
	end(s.job, v1beta1.PhaseSucceeded, v1beta1.ConditionSucceeded)
	s.observe(s.job, "ads", nil, 0)
	g.Expect(told[len(told)-1].Succeeded).To(BeTrue())
}
