package elastictrainingjob

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	"github.com/tideline-io/tideline/internal/training/suspicion"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
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

// remembering is a journal that has what an earlier operator recorded, once it was read.
type remembering struct {
	journal

	held []ledger.Decision
	read bool
}

func (j *remembering) RecallSuspects() (held []ledger.Decision, known bool) { return j.held, j.read }

// last are what was recorded last of each node, of which something is held against.
func (j *remembering) last() []ledger.Decision {
	of := map[string]ledger.Decision{}
	for _, d := range j.journal {
		of[d.Name] = d
		if d.Figures[decisionlog.Witnesses] == "" {
			delete(of, d.Name)
		}
	}
	return slices.Collect(maps.Values(of))
}

func TestTheNextOperatorBeginsWithWhatThisOneRecorded(t *testing.T) {
	g := NewWithT(t)
	c := newClock()
	told := 0
	operator := func(held []ledger.Decision) (*suspects, *remembering) {
		s, j := newSuspects(func() time.Time { return c.now }), &remembering{held: held}
		s.journal = j
		s.tell = func(context.Context, suspicion.Suspect) bool {
			told++
			return true
		}
		return s, j
	}
	first, kept := operator(nil)
	for _, owner := range []string{"alice", "bob"} {
		job, workers := jobOn("ads", "of-"+owner, owner, "n1", "n2")
		first.observe(job, workers, false)
		first.note(job, refusal, false)
		first.note(job, refusal, false)
	}
	first.judgeOnce(t.Context())
	g.Expect(told).To(Equal(1))
	g.Expect(kept.journal).To(BeEmpty(), "what was recorded before is not read yet")
	kept.read = true
	first.judgeOnce(t.Context())
	first.judgeOnce(t.Context())
	g.Expect(kept.journal).To(HaveExactElements(And(HaveField("Kind", decisionlog.NodeSuspected), HaveField("Name", "bad"),
		HaveField("Reason", "accused"), HaveField("At", c.now))), "once")
	c.pass(recordAgainAfter)
	first.judgeOnce(t.Context())
	g.Expect(kept.journal).To(HaveLen(2), "hours later again")
	c.pass(-2 * recordAgainAfter)
	first.judgeOnce(t.Context())
	first.judgeOnce(t.Context())
	g.Expect(kept.journal).To(HaveLen(3), "and when the clock was set back, once")
	g.Expect(kept.journal[2].At).To(BeTemporally(">", kept.journal[1].At), "later than what it follows")
	c.pass(2 * recordAgainAfter)

	second, itself := operator(kept.last())
	itself.read = true
	second.judgeOnce(t.Context())
	g.Expect(told).To(Equal(1), "the administrator is not told again")
	other, workers := jobOn("rec", "other", "carol", "n3")
	_, shunned := second.observe(other, workers, false)
	g.Expect(shunned).To(Equal([]string{"bad"}), "others still prefer others")
	g.Expect(second.found).To(Equal(first.found))

	g.Expect(itself.journal).To(BeEmpty(), "nothing is new")
	unchecked, theirs := operator(kept.last())
	unchecked.webhooksOff, theirs.read = true, true
	unchecked.judgeOnce(t.Context())
	g.Expect(unchecked.found).To(BeEmpty(), "namespaces would be further witnesses beside their users")

	c.pass(30 * 24 * time.Hour)
	second.judgeOnce(t.Context())
	g.Expect(itself.journal).To(HaveExactElements(And(HaveField("Name", "bad"), HaveField("Reason", "clear"),
		HaveField("Figures", BeEmpty()))), "forgiven, which is recorded")
	third, unreadable := operator([]ledger.Decision{{
		At: c.now, Kind: decisionlog.NodeSuspected, Name: "bad", Reason: "accused",
		Figures: map[string]string{decisionlog.Witnesses: "{", decisionlog.Owners: "checked"},
	}})
	unreadable.read = true
	third.judgeOnce(t.Context())
	g.Expect(third.found).To(BeEmpty(), "what another version wrote is left out")
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
