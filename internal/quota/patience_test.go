package quota

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// after plans a time later than the last decision.
func (w *simulator) after(d time.Duration) Decision {
	w.now = w.now.Add(d)
	return w.plan()
}

func TestQueuesWaitForNodesThatComeBack(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.profile("ads", 1)
	w.settle()
	w.o.Nodes[gpu] = 8
	d := w.plan()
	g.Expect(d.Profiles[0].Apply).To(BeNil())
	g.Expect(d.Profiles[0].Agrees).To(BeFalse(), "it waits")
	g.Expect(d.Again).To(Equal(30 * time.Second))
	g.Expect(d.Profiles[0].Status.Reason).To(Equal(v1beta1.ReasonQueueReady), "and says nothing else meanwhile")

	w.profile("search", 1)
	d = w.after(10 * time.Second)
	g.Expect(d.Profiles[0].Apply).NotTo(BeNil(), "somebody wrote a profile")
	g.Expect(d.Profiles[1].Create).NotTo(BeNil())
	w.settle()

	w.o.Nodes[gpu] = 16
	g.Expect(w.plan().Again).To(Equal(30 * time.Second))
	w.o.Nodes[gpu] = 24
	d = w.after(10 * time.Second)
	g.Expect(d.Again).To(Equal(20*time.Second), "it counts from the first change")
	g.Expect(w.after(19 * time.Second).Profiles).To(HaveEach(HaveField("Apply", BeNil())))
	g.Expect(w.after(time.Second).Profiles).To(HaveEach(HaveField("Apply", Not(BeNil()))), "it has stood long enough")
	g.Expect(w.after(time.Second).Again).To(Equal(30*time.Second), "the next change counts anew")

	w.o.Nodes[gpu] = 8
	d = w.after(10 * time.Second)
	g.Expect(d.Profiles).To(HaveEach(HaveField("Agrees", true)), "the node went")
	g.Expect(d.Again).To(BeZero())
	w.o.Nodes[gpu] = 16
	g.Expect(w.after(10*time.Second).Again).To(Equal(30*time.Second), "and came again")
}

func TestRestartBeginsToWaitForNodesAnew(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.profile("ads", 1)
	w.settle()
	w.o.Nodes[gpu] = 8
	w.plan()
	w.o.Waits = Waits{}
	d := w.after(20 * time.Second)
	g.Expect(d.Profiles[0].Apply).To(BeNil())
	g.Expect(d.Again).To(Equal(30 * time.Second))
}

func TestRefusedQueueIsLeftAloneForAWhile(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.profile("ads", 1)
	w.o.Profiles[0].Refused, w.o.Profiles[0].RefusedAt = "no", w.now
	d := w.after(10 * time.Second)
	g.Expect(d.Profiles[0].Create).To(BeNil())
	g.Expect(d.Profiles[0].Agrees).To(BeFalse())
	g.Expect(d.Profiles[0].Status.Reason).To(Equal(v1beta1.ReasonQueueRejected))
	g.Expect(d.Again).To(Equal(20 * time.Second))
	d = w.after(20 * time.Second)
	g.Expect(d.Profiles[0].Create).NotTo(BeNil(), "it is tried again")
	w.carryOut(d)
	g.Expect(w.plan().Again).To(BeZero(), "the Queue is as it should be")
}

// A gang that was just created is in no cache yet.
func TestQueueIsDeletedWhenItHasHeldNothingForAWhile(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.profile("ads", 1)
	w.profile("search", 1)
	w.settle()
	w.o.Profiles = nil
	w.o.Gangs["search"] = 1
	d := w.plan()
	g.Expect(d.DeleteQueues).To(BeEmpty())
	g.Expect(d.Again).To(Equal(5 * time.Second))
	w.o.Gangs["search"] = 0
	d = w.after(3 * time.Second)
	g.Expect(d.DeleteQueues).To(BeEmpty())
	g.Expect(d.Again).To(Equal(5*time.Second), "all of them are deleted at once, with one look at the API server")
	w.o.Gangs["ads"] = 1
	d = w.after(time.Second)
	g.Expect(d.Waits.Empty).To(And(HaveLen(1), HaveKey(types.UID("search"))), "a job came")
	g.Expect(w.after(4 * time.Second).DeleteQueues).To(HaveExactElements(HaveField("Name", "search")))
	w.o.Gangs["ads"] = 0
	g.Expect(w.after(time.Second).DeleteQueues).To(BeEmpty(), "it counts anew")
	g.Expect(w.after(5 * time.Second).DeleteQueues).To(HaveLen(2))
}

func TestFiguresOfWhichNoWatchTells(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	w.profile("ads", 1)
	w.settle()
	g.Expect(w.plan().Again).To(BeZero())
	w.o.OffersOld = true
	g.Expect(w.plan().Again).To(Equal(time.Minute))
	w.o.Budgets = map[string][]Budget{"ads": {{Known: true}}}
	g.Expect(w.plan().Again).To(Equal(30 * time.Second))
}
