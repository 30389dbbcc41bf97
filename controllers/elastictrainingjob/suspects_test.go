package elastictrainingjob

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// jobOn is a job of a user, and its workers on nodes.
func jobOn(namespace, name, owner string, nodes ...string) (*v1beta1.ElasticTrainingJob, []podstate.Worker) {
	job := &v1beta1.ElasticTrainingJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Generation: 1},
		Spec:       v1beta1.ElasticTrainingJobSpec{Owner: owner, Task: name},
		Status:     v1beta1.ElasticTrainingJobStatus{ObservedGeneration: 1},
	}
	var workers []podstate.Worker
	for i, node := range nodes {
		workers = append(workers, podstate.Worker{Index: int32(i), Node: node, Scheduled: true, Phase: corev1.PodRunning})
	}
	return job, workers
}

var refusal = []losses.Failure{{Node: "bad", Rejected: true}}

func TestTheAdministratorIsToldOfANodeOnce(t *testing.T) {
	g := NewWithT(t)
	c := newClock()
	s := newSuspects(func() time.Time { return c.now })
	for _, owner := range []string{"alice", "bob"} {
		job, workers := jobOn("ads", "of-"+owner, owner, "n1", "n2")
		s.observe(job, workers, false)
		s.note(job, refusal, false)
		s.note(job, refusal, false)
	}
	told := s.findAccused()
	g.Expect(told).To(HaveLen(1))
	g.Expect(suspectWords(told[0])).To(And(ContainSubstring("Workers of 2 owners and 2 tasks"), ContainSubstring("about 4 times"),
		ContainSubstring("kubectl taint node bad tideline.io/suspect=failures:NoSchedule")))
	c.pass(judgeEvery)
	g.Expect(s.findAccused()).To(BeEmpty(), "once")
	s.tellAgain("bad")
	g.Expect(s.findAccused()).To(HaveLen(1), "that could not be told")
	g.Expect(testutil.CollectAndCompare(s, strings.NewReader(`
# HELP tideline_suspect_nodes Nodes on which more workers fail than chance explains, by what follows from it.
# TYPE tideline_suspect_nodes gauge
tideline_suspect_nodes{level="accused"} 1
tideline_suspect_nodes{level="doubted"} 0
tideline_suspect_nodes{level="shunned"} 0
`))).To(Succeed())

	other, workers := jobOn("rec", "other", "carol", "bad", "n3")
	doubted, shunned := s.observe(other, workers, false)
	g.Expect(doubted).To(Equal([]string{"bad"}), "what fails there leaves")
	g.Expect(shunned).To(Equal([]string{"bad"}), "others prefer others")

	c.pass(30 * 24 * time.Hour)
	g.Expect(s.findAccused()).To(BeEmpty(), "forgiven")
	_, shunned = s.observe(other, workers, false)
	g.Expect(shunned).To(BeEmpty())
}

func TestOwnersThatNobodyCheckedAreOne(t *testing.T) {
	for name, c := range map[string]struct {
		off       bool
		condition metav1.ConditionStatus
		accused   int
	}{
		"checked":                          {false, "", 1},
		"no webhooks":                      {true, "", 0},
		"created while there were no such": {false, metav1.ConditionFalse, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			clock := newClock()
			s := newSuspects(func() time.Time { return clock.now })
			for i := range 20 {
				job, workers := jobOn("ads", fmt.Sprint("job-", i), fmt.Sprint("invented-", i), "n1")
				if c.condition != "" {
					job.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionOwnerChecked, Status: c.condition}}
				}
				s.observe(job, workers, c.off)
				s.note(job, refusal, c.off)
			}
			g.Expect(s.findAccused()).To(HaveLen(c.accused))
		})
	}
}

func TestJobsThatAreGoneAreForgotten(t *testing.T) {
	g := NewWithT(t)
	c := newClock()
	s := newSuspects(func() time.Time { return c.now })
	job, workers := jobOn("ads", "a", "alice", "n1")
	s.observe(job, workers, false)
	again := job.DeepCopy()
	again.UID = "another"
	s.observe(again, workers, false)
	s.forget(types.NamespacedName{Namespace: "ads", Name: "a"})
	g.Expect(s.jobs).To(BeEmpty())
	ctx, end := context.WithCancel(t.Context())
	end()
	g.Expect(s.judge(ctx)).To(Succeed())
}
