package arbiter

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestWhichTrainingsClaimRoom(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *fixture, j *v1beta1.ElasticTrainingJob)
		after  time.Duration
		claims bool
	}{
		"its pods wait": {change: func(*fixture, *v1beta1.ElasticTrainingJob) {}, claims: true},
		"it has its places, and has not begun": {
			change: func(s *fixture, j *v1beta1.ElasticTrainingJob) { s.bind(j, 2) }, claims: true,
		},
		"it is suspended": {change: func(_ *fixture, j *v1beta1.ElasticTrainingJob) { j.Spec.Suspend = true }},
		"it is suspended, and still has its places": {change: func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.bind(j, 2)
			j.Spec.Suspend = true
		}},
		"scheduling gates hold its pods": {change: func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.hold(j, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}} })
		}},
		"a quota refuses its pods": {change: func(s *fixture, _ *v1beta1.ElasticTrainingJob) {
			s.bare = map[string]bool{"gang": true}
		}},
		"no node takes its pods": {change: func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.hold(j, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"gpu": "none"} })
		}},
		"it is larger than the cluster": {change: func(s *fixture, j *v1beta1.ElasticTrainingJob) {
			s.hold(j, func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1000")}
			})
		}},
		"kubelets rejected its worker twice":   {change: rejected(2), claims: true},
		"and a third time":                     {change: rejected(3)},
		"it had room, and not for long":        {change: hasRoom, after: 59 * time.Second, claims: true},
		"it had room, and its claim has ended": {change: hasRoom, after: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.reserve("gang")
			c.change(s, s.claimant())
			a := s.arbiter()
			claims, judged := a.IsClaiming(key("gang"))
			g.Expect([]bool{claims, judged}).To(Equal([]bool{false, false}), "it was not looked at yet")
			for _, at := range []time.Duration{0, c.after} {
				_, err := a.evaluate(t.Context(), now.Add(at))
				g.Expect(err).NotTo(HaveOccurred())
			}
			claims, judged = a.IsClaiming(key("gang"))
			g.Expect([]bool{claims, judged}).To(Equal([]bool{c.claims, true}))
		})
	}
}

// reserve has a profile keep room for a training of that name.
func (s *fixture) reserve(name string) {
	s.objects = append(s.objects, &v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Spec: v1beta1.ResourceQuotaProfileSpec{Reservations: []v1beta1.ProfileReservation{{
			JobRef: v1beta1.ObjectRef{Name: name}, Owner: "alice",
		}}},
	})
}

// rejected has kubelets reject worker 1 so many times in a row.
func rejected(times int32) func(*fixture, *v1beta1.ElasticTrainingJob) {
	return func(_ *fixture, j *v1beta1.ElasticTrainingJob) {
		j.Status.Members = []v1beta1.Member{{Index: 1, UID: "before", State: v1beta1.MemberLost}}
		j.Status.Retries = []v1beta1.Retry{{Index: 1, Rejections: times}}
	}
}

// hasRoom makes room for the claimant.
func hasRoom(s *fixture, _ *v1beta1.ElasticTrainingJob) {
	node, _ := s.objects[0].(*corev1.Node)
	node.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("10")
}

func TestProfilesAreWokenWhenOtherTrainingsClaimRoom(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	j := s.claimant()
	s.reserve("gang")
	a := s.arbiter()
	// An arbiter that waits for a reader waits until then.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	evaluate := func(why string) {
		_, err := a.evaluate(ctx, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ctx.Err()).NotTo(HaveOccurred(), why)
	}
	evaluate("nobody has asked to be told")
	events := a.WokenProfiles()
	g.Expect(a.WokenProfiles()).To(BeIdenticalTo(events))
	evaluate("nothing changed")

	cl, _ := a.reader.(client.Client)
	g.Expect(cl.Get(ctx, client.ObjectKeyFromObject(j), j)).To(Succeed())
	j.Spec.Suspend = true
	g.Expect(cl.Update(ctx, j)).To(Succeed())
	woken := make(chan client.Object, 1)
	go func() {
		e := <-events
		woken <- e.Object
	}()
	evaluate("somebody reads")
	g.Eventually(woken).Should(Receive(BeAssignableToTypeOf(&v1beta1.ResourceQuotaProfile{})))
	evaluate("nothing changed")
}
