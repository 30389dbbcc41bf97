package accounting

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/approval"
	"github.com/tideline-io/tideline/internal/ledger"
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
			job := &v1alpha1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads-dev", Name: "launch", UID: "job"}}
			job.Annotations = map[string]string{v1alpha1.AnnotationApproval: c.record}
			j := &journal{}
			Began(j, job, "1", "ads", c.tier, at)
			if !c.kept {
				g.Expect(*j).To(BeEmpty())
				return
			}
			g.Expect(*j).To(ConsistOf(And(
				HaveField("Kind", "Approved"), HaveField("Namespace", "ads-dev"), HaveField("Name", "launch"), HaveField("Attempt", "1"),
				HaveField("Other", "carol"), HaveField("Figures", HaveKeyWithValue("until", "2026-11-20T11:00:00Z")))))
		})
	}
}
