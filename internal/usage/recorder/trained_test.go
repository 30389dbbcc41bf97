package recorder

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

func TestWhatWasSeenOfTrainingsIsRecorded(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		c.stand()
		c.recorder.NoteTraining(ledger.Trained{UID: "of a standby"})
		c.start()
		seen := func(uid string) ledger.Trained {
			return ledger.Trained{UID: uid, From: now(), To: now().Add(time.Minute), GPUs: 8}
		}
		m.setDown(true)
		pass(endsInterval)
		waits := seen("a")
		c.recorder.NoteTraining(waits)
		pass(2 * time.Minute)
		g.Expect(c.recorder.size()).To(Equal(1), "it waits while the ledger is down")
		later := seen("b")
		c.recorder.NoteTraining(ledger.Trained{}) // is refused
		c.recorder.NoteTraining(later)
		m.setDown(false)
		pass(2 * lastRetry)
		g.Expect(m.trained).To(Equal([]ledger.Trained{waits, later}))
		g.Expect(testutil.ToFloat64(c.recorder.metrics.trained)).To(Equal(1.0))
		g.Expect(c.recorder.size()).To(BeZero())

		m.setDown(true)
		for range mostTrained + 5 {
			c.recorder.NoteTraining(later)
		}
		g.Expect(c.recorder.size()).To(Equal(mostTrained - mostTrained/10 + 4))
		g.Expect(testutil.ToFloat64(c.recorder.metrics.trained)).To(Equal(float64(2 + mostTrained/10)))
	})
}

// A training that succeeds while no operator runs keeps its last steps.
func TestSuccessesAreRecalled(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		job := func(name string, change func(*v1beta1.ElasticTrainingJob)) {
			j := &v1beta1.ElasticTrainingJob{}
			j.Namespace, j.Name, j.UID = "ads", name, "uid-of-job"
			j.Annotations = map[string]string{v1beta1.AnnotationOwner: "alice"}
			j.Spec.Progress = &v1beta1.JobProgress{}
			j.Status.Phase, j.Status.Profile, j.Status.Queue = v1beta1.PhaseSucceeded, "ads", "tideline-ads"
			change(j)
			g.Expect(c.trainings.Add(j)).To(Succeed())
		}
		job("done", func(*v1beta1.ElasticTrainingJob) {})
		job("runs", func(j *v1beta1.ElasticTrainingJob) { j.Status.Phase = v1beta1.PhaseRunning })
		job("failed", func(j *v1beta1.ElasticTrainingJob) { j.Status.Phase = v1beta1.PhaseFailed })
		job("silent", func(j *v1beta1.ElasticTrainingJob) { j.Spec.Progress = nil })
		c.start()
		pass(endsInterval)
		g.Expect(m.trained).To(HaveExactElements(And(HaveField("Task", "done"), HaveField("User", "alice"), HaveField("Profile", "ads"),
			HaveField("Queue", "tideline-ads"), HaveField("Kind", v1beta1.ElasticTrainingJobKind), HaveField("Succeeded", true),
			HaveField("GPUs", BeZero()))))
	})
}
