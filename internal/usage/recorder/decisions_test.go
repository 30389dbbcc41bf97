package recorder

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/approval"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// journal keeps what it is told.
type journal []ledger.Decision

func (j *journal) Decided(d ledger.Decision) { *j = append(*j, d) }

func TestApprovalsAreKept(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	given := approval.Approval{
		By: "carol", UID: "job", Profile: "ads", Tier: "main-traffic", At: metav1.NewTime(at.Add(-time.Hour)),
		Until: metav1.NewTime(at.Add(time.Hour)),
	}
	for name, c := range map[string]struct {
		tier, record string
		kept         bool
	}{
		"one that counts":      {"main-traffic", given.String(), true},
		"one for another tier": {"exploratory", given.String(), false},
		"none":                 {"main-traffic", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads-dev", Name: "launch", UID: "job"}}
			job.Annotations = map[string]string{v1beta1.AnnotationApproval: c.record}
			job.Status.Profile, job.Status.Tier = "ads", c.tier
			job.Status.Attempt = &v1beta1.AttemptStatus{Number: 1, StartTime: metav1.NewTime(at)}
			j := &journal{}
			before := &v1beta1.ElasticTrainingJobStatus{}
			TellTraining(j, job, before, &job.Status, at)
			if !c.kept {
				g.Expect(*j).To(BeEmpty())
				return
			}
			TellTraining(j, job, &job.Status, &job.Status, at)
			g.Expect(*j).To(ConsistOf(And(
				HaveField("Kind", "Approved"), HaveField("Namespace", "ads-dev"), HaveField("Name", "launch"),
				HaveField("Attempt", job.Status.Attempt.ID()), HaveField("At", at),
				HaveField("Other", "carol"), HaveField("Figures", HaveKeyWithValue("until", "2026-11-20T11:00:00Z")))))
		})
	}
}

func TestUnrecordedApprovalsAreRecalled(t *testing.T) {
	inBubble(t, func(g *WithT, c *cluster, m *memory) {
		began := now().Add(-time.Hour)
		given := approval.Approval{
			By: "carol", UID: "job", Profile: "ads", Tier: "main-traffic", At: metav1.NewTime(began.Truncate(time.Second)),
			Until: metav1.NewTime(began.Add(2 * time.Hour).Truncate(time.Second)),
		}
		meta := metav1.ObjectMeta{
			Namespace: "ads-dev", Name: "launch", UID: "job", Annotations: map[string]string{v1beta1.AnnotationApproval: given.String()},
		}
		job := &v1beta1.ElasticTrainingJob{ObjectMeta: meta}
		job.Status.Profile, job.Status.Tier = "ads", "main-traffic"
		job.Status.Attempt = &v1beta1.AttemptStatus{Number: 1, StartTime: metav1.NewTime(began)}
		merge := &v1beta1.MergeJob{ObjectMeta: meta}
		merge.Status.Profile, merge.Status.Tier = "ads", "main-traffic"
		merge.Status.Run = &v1beta1.MergeRun{ID: "run", Attempt: 1, AskTime: metav1.NewTime(began)}
		g.Expect(c.trainings.Add(job)).To(Succeed())
		g.Expect(c.merges.Add(merge)).To(Succeed())
		c.start()
		pass(time.Minute)
		g.Expect(m.decisions).To(ConsistOf(
			And(HaveField("Attempt", job.Status.Attempt.ID()), HaveField("Other", "carol")), HaveField("Attempt", "run")))
	})
}
