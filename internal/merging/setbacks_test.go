package merging

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
)

func TestUnreadableStoreDoesNotBlockAModel(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 8)
	first := w.add("a").full(w, 12*time.Hour)
	first.store.trouble = &Trouble{Reason: v1beta1.ReasonStoreForbidden, Message: "No."}
	w.settle()
	w.now = w.now.Add(time.Minute)
	second := w.add("b").full(w, 12*time.Hour)
	for range 10 {
		for _, m := range []*merger{first, second} {
			other := w.jobs[(slices.Index(w.jobs, m)+1)%2]
			m.rivals = []Rival{RivalOf(other.object)}
		}
		w.settle()
	}
	g.Expect(second.status().Phase).To(Equal(v1beta1.MergeRunning))
	g.Expect(first.status().Reason).To(Equal(v1beta1.ReasonDuplicateModel))
}

func TestMarkerCountsAlsoWhenAPodFailsOrIsLostOrTimeIsUp(t *testing.T) {
	for name, end := range map[string]func(*simulator, *merger){
		"fails": func(_ *simulator, m *merger) { m.pods[1].Phase = corev1.PodFailed },
		"lost":  func(_ *simulator, m *merger) { delete(m.pods, 1) },
		"late":  func(w *simulator, _ *merger) { w.now = w.now.Add(2 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newSimulator(t, 4)
			m := w.add("a").full(w, 12*time.Hour)
			w.settle()
			m.look()
			m.store.fulls = append(m.store.fulls, Full{Name: m.status().Run.ID, Time: w.now})
			end(w, m)
			d := w.plan() // The store was last seen before.
			g.Expect(d.Jobs[0].ReadStore).To(BeTrue())
			g.Expect(d.Jobs[0].Status.Run.Outcome).To(BeEmpty(), "nothing is judged before a look")
			w.settle()
			g.Expect(m.status().History[0].Outcome).To(Equal(v1beta1.OutcomeMerged))
		})
	}
}

func TestARunThatLosesPodsAgainAndAgainLetsOthersPass(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, 50*time.Hour)
	w.settle()
	for range 2 {
		delete(m.pods, 0)
		w.settle()
		g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning), "it is the first again")
	}
	delete(m.pods, 0)
	next := w.add("b").full(w, 12*time.Hour)
	w.settle()
	g.Expect(m.status().History[0].Message).To(HavePrefix("Pod a-merge-0 was deleted. 3 attempts of the run have lost a pod"))
	g.Expect(m.status().RetryTime).NotTo(BeNil())
	g.Expect(next.status().Phase).To(Equal(v1beta1.MergeRunning))
}

func TestWhatIsRefusedForAWhileIsSaidAndThenEndsTheRun(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 0)
	m := w.add("a").full(w, 12*time.Hour)
	w.settle()
	m.problem = &Problem{Reason: v1beta1.ReasonAPIError, Message: "Cannot create pod a-merge-0: no account.", Since: w.now}
	w.settle()
	g.Expect(m.status().Message).To(HaveSuffix("Cannot create pod a-merge-0: no account."))
	g.Expect(w.plan().RequeueAfter).To(Equal(5 * time.Minute))
	w.pass(5 * time.Minute)
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeFailed))
	g.Expect(m.status().History[0].Message).To(Equal("Cannot create pod a-merge-0: no account."))
}

func TestHeadWithoutItsListLetsTheNextPassWhileItsStoreIsDown(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 0)
	m, next := w.add("a").full(w, 50*time.Hour), w.add("b").full(w, 12*time.Hour)
	w.settle()
	m.list = nil
	m.store.trouble = &Trouble{Reason: v1beta1.ReasonStoreUnreachable, Message: "No answer."}
	m.look()
	w.settle()
	g.Expect(asks(next.status().Run)).To(BeTrue())
	m.store.trouble = nil
	m.look()
	w.room = 4
	w.settle()
	w.merge(next)
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning), "it has kept its place")
}

func TestATemplateThatChangesIsAskedForAnew(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 0)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.MaxReplicas = 6 }).full(w, 12*time.Hour)
	w.settle()
	m.object.Spec.Template.Spec.Containers[0].Image = "merge:2"
	m.object.Generation++
	w.settle()
	g.Expect(m.status().Run.Attempt).To(Equal(int32(2)))
	w.room = 6
	w.settle()
	g.Expect(m.pods).To(HaveLen(6))
	delete(m.pods, 5)
	m.surplus = nil
	m.object.Spec.Template.Spec.Containers[0].Image = "merge:3"
	m.object.Generation++
	w.settle()
	g.Expect(m.status().Run.Attempt).To(Equal(int32(2)), "a run that runs goes on")
	g.Expect(m.pods).To(HaveLen(5), "without pods of another template")
}

func TestARunByHandWaitsForIncrementsWhereNoneIsOnRecord(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a")
	m.store.increments = nil
	w.settle()
	m.object.Annotations = map[string]string{v1beta1.AnnotationRunNow: "1"}
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNoIncrements))
	m.store.increments = []string{"000001"}
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNoIncrements), "the store was not read since")
	m.look()
	w.settle()
	g.Expect(m.status().Run.Increments).To(Equal(int32(1)))
}

func TestALookBeforeTheSpecChangedIsNone(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 0)
	busy, m := w.add("a").full(w, 50*time.Hour), w.add("b").full(w, 12*time.Hour)
	w.settle()
	m.object.Spec.MaxIncrementsPerRun = ptr.To[int32](1)
	m.object.Generation++
	busy.object.Spec.Suspend = true
	w.settle()
	g.Expect(m.status().Run.Increments).To(Equal(int32(1)))
}

func TestAMergeThatWasSetAsideBeginsAnewWhenItsSpecFits(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 0)
	m := w.add("a").full(w, 12*time.Hour)
	w.settle()
	m.verdict = capacity.Verdict{Never: &capacity.Answer{}}
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNeverFits))
	g.Expect(m.status().Run).To(BeNil())
	m.verdict, w.room = capacity.Verdict{}, 2
	m.object.Spec.MinReplicas, m.object.Spec.MaxReplicas = 2, 2
	m.object.Generation++
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
}

func TestDuplicateModel(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 8)
	first := w.add("a").full(w, 12*time.Hour)
	second := w.add("b").full(w, 12*time.Hour)
	for range 10 {
		first.rivals, second.rivals = []Rival{RivalOf(second.object)}, []Rival{RivalOf(first.object)}
		w.settle()
	}
	g.Expect(first.status().Phase).To(Equal(v1beta1.MergeRunning))
	g.Expect(second.status().Reason).To(Equal(v1beta1.ReasonDuplicateModel))
	g.Expect(second.status().Message).To(Equal(`MergeJob a already merges prefix "b" of bucket "models", and a prefix holds ` +
		`one model. Delete one of the two, or give each model a prefix of its own.`))
	second.rivals, second.strangers = nil, make([]Leftover, 4)
	for i := range second.strangers {
		second.strangers[i].Gone = w.now
	}
	w.settle()
	g.Expect(second.status().Reason).To(Equal(v1beta1.ReasonPredecessorLeaving), "pods of the first may still write")
	second.strangers = nil
	w.settle()
	g.Expect(second.status().Phase).To(Equal(v1beta1.MergeRunning))
}

func TestMarkerWithoutModelFails(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.BackoffSeconds = ptr.To[int32](3600) }).full(w, 12*time.Hour)
	w.settle()
	m.store.hollow = m.status().Run.ID
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning), "pods that run may write it yet")
	w.exit(m)
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeFailed))
	g.Expect(m.status().History[0].Message).To(Equal("All pods ended with exit code 0, but full/" + m.store.hollow +
		"/ contains only _SUCCESS. The merge program must write the full model there (TIDELINE_OUTPUT_PATH), and the marker last."))
	g.Expect(m.status().LastFull.Name).To(Equal("base"))
	w.add("b").full(w, time.Hour).store.hollow = "by-hand"
	w.settle()
	g.Expect(w.jobs[1].status().Message).To(HaveSuffix(" Tideline ignores full/by-hand/: it contains only _SUCCESS and no model."))
}

func TestExitWithoutMarkerFails(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, 12*time.Hour)
	w.settle()
	w.exit(m)
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeFailed))
	g.Expect(m.status().History[0].Message).To(ContainSubstring("there is no _SUCCESS in full/"))
	g.Expect(m.pods).To(HaveLen(4), "pods that ended keep their logs until the next run")
	w.pass(time.Minute)
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
	w.exit(m)
	w.settle()
	g.Expect(m.status().RetryTime.Time).To(BeTemporally("==", w.now.Add(2*time.Minute)), "the back-off doubles")
}

func TestSurplusThatCouldNotBeMadeAtOnceIsMadeLater(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 6)
	m := w.add("a", func(s *v1beta1.MergeJobSpec) { s.MaxReplicas = 6 }).full(w, 12*time.Hour)
	m.problem = &Problem{Reason: v1beta1.ReasonAPIError, Message: "Later.", Since: w.now}
	w.settle()
	g.Expect(m.pods).To(HaveLen(6))
	g.Expect(m.status().Message).NotTo(ContainSubstring("Later."))
}
