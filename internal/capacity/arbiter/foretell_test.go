package arbiter

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity/lifetime"
)

// begun has a job run for an hour.
func begun(j *v1alpha1.ElasticTrainingJob) *v1alpha1.ElasticTrainingJob {
	since := metav1.NewTime(now.Add(-time.Hour))
	j.Status.StartTime, j.Status.RunningSince = &since, &since
	return j
}

// lastingHours is a history in which every job lasted for so many hours.
func lastingHours(hours int) *lifetime.History {
	ended := make([]lifetime.Ended, 5)
	for i := range ended {
		ended[i] = lifetime.Ended{Namespace: "ads", Task: "x", Queue: "default", At: now, Lasted: time.Duration(hours) * time.Hour}
	}
	return lifetime.NewHistory(ended)
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
			asked := s.job("new", c.workers, 0)
			s.objects = s.objects[:len(s.objects)-1]
			a := s.arbiter()
			asked.Spec.MinReplicas, asked.Status = c.workers, v1alpha1.ElasticTrainingJobStatus{}
			_, err := a.ForetellStart(t.Context(), asked, "default", lastingHours(3), now)
			g.Expect(err).To(MatchError(ErrNotJudging), "a replica that does not lead knows nobody who waits")
			_, err = a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			o, err := a.ForetellStart(t.Context(), asked, "default", lastingHours(3), now)
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

func TestEndedTrainingsAreLearntFrom(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	done := begun(s.job("done", 2, 0))
	done.Spec.Task, done.Status.CompletionTime = "ctr", ptr.To(metav1.NewTime(now))
	begun(s.job("runs", 2, 2))
	s.job("never-began", 2, 0).Status.CompletionTime = ptr.To(metav1.NewTime(now))
	ended, err := s.arbiter().EndedTrainings(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ended).To(HaveLen(1))
	g.Expect(ended[0].At.Equal(now)).To(BeTrue())
	ended[0].At = now
	g.Expect(ended).To(Equal([]lifetime.Ended{{Namespace: "ads", Task: "ctr", Queue: "default", At: now, Lasted: time.Hour}}))
}

func TestWhoHasGivenUpIsToldNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newFixture(t)
	_, err := s.arbiter().ForetellStart(ctx, s.job("new", 2, 0), "default", lifetime.NewHistory(nil), now)
	NewWithT(t).Expect(err).To(MatchError(context.Canceled))
}
