package fairqueue

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// One namespace with thousands of merges, whose stores do not answer, delays those of others by no more than one reading.
func TestOneNamespaceDoesNotHoldUpOthers(t *testing.T) {
	g := NewWithT(t)
	const readers = 8
	q := NewQueue("", MostOfOne(readers), workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	add := func(namespace string, jobs int) {
		for i := range jobs {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(i)}})
		}
	}
	begun := make(chan reconcile.Request, readers)
	begin := func() {
		item, _ := q.Get()
		begun <- item
	}
	of := func(namespace string) gomegatypes.GomegaMatcher { return HaveField("Namespace", namespace) }

	add("hostile", 5000)
	for range readers {
		go begin()
	}
	var silent []reconcile.Request
	for range readers - 2 {
		var item reconcile.Request
		g.Eventually(begun).Should(Receive(&item))
		g.Expect(item).To(of("hostile"))
		silent = append(silent, item)
	}
	g.Expect(q.Len()).To(BeZero(), "two readers are left to others")
	add("ads", 3)
	var read []reconcile.Request
	for range 2 {
		var item reconcile.Request
		g.Eventually(begun).Should(Receive(&item))
		g.Expect(item).To(of("ads"), "while all other readers wait for stores that do not answer")
		read = append(read, item)
	}
	q.Done(silent[0])
	next, _ := q.Get()
	g.Expect(next).To(of("ads"), "who has fewer readers comes first")
	q.Done(read[0])
	next, _ = q.Get()
	g.Expect(next).To(of("hostile"), "what others do not need may be used")
}

// Requests come out in order, each once, however many readers there are, and also those of one namespace alone.
func TestEverythingComesOutInOrder(t *testing.T) {
	for _, readers := range []int{1, 2, 3, 16} {
		g := NewWithT(t)
		q := NewQueue("", MostOfOne(readers), workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		var want, got []string
		for i := range 20 {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ads", Name: strconv.Itoa(i)}})
			want = append(want, strconv.Itoa(i))
		}
		for range 20 {
			item, _ := q.Get()
			got = append(got, item.Name)
			q.Done(item)
		}
		g.Expect(got).To(Equal(want))
		g.Expect(q.Len()).To(BeZero())
		q.ShutDown()
		_, ended := q.Get()
		g.Expect(ended).To(BeTrue())
	}
}

// With all workers for each namespace, the first of another comes after what is handed out, and not after hundreds.
func TestNamespacesTakeTurns(t *testing.T) {
	g := NewWithT(t)
	q := NewQueue("", 8, workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	add := func(namespace, name string) {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	for i := range 400 {
		add("hostile", strconv.Itoa(i))
	}
	first, _ := q.Get()
	g.Expect(first.Namespace).To(Equal("hostile"))
	add("ads", "a")
	add("ads", "b")
	second, _ := q.Get()
	g.Expect(second.Namespace).To(Equal("ads"), "who has none under way comes first")
	third, _ := q.Get()
	g.Expect(third.Namespace).To(Equal("hostile"), "then they take turns")
	fourth, _ := q.Get()
	g.Expect(fourth.Namespace).To(Equal("ads"))
	g.Expect(q.Len()).To(Equal(6), "eight of a namespace at a time")
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// At a start thousands of objects are listed; who changes meanwhile does not wait for them, and they do not wait for ever.
func TestWhatIsListedWaitsBehindWhatChanged(t *testing.T) {
	g := NewWithT(t)
	q := NewQueue("", 8, workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	list := func(names ...string) {
		for _, name := range names {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, request("ads", name))
		}
	}
	next := func() string {
		item, priority, _ := q.GetWithPriority()
		g.Expect(priority).To(BeZero(), "what is asked for again is not merely listed")
		q.Done(item)
		return item.Name
	}
	list("a", "b", "c")
	q.Add(request("ads", "new"))
	g.Expect(next()).To(Equal("new"))
	q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(0)}, request("ads", "c"))
	list("c")
	g.Expect(next()).To(Equal("c"), "it changed, and being listed once more makes no difference")
	for _, name := range []string{"1", "2", "3"} {
		q.Add(request("ads", name))
	}
	g.Expect([]string{next(), next(), next(), next(), next()}).To(Equal([]string{"1", "a", "2", "3", "b"}))
	g.Expect(q.Len()).To(BeZero())

	list("a")
	item, _ := q.Get()
	list("a")
	q.Add(item)
	list("b", "a")
	q.Done(item)
	g.Expect([]string{next(), next()}).To(Equal([]string{"a", "b"}), "what changed while it was reconciled comes first")
}

func TestWhatIsAskedForLaterIsNotMerelyListed(t *testing.T) {
	for name, o := range map[string]priorityqueue.AddOpts{
		"after a time": {After: time.Millisecond, Priority: ptr.To(handler.LowPriority)},
		"after errors": {RateLimited: true, Priority: ptr.To(handler.LowPriority)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			q := NewQueue("", 8, workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second))
			defer q.ShutDown()
			q.AddWithOpts(o, request("ads", "b"))
			g.Eventually(q.Len).Should(Equal(1))
			q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, request("ads", "a"))
			first, _ := q.Get()
			g.Expect(first.Name).To(Equal("b"))
		})
	}
}

// Whatever comes and goes, Len is what can be handed out: all of it is, each request once, and then nothing more.
func TestLenIsWhatCanBeHandedOut(t *testing.T) {
	g := NewWithT(t)
	const most = 3
	q := newQueue(most)
	waiting := map[reconcile.Request]bool{}
	var out []reconcile.Request
	for range 20_000 {
		switch {
		case rand.IntN(2) == 0:
			item := request(strconv.Itoa(rand.IntN(9)), strconv.Itoa(rand.IntN(40)))
			q.note(item, []rank{waitsFirst, waitsLast}[rand.IntN(2)])
			if !waiting[item] && !slices.Contains(out, item) { // A work queue holds back what is under way.
				q.Push(item)
				waiting[item] = true
			}
		case len(out) > 0 && rand.IntN(2) == 0:
			i := rand.IntN(len(out))
			q.release(out[i])
			out = append(out[:i], out[i+1:]...)
		case q.Len() > 0:
			item := q.Pop()
			g.Expect(waiting).To(HaveKey(item))
			delete(waiting, item)
			g.Expect(q.out[item.Namespace]).To(BeNumerically("<=", most))
			out = append(out, item)
		}
		want, inLines := 0, 0
		for namespace, l := range q.lines {
			want += q.readyOf(namespace)
			inLines += l.waiting
		}
		g.Expect(q.Len()).To(Equal(want))
		g.Expect(inLines).To(Equal(len(waiting)))
		g.Expect(q.ranks).To(HaveLen(len(waiting)))
	}
	for _, item := range out {
		q.release(item)
	}
	for q.Len() > 0 {
		item := q.Pop()
		q.release(item)
		g.Expect(waiting).To(HaveKey(item))
		delete(waiting, item)
	}
	g.Expect(waiting).To(BeEmpty())
	g.Expect(q.lines).To(BeEmpty())
}
