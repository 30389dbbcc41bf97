package arbiter

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

// ordered gives the namespace of the fixture's jobs to a profile that orders them, in which ivy is an intern and sam a senior.
func (s *fixture) ordered() {
	s.objects = append(s.objects,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ads", Labels: map[string]string{"team": "ads"}}},
		&v1beta1.ResourceQuotaProfile{
			ObjectMeta: metav1.ObjectMeta{Name: "ads"},
			Spec: v1beta1.ResourceQuotaProfileSpec{
				NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "ads"}},
				Members: []v1beta1.ProfileMember{
					{Kind: v1beta1.MemberUser, Name: "ivy", Standing: v1beta1.StandingIntern},
					{Kind: v1beta1.MemberUser, Name: "sam", Standing: v1beta1.StandingSenior},
				},
				Order: &v1beta1.ProfileOrder{},
			},
		})
}

// askedSince adds a job of a user's that has asked for two GPUs for so long.
func (s *fixture) askedSince(name, user string, ago time.Duration) {
	job := s.asking(name)
	job.Spec.Owner, job.Status.Attempt.StartTime = user, metav1.NewTime(now.Add(-ago))
	job.CreationTimestamp = job.Status.Attempt.StartTime
}

// runs adds jobs of two workers that hold so many GPUs together.
func (s *fixture) runs(gpus int32) {
	for i := range gpus / 2 {
		s.job(fmt.Sprint("running-", i), 2, 2)
	}
}

func TestFreeRoomGoesByStanding(t *testing.T) {
	for name, c := range map[string]struct {
		held           int32
		intern, senior bool
	}{
		"two GPUs are free":  {6, false, true},
		"none is free":       {8, false, false},
		"four GPUs are free": {4, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.served = true
			s.ordered()
			s.runs(c.held)
			s.askedSince("intern", "ivy", 5*time.Minute)
			s.askedSince("senior", "sam", 0)
			a := s.arbiter()
			again, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.TurnOf(key("senior")).Admitted).To(Equal(c.senior))
			g.Expect(a.TurnOf(key("intern")).Admitted).To(Equal(c.intern))
			if !c.intern {
				g.Expect(a.TurnOf(key("intern")).Blocked.Limit.Scope).To(Equal(admission.ScopeRoom))
				g.Expect(again).To(And(BeNumerically(">", 0), BeNumerically("<=", orderInterval)), "it ages")
			}
		})
	}
}

func TestOnlyTheOwnerOfAReservationPassesTheOrder(t *testing.T) {
	for name, c := range map[string]struct {
		profile, owner string
		admitted       bool
	}{
		"the owner, in the profile that holds the room": {"ads", "ivy", true},
		"another, whose job has the name":               {"ads", "zoe", false},
		"a reservation of another profile":              {"search", "ivy", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.served = true
			s.ordered()
			of, _ := s.objects[len(s.objects)-1].(*v1beta1.ResourceQuotaProfile)
			if c.profile != of.Name {
				of = &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: c.profile}}
				s.objects = append(s.objects, of)
			}
			of.Spec.Reservations = []v1beta1.ProfileReservation{{
				Name: "room", JobRef: v1beta1.ObjectRef{Name: "intern"}, Owner: c.owner,
			}}
			s.runs(8)
			s.askedSince("intern", "ivy", 0)
			a := s.arbiter()
			_, err := a.evaluate(t.Context(), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.TurnOf(key("intern")).Admitted).To(Equal(c.admitted))
		})
	}
}

func TestOfEqualRankWhoUsedLittleGoesFirst(t *testing.T) {
	g := NewWithT(t)
	s := newFixture(t)
	s.spent = 100 * admission.Hour
	s.ordered()
	s.runs(6)
	s.askedSince("much", "alice", 5*time.Minute)
	s.askedSince("little", "bob", 0)
	a := s.arbiter()
	s.unread = true
	again, err := a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.TurnOf(key("little")).Admitted).To(BeFalse(), "no training goes first before that is known")
	g.Expect(a.TurnOf(key("much")).Admitted).To(BeFalse())
	g.Expect(again).To(And(BeNumerically(">", 0), BeNumerically("<=", unreadInterval)))
	s.unread = false
	_, err = a.evaluate(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.TurnOf(key("little")).Admitted).To(BeTrue())
	g.Expect(a.TurnOf(key("much")).Admitted).To(BeFalse())
}
