package mergejob

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// onClaim is a merge whose store is a claim.
func onClaim(namespace string) *v1beta1.MergeJob {
	job := mergeOf(namespace, "ctr", "u")
	job.Spec.Store = v1beta1.ModelStore{
		Type: v1beta1.StoreClaim, Claim: &v1beta1.ClaimStore{Name: "models"}, Increments: "inc/", Full: "full/",
		CompletionMarker: "_SUCCESS",
	}
	return job
}

// reportOf is a ConfigMap with the name of the job's report.
func reportOf(job *v1beta1.MergeJob, labelled string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name + "-merge-store", Labels: map[string]string{v1beta1.LabelJob: labelled},
		},
		Data: data,
	}
}

func TestOnlyTheReportOfTheJobIsBelieved(t *testing.T) {
	const one = "step-1 2026-11-22T06:00:00Z\n"
	job, elsewhere, says := onClaim("ads"), onClaim("other"), map[string]string{"increments": one}
	for what, c := range map[string]struct {
		report *corev1.ConfigMap
		reason string
		words  string
	}{
		"none":                   {reportOf(elsewhere, "ctr", says), v1beta1.ReasonReportMissing, "exist"},
		"labelled for another":   {reportOf(job, "rank", says), v1beta1.ReasonReportMissing, "labelled"},
		"without a label":        {reportOf(job, "", says), v1beta1.ReasonReportMissing, "labelled"},
		"with a line it has not": {reportOf(job, "ctr", map[string]string{"full": "x"}), v1beta1.ReasonReportInvalid, "line 1"},
		"that is right":          {reportOf(job, "ctr", says), "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			live := fake.NewClientBuilder().WithObjects(c.report).Build()
			s := newStores(live, live, config.DefaultConfiguration(), time.Now)
			seen, err := s.observeStore(t.Context(), job)
			g.Expect(err).NotTo(HaveOccurred())
			if c.reason == "" {
				g.Expect(seen.Trouble).To(BeNil())
				g.Expect(seen.Increments).To(And(HaveField("Count", 1), HaveField("Last", "step-1")))
				return
			}
			g.Expect(seen.Trouble).To(And(HaveField("Reason", c.reason), HaveField("Message", ContainSubstring(c.words)),
				HaveField("Stalled", false)), "it goes on by itself once the report is right")
			g.Expect(seen.Trouble.Message).To(HavePrefix("ConfigMap ctr-merge-store, which reports what is in claim models"))
			g.Expect(strings.Count(seen.Trouble.Message, "step-1")).To(BeZero(), "nothing is repeated of what is not for the operator")
			g.Expect(seen.Increments).To(Equal(merging.Increments{}))
		})
	}
}

func TestReportThatChangesIsReadSoon(t *testing.T) {
	g := NewWithT(t)
	job := onClaim("ads")
	key := types.NamespacedName{Namespace: "ads", Name: "ctr"}
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	s := newStores(nil, nil, config.DefaultConfiguration(), func() time.Time { return now })
	g.Expect(s.noteReport(t.Context(), reportOf(job, "ctr", nil))).To(BeEmpty(), "its MergeJob may not exist")
	for range 5 {
		s.keepSighting(key, job.UID, &merging.Sighting{Trouble: &merging.Trouble{}})
	}
	now = now.Add(2 * time.Second)
	g.Expect(s.timeUntilRead(key, job)).To(BeNumerically(">", time.Minute), "after five failures in a row")
	now = now.Add(-time.Hour)
	g.Expect(s.timeUntilRead(key, job)).To(BeZero(), "a clock that is set back puts no reading off")
	now = now.Add(time.Hour)
	g.Expect(s.noteReport(t.Context(), reportOf(job, "rank", nil))).To(BeEmpty())
	hosts := reportOf(job, "ctr", nil)
	hosts.Name = "ctr-hosts"
	g.Expect(s.noteReport(t.Context(), hosts)).To(BeEmpty(), "a job has other ConfigMaps")
	g.Expect(s.timeUntilRead(key, job)).To(BeNumerically(">", time.Minute))
	g.Expect(s.noteReport(t.Context(), reportOf(job, "ctr", nil))).To(HaveLen(1))
	g.Expect(s.timeUntilRead(key, job)).To(BeZero())
}
