package arbiter

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/lifetime"
)

// cameAgo has a job of so many workers come so long ago.
func (s *fixture) cameAgo(name string, workers int32, ago time.Duration) *v1beta1.ElasticTrainingJob {
	job := s.job(name, workers, 0)
	job.Spec.MinReplicas, job.Status.Queue = workers, "default"
	job.CreationTimestamp = metav1.NewTime(now.Add(-ago))
	job.Status.StartTime = ptr.To(metav1.NewTime(now))
	return job
}

func arrivalsOf(t *testing.T, s *fixture) arrivals {
	t.Helper()
	a := s.arbiter()
	m, done, err := a.mirrored(t.Context())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer done()
	return learnArrivals(a.newCollector(m, now), lifetime.NewHistory(nil), nil, &v1beta1.ElasticTrainingJob{})
}

// times are when they came, since the window began.
func times(a arrivals) (all []time.Duration) {
	for i := range a.streams {
		for k := range a.streams[i].came {
			all = append(all, a.streams[i].came[k].after)
		}
	}
	return all
}

func TestJobsOfTheLastWeekComeAgain(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.cameAgo("a", 1, 40*time.Hour)
	s.cameAgo("b", 2, 30*time.Hour)
	s.cameAgo("c", 3, 10*time.Hour)
	s.cameAgo("long-ago", 4, 8*24*time.Hour)
	s.cameAgo("withheld", 5, time.Hour).Status.StartTime = nil
	s.cameAgo("unseen", 6, time.Hour).Status.Queue = ""
	a := arrivalsOf(t, s)
	g.Expect(a.window).To(Equal(40 * time.Hour))
	g.Expect(times(a)).To(Equal([]time.Duration{0, 10 * time.Hour, 30 * time.Hour}))

	random := rand.New(rand.NewPCG(1, 2))
	gaps := map[time.Duration]bool{}
	for range 50 {
		next := a.drawFuture(random, now)
		var last time.Duration
		for n := range 30 {
			one, more := next(n)
			if !more {
				g.Expect(last).To(BeNumerically(">", farthest-40*time.Hour), "two weeks of them")
				break
			}
			again, _ := next(n)
			g.Expect(again).To(Equal(one), "asked again, the same one comes")
			g.Expect(one.After).To(And(BeNumerically(">=", last), BeNumerically("<=", farthest)))
			g.Expect(one.Gang.Created).To(BeTemporally("==", now.Add(one.After)))
			if n > 0 {
				gaps[one.After-last] = true
			} else {
				g.Expect(one.After).To(BeNumerically("<=", 20*time.Hour), "the first comes within the longest gap")
			}
			last = one.After
		}
	}
	g.Expect(gaps).To(And(HaveLen(2), HaveKey(10*time.Hour), HaveKey(20*time.Hour)), "as far from another as they were")
}

func TestAYoungClusterHadAnEmptyDay(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.cameAgo("a", 1, time.Hour)
	a := arrivalsOf(t, s)
	g.Expect(a.streams[0].window).To(Equal(24 * time.Hour))
	g.Expect(times(a)).To(Equal([]time.Duration{23 * time.Hour}))
	none := arrivalsOf(t, newFixture(t))
	g.Expect(none.drawFuture(rand.New(rand.NewPCG(1, 2)), now)).To(BeNil())
}

func TestOfManyJobsTheLastCount(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	for i := range mostCame + 5 {
		s.cameAgo("j"+time.Duration(i).String(), 1, time.Duration(i+1)*time.Minute)
	}
	rare := s.cameAgo("rare", 1, 48*time.Hour)
	rare.Namespace = "search"
	a := arrivalsOf(t, s)
	g.Expect(a.came).To(Equal(mostCame))
	g.Expect(a.streams).To(HaveLen(2))
	g.Expect(a.streams[0].window).To(Equal((mostCame-1)*time.Minute), "it is as long as they took")
	g.Expect(a.streams[1].window).To(Equal(48*time.Hour), "and who submits many changes the rate of no one else")

	burst := newFixture(t)
	for i := range mostCame + 5 {
		burst.cameAgo("j"+time.Duration(i).String(), 1, time.Second)
	}
	a = arrivalsOf(t, burst)
	g.Expect(a.streams[0].window).To(Equal(fullWindow))
	next, n := a.drawFuture(rand.New(rand.NewPCG(1, 2)), now), 0
	for more := true; more; n++ {
		_, more = next(n)
	}
	g.Expect(n-1).To(Equal(mostComing), "a future has an end")
}
