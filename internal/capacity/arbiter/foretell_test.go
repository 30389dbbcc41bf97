package arbiter

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/lifetime"
	"github.com/tideline-io/tideline/internal/platform/dutycycle"
)

// begun has a job run for an hour.
func begun(j *v1beta1.ElasticTrainingJob) {
	since := metav1.NewTime(now.Add(-time.Hour))
	j.Status.StartTime, j.Status.RunningSince = &since, &since
}

// ended adds jobs that have ended, and that lasted for so long.
func (s *fixture) ended(number int, lasted time.Duration) {
	since, until := metav1.NewTime(now.Add(-lasted)), metav1.NewTime(now)
	for i := range number {
		j := &v1beta1.ElasticTrainingJob{}
		j.Namespace, j.Name, j.Spec.Task = "ads", fmt.Sprint("ended-", i), "old"
		j.Status.Queue, j.Status.StartTime, j.Status.CompletionTime = "default", &since, &until
		s.objects = append(s.objects, j)
	}
}

func TestWhenAJobThatDoesNotExistYetWouldStart(t *testing.T) {
	for name, c := range map[string]struct {
		holds   func(*fixture)
		workers int32
		starts  int // hours; less than 0 for never
		check   func(Gomega, *Outlook)
	}{
		"there is room": {func(s *fixture) { begun(s.job("holder", 4, 4)) }, 2, 0, func(g Gomega, o *Outlook) {
			g.Expect(o.Answer.Fits).To(BeTrue())
			g.Expect(o.Surplus).To(BeZero())
		}},
		"surplus gives way": {func(s *fixture) { begun(s.job("holder", 8, 8)) }, 4, 0, func(g Gomega, o *Outlook) {
			g.Expect(o.Answer.Fits).To(BeFalse())
			g.Expect([]int{o.Surplus, o.Jobs}).To(Equal([]int{4, 1}))
		}},
		"one must end": {func(s *fixture) {
			for _, name := range []string{"a", "b", "c", "d"} {
				begun(s.job(name, 2, 2))
			}
		}, 2, 2, func(g Gomega, o *Outlook) { g.Expect(o.From).To(Equal(map[lifetime.Source]int{lifetime.FromQueue: 4})) }},
		"another waits": {func(s *fixture) {
			for _, name := range []string{"a", "b", "c", "d"} {
				begun(s.job(name, 2, 2))
			}
			for _, name := range []string{"w", "x", "y", "z"} {
				waitingSince(s.job(name, 2, 0), now.Add(-time.Minute))
			}
		}, 2, 5, func(g Gomega, o *Outlook) { g.Expect(o.Before).To(Equal(4)) }},
		"it is too large": {func(*fixture) {}, 9, -1, func(g Gomega, o *Outlook) {
			g.Expect(o.Never).NotTo(BeNil())
			g.Expect(o.Never.Largest).To(BeNumerically("==", 8))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.served = true
			c.holds(s)
			s.ended(5, 3*time.Hour)
			asked := s.job("new", c.workers, 0)
			s.objects = s.objects[:len(s.objects)-1]
			a := s.arbiter()
			asked.Spec.MinReplicas, asked.Status = c.workers, v1beta1.ElasticTrainingJobStatus{}
			_, err := a.ForetellStartAt(t.Context(), asked, "default", now)
			g.Expect(err).To(MatchError(ErrNotJudging), "a replica that does not lead knows nobody who waits")
			_, err = a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			o, err := a.ForetellStartAt(t.Context(), asked, "default", now)
			g.Expect(err).NotTo(HaveOccurred())
			c.check(g, o)
			if c.starts < 0 {
				g.Expect(o.Starts).To(BeEmpty())
				return
			}
			g.Expect(o.Futures).To(BeNumerically(">", 0))
			g.Expect(o.Starts).To(HaveLen(o.Futures))
			g.Expect(o.Starts).To(HaveEach(time.Duration(c.starts) * time.Hour))
		})
	}
}

// Each server-side dry run is of another UID, and any user may make thousands.
func TestWhoOnlyAsksLeavesNothingBehind(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	begun(s.job("holder", 4, 4))
	s.ended(5, 3*time.Hour)
	asked := s.job("new", 2, 0)
	s.objects = s.objects[:len(s.objects)-1]
	a := s.arbiter()
	a.watching = []func() bool{func() bool { return true }}
	var err error
	a.mirror, err = readMirror(t.Context(), a.reader, a.config)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	before := len(a.mirror.shapes.of)
	for i := range 3 {
		asked.UID, asked.Status = types.UID(fmt.Sprint("dry-", i)), v1beta1.ElasticTrainingJobStatus{}
		o, err := a.ForetellStartAt(t.Context(), asked, "default", now.Add(time.Duration(i)*time.Hour))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.Answer.Fits).To(BeTrue())
	}
	g.Expect(a.mirror.shapes.of).To(HaveLen(before))
}

func TestOnlyWhatRanAndHasEndedIsLearntFrom(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.ended(1, time.Hour)
	begun(s.job("runs", 2, 2))
	s.job("never-began", 2, 0).Status.CompletionTime = ptr.To(metav1.NewTime(now))
	a := s.arbiter()
	m, done, err := a.mirrored(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer done()
	learnt := a.newCollector(m, now).endedTrainings()
	g.Expect(learnt).To(HaveLen(1))
	g.Expect(learnt[0].At.Equal(now)).To(BeTrue())
	learnt[0].At = now
	g.Expect(learnt).To(Equal([]lifetime.Ended{{Namespace: "ads", Task: "old", Queue: "default", At: now, Lasted: time.Hour}}))
}

func TestJobsOfASweepEndAlikeInAFuture(t *testing.T) {
	// soon is which part of the futures has a job that needs all room start within five hours, where of the jobs that came in sweeps
	// of five half lasted for 2 h and half for 10 h: all of a sweep as long as each other, or not.
	soon := func(alike bool) float64 {
		g := NewWithT(t)
		s := newFixture(t)
		s.served = true
		for _, name := range []string{"a", "b", "c", "d"} {
			begun(s.job(name, 2, 2))
		}
		for sweep := range 20 {
			for i := range 5 {
				long := sweep%2 == 0
				if !alike {
					long = (sweep+i)%2 == 0
				}
				lasted := 2 * time.Hour
				if long {
					lasted = 10 * time.Hour
				}
				s.ended(1, lasted)
				j, _ := s.objects[len(s.objects)-1].(*v1beta1.ElasticTrainingJob)
				j.Name = fmt.Sprintf("ended-%d-%d", sweep, i)
				began := metav1.NewTime(now.Add(-time.Duration(sweep+2)*24*time.Hour + time.Duration(i)*time.Minute))
				j.Status.StartTime, j.Status.CompletionTime = &began, ptr.To(metav1.NewTime(began.Add(lasted)))
			}
		}
		asked := s.job("new", 8, 0)
		s.objects = s.objects[:len(s.objects)-1]
		a := s.arbiter()
		asked.Spec.MinReplicas, asked.Status = 8, v1beta1.ElasticTrainingJobStatus{}
		_, err := a.evaluate(t.Context(), now)
		g.Expect(err).NotTo(HaveOccurred())
		o, err := a.ForetellStartAt(t.Context(), asked, "default", now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.Futures).To(Equal(mostFutures))
		early := slices.IndexFunc(append(o.Starts, 100*time.Hour), func(d time.Duration) bool { return d > 5*time.Hour })
		return float64(early) / float64(o.Futures)
	}
	g := NewWithT(t)
	g.Expect(soon(true)).To(BeNumerically(">", 0.25), "nearly half")
	g.Expect(soon(false)).To(BeNumerically("<", 0.2), "a sixteenth")
}

// Any user may ask, as often as requests are sent.
func TestWhoAsksOftenTakesATenthOfAProcessor(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("a", 8, 8)
	s.ended(5, time.Hour)
	a := s.arbiter()
	_, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	clock, asked := now, s.job("new", 6, 0)
	asked.Spec.MinReplicas = 6
	a.now = func() time.Time { // Each look at the clock takes a while, as in a large cluster.
		clock = clock.Add(50 * time.Millisecond)
		return clock
	}
	o, err := a.ForetellStart(t.Context(), asked, "default")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Futures).To(And(BeNumerically(">", 0), BeNumerically("<", mostFutures)), "a second is all")
	_, err = a.ForetellStart(t.Context(), asked, "default")
	g.Expect(err).To(MatchError(ErrResting))
	clock = clock.Add(2 * dutycycle.RestPerWork * drawTime)
	_, err = a.ForetellStart(t.Context(), asked, "default")
	g.Expect(err).NotTo(HaveOccurred())
	clock = clock.Add(time.Hour)
	g.Expect(a.foretelling.DoWork(a.now, func() {
		_, err = a.ForetellStart(t.Context(), asked, "default")
		g.Expect(err).To(MatchError(ErrResting), "while it foretells for others")
	})).To(BeTrue())
}

// BenchmarkForetell is what one simulation costs where 10,000 jobs run on 5,000 nodes and 2,000 wait.
func BenchmarkForetell(b *testing.B) {
	a := newScene(2000, false).arbiter(b.Context())
	if _, err := a.evaluate(b.Context(), now); err != nil {
		b.Fatal(err)
	}
	s := newFixture(&testing.T{})
	asked := s.job("new", 8, 0)
	asked.Spec.Template.Spec.NodeSelector = map[string]string{"gpu": "a100"}
	drawn := 0
	for b.Loop() {
		o, err := a.ForetellStartAt(b.Context(), asked, "queue-01", now)
		if err != nil {
			b.Fatal(err)
		}
		drawn += o.Futures
	}
	b.ReportMetric(float64(drawn)/float64(b.N), "futures/op")
}
