package merging

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestHowLongLeftoversKeepOthersWaiting(t *testing.T) {
	at := morning.Add
	for name, c := range map[string]struct {
		left Leftover
		want time.Time
	}{
		"it was not told to go":          {Leftover{Gone: morning}, at(10 * time.Minute)},
		"its grace period, and a minute": {Leftover{Gone: morning, Deletion: at(30 * time.Second)}, at(90 * time.Second)},
		"a year of grace":                {Leftover{Gone: morning, Deletion: at(365 * 24 * time.Hour)}, at(time.Hour)},
		"it says so itself":              {Leftover{Gone: morning, Claimed: true}, at(2 * time.Minute)},
		"it says so, with a year of grace": {
			Leftover{Gone: morning, Deletion: at(365 * 24 * time.Hour), Claimed: true}, at(2 * time.Minute)},
		"it says so, and went": {Leftover{Gone: morning, Deletion: morning, Claimed: true}, at(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(c.left.BlocksUntil()).To(Equal(c.want)) })
	}
}

func TestAPredecessorThatStaysIsWaitedForNoLonger(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, 12*time.Hour)
	m.strangers = []Leftover{
		{Key: types.NamespacedName{Namespace: "ads", Name: "old-merge-0"}, Gone: w.now, Deletion: w.now.Add(30 * time.Second)},
		{Key: types.NamespacedName{Namespace: "secret", Name: "old-merge-0"}, Gone: w.now, Deletion: w.now},
	}
	w.settle()
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonPredecessorLeaving))
	g.Expect(m.status().Message).To(Equal("2 pods of another MergeJob of this model still exist (old-merge-0). Tideline " +
		"waits until 2026-11-22T06:01:30Z at the latest. A model is merged once at a time; this merge continues by itself."))
	g.Expect(w.plan().RequeueAfter).To(Equal(time.Minute))
	w.pass(90 * time.Second)
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
	g.Expect(m.status().Message).To(HaveSuffix(" 2 pods of a deleted MergeJob should have been gone by 2026-11-22T06:01:30Z. " +
		"Tideline no longer waits for them; check finalizers and nodes of old-merge-0."))
}

func TestAGangThatStaysStopsNoPool(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 0)
	m := w.add("a").full(w, 12*time.Hour)
	w.leaving = []Leftover{{Key: types.NamespacedName{Namespace: "ads", Name: "old-merge"}, Gone: w.now}}
	w.settle()
	g.Expect(w.plan().RequeueAfter).To(Equal(10 * time.Minute))
	w.pass(10 * time.Minute)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonAsking))
	g.Expect(m.status().Message).To(HaveSuffix(" 1 gang of a deleted MergeJob should have been gone by 2026-11-22T06:10:00Z. " +
		"Tideline no longer waits for it; check finalizers and nodes of old-merge."))
}

// A pod that has a name which the merge needs keeps it alone out of the line.
func TestPodsThatHaveTheNamesOfAMerge(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 4)
	m := w.add("a").full(w, 50*time.Hour)
	m.namesakes = []Leftover{{Key: types.NamespacedName{Namespace: "ads", Name: "a-merge-0"}, Gone: w.now, Deletion: w.now}}
	next := w.add("b").full(w, 12*time.Hour)
	w.settle()
	g.Expect(next.status().Phase).To(Equal(v1beta1.MergeRunning))
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonPredecessorLeaving))
	w.pass(time.Minute)
	g.Expect(m.status().Reason).To(Equal(v1beta1.ReasonNameTaken))
	g.Expect(m.status().Message).To(Equal("1 pod of an earlier MergeJob with this name still exists (a-merge-0), and this " +
		"one needs the names. It should have been gone by 2026-11-22T06:01:00Z. Remove finalizers, or delete with --force the " +
		"pods of a node that is gone; then the merge continues by itself."))
	w.merge(next)
	m.namesakes = nil
	w.settle()
	g.Expect(m.status().Phase).To(Equal(v1beta1.MergeRunning))
}

// A pod that was told to go and does not, by a finalizer perhaps, wants no place: others have their turn.
func TestPodsThatWereToldToGoKeepOthersWaitingForAMoment(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t, 0)
	m, next := w.add("a").full(w, 50*time.Hour), w.add("b").full(w, 12*time.Hour)
	w.settle()
	g.Expect(asks(m.status().Run)).To(BeTrue())
	m.object.Spec.Suspend = true
	w.carryOut(w.plan(), unlimited) // The end is on record,
	w.carryOut(w.plan(), unlimited) // and the pods are told to go, which they do not.
	d := w.plan()
	g.Expect(asks(d.Jobs[1].Status.Run)).To(BeFalse())
	g.Expect(d.RequeueAfter).To(BeNumerically("<=", 90*time.Second))
	w.now = w.now.Add(90 * time.Second)
	d = w.plan()
	g.Expect(asks(d.Jobs[1].Status.Run)).To(BeTrue())
	g.Expect(next.object).To(BeIdenticalTo(d.Jobs[1].Job.Object))
}
