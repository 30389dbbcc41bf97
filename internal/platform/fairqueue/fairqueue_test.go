package fairqueue

import (
	"math/rand/v2"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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

// Whatever comes and goes, Len is what can be handed out: all of it is, and then nothing more.
func TestLenIsWhatCanBeHandedOut(t *testing.T) {
	g := NewWithT(t)
	const most = 3
	q := &queue{most: most, waiting: map[string][]reconcile.Request{}, out: map[string]int{}}
	var out []reconcile.Request
	for n := range 5000 {
		switch {
		case rand.IntN(2) == 0:
			q.Push(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: strconv.Itoa(rand.IntN(9)), Name: strconv.Itoa(n)}})
		case len(out) > 0 && rand.IntN(2) == 0:
			i := rand.IntN(len(out))
			q.release(out[i])
			out = append(out[:i], out[i+1:]...)
		case q.Len() > 0:
			item := q.Pop()
			g.Expect(q.out[item.Namespace]).To(BeNumerically("<=", most))
			out = append(out, item)
		}
		want := 0
		for namespace := range q.waiting {
			want += q.readyOf(namespace)
		}
		g.Expect(q.Len()).To(Equal(want))
	}
}
