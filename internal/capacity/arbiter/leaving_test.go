package arbiter

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// stranger adds a pod of a GPU on the node, of a gang that is gone.
func (s *fixture) stranger(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: name}}
	pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodRunning
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
	}}}
	gang.Member{Group: "gone"}.JoinGang(pod)
	s.objects = append(s.objects, pod)
	return pod
}

// terminates has a pod be gone in half a minute.
func terminates(p *corev1.Pod) {
	until := metav1.NewTime(now.Add(30 * time.Second))
	p.DeletionTimestamp, p.Finalizers = &until, []string{"example.com/holds"}
}

// ofJob are the pods of a job.
func (s *fixture) ofJob(name string) (pods []*corev1.Pod) {
	for _, o := range s.objects {
		if pod, ok := o.(*corev1.Pod); ok && pod.Labels[v1beta1.LabelJob] == name {
			pods = append(pods, pod)
		}
	}
	return pods
}

func TestRoomThatIsOnItsWayIsWaitedFor(t *testing.T) {
	for name, leave := range map[string]func(*fixture){
		"pods of a gang that is gone terminate": func(s *fixture) {
			terminates(s.stranger("x"))
			terminates(s.stranger("y"))
		},
		"a job is being suspended": func(s *fixture) { s.job("stops", 2, 2).Spec.Suspend = true },
		"a job is being preempted": func(s *fixture) {
			s.job("stops", 2, 2).Status.Preemption = &v1beta1.PreemptionStatus{By: v1beta1.GangRef{Namespace: "ads", Name: "x"}}
		},
		"a job has been suspended, and its pods terminate": func(s *fixture) {
			s.job("stops", 2, 2).Spec.Suspend = true
			for _, p := range s.ofJob("stops") {
				terminates(p)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.job("ctr", 8, 6)
			leave(s)
			waitingSince(s.job("ranker", 4, 0), now.Add(-time.Hour))
			a := s.arbiter()
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(BeEmpty())
			answer := a.VerdictFor(key("ranker")).Answer
			g.Expect(answer.Fits).To(BeFalse())
			g.Expect(answer.Leaving).To(Equal(capacity.Amounts{"nvidia.com/gpu": 2}))
		})
	}
}

func TestPodsThatDoNotGoAreNotWaitedFor(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 8, 6)
	terminates(s.stranger("x"))
	terminates(s.stranger("y"))
	waitingSince(s.job("ranker", 4, 0), now.Add(-time.Hour))
	a := s.arbiter()
	again, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(figuresInterval))
	again, err = a.evaluate(t.Context(), now.Add(figuresInterval))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(BeEmpty())
	g.Expect(again).To(Equal(30*time.Second), "a minute after their grace period")
	_, err = a.evaluate(t.Context(), now.Add(figuresInterval+again))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("ranker")).Answer.Leaving).To(BeNil())
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(Equal([]types.UID{"ctr-worker-5", "ctr-worker-4"}))
}

func TestVictimThatDoesNotGoIsGivenUp(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 8, 8)
	waitingSince(s.job("ranker", 4, 0), now.Add(-time.Hour))
	waitingSince(s.job("next", 4, 0), now.Add(-time.Hour))
	a := s.arbiter()
	_, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	first := a.VerdictFor(key("ctr")).To
	for _, p := range s.ofJob("ctr")[6:] {
		terminates(p)
	}
	promises := a.promises
	a = s.arbiter()
	a.promises = promises
	_, err = a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.VerdictFor(key("ctr")).To).To(Equal(first), "the victims are leaving")
	for _, after := range []time.Duration{2 * time.Minute, 3 * time.Minute} {
		_, err = a.evaluate(t.Context(), now.Add(after))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(a.VerdictFor(key("ctr")).To).NotTo(Equal(first), "they do not go, and others are served")
	g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(HaveLen(2))
}

func TestPodsThatTerminateAreInNoBooks(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.job("ctr", 4, 4)
	terminates(s.ofJob("ctr")[3])
	snapshot := s.arbiter().snapshotNow(t)
	g.Expect(snapshot.Queues).To(HaveLen(1))
	g.Expect(snapshot.Queues[0].Allocated).To(Equal(capacity.Amounts{"nvidia.com/gpu": 3}), "Volcano counts it no more")
}

// The API server's clock may be ahead, so that a pod seems to have longer than the grace that it was given.
func TestRoomIsCountedOnByTheGraceOfWhoLeaves(t *testing.T) {
	both := capacity.Amounts{"nvidia.com/gpu": 2}
	for name, c := range map[string]struct {
		grace   *int64
		end     time.Duration
		leaving capacity.Amounts
	}{
		"two minutes":                           {ptr.To[int64](120), 2 * time.Minute, both},
		"two minutes, by a clock that is ahead": {ptr.To[int64](120), 3 * time.Minute, both},
		"more":                                  {ptr.To[int64](121), 121 * time.Second, nil},
		"more, of which two minutes are left":   {ptr.To[int64](600), 2 * time.Minute, both},
		"not known":                             {nil, 121 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.job("ctr", 8, 6)
			for _, pod := range []*corev1.Pod{s.stranger("x"), s.stranger("y")} {
				terminates(pod)
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(now.Add(c.end))), c.grace
			}
			waitingSince(s.job("ranker", 4, 0), now.Add(-time.Hour))
			a := s.arbiter()
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.VerdictFor(key("ranker")).Answer.Leaving).To(Equal(c.leaving))
		})
	}
}

// A gang that is placed and ends within the second before the arbiter looks again had the room that others made for it.
func TestClaimIsKeptOfAGangThatEndsAsSoonAsItIsPlaced(t *testing.T) {
	for name, placed := range map[string]bool{"placed": true, "taken back before it was": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.job("ctr", 8, 8)
			waitingSince(s.job("ranker", 4, 0), now.Add(-time.Hour))
			a := s.arbiter()
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.VerdictFor(key("ctr")).GiveUp).To(HaveLen(2))
			for _, waits := range s.waits {
				if bound := waits.DeepCopyObject().(*corev1.Pod); placed {
					bound.Spec.NodeName = "n"
					a.noteBinding(waits, bound)
				}
			}
			without := newFixture(t)
			without.job("ctr", 8, 6)
			a.reader = without.arbiter().reader
			_, err = a.evaluate(t.Context(), now.Add(interval))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.VerdictFor(key("ctr")).InVain).To(HaveLen(map[bool]int{true: 0, false: 1}[placed]))
		})
	}
}
