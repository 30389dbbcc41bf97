package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("of two operators", func() {
	itEndsTheSame("the one that leads is paused past its lease, and goes on when the other leads",
		func(ctx context.Context, count *tally) (string, error) {
			tellings := slices.Concat(each([]*story{losing}, paused(0)), each([]*story{suspending, capping}, paused(2)))
			if fullGrid {
				tellings = nil
				told := []*story{losing, suspending, givingWay, scaling, finishing, sharing, handingOver, capping}
				for n := range 9 {
					tellings = append(tellings, each(told, paused(n))...)
				}
			}
			return inWeather(ctx, count, tellings)
		})
})

// takeover is how long it may take until another operator leads, by the defaults of leases.
const takeover = 20 * time.Second

// paused has the operator that leads paused before the story begins, or when it has sent its n-th write. Another takes over and
// tells the story to its end. Then the first goes on, with a write that is as old: it must do no harm and end by itself.
func paused(n int) func() weather {
	return func() weather {
		name := "the leader is paused when it happens"
		if n > 0 {
			name = fmt.Sprintf("the leader is paused at write %d", n)
		}
		before := max(0, n-1) // as many writes as were made until then
		return weather{
			name:    name,
			prepare: electLeader,
			set: func(s *site) {
				s.isPatient(2 * takeover)
				s.deputy = s.newReplica("deputy")
				s.Expect(s.deputy.operator.Launch(s.t.Context())).To(Succeed(), "another operator starts")
				s.Eventually(s.deputy.operator.Log).Should(ContainSubstring("Attempting to acquire leader lease"), "it would lead")
				if n == 0 {
					s.pause()
					before = len(s.proxy.counted())
				} else {
					s.proxy.inject(at(n, stall))
				}
			},
			clear: func(s *site) {
				if !s.missed() {
					s.rests(longerThanHeldBack) // unless it is paused at one of the last writes
				}
				if !s.missed() {
					return
				}
				s.Expect(s.deputy.operator.AwaitReady(s.t.Context())).To(Succeed(), "the other leads")
				s.resume()
				s.Eventually(s.operator.Done()).Should(BeClosed(), "who has lost its lease ends")
			},
			check: func(s *site) (verdict, string) {
				if !s.missed() {
					return void, fmt.Sprintf("%d writes only", len(s.proxy.counted()))
				}
				log, err := s.operator.Log()
				s.Expect(err).NotTo(HaveOccurred(), "the log is read")
				s.Expect(string(log)).To(ContainSubstring(`"The operator ends","error":"leader election lost"`), "it says why it ended")
				late := s.proxy.counted()[before:]
				said := []string{fmt.Sprintf("%d writes came late", len(late))}
				for _, c := range late {
					said = append(said, fmt.Sprintf("%s: answered %d", c, c.code))
				}
				return passed, strings.Join(said, "; ")
			},
		}
	}
}

// electLeader has the operators of a site elect who leads, by a lease in its namespace.
func electLeader(s *site) {
	objects, err := testutil.Manifests(s.t.Context(), "rbac/leader_election_role*.yaml")
	s.Expect(err).NotTo(HaveOccurred(), "the role is read")
	for _, o := range objects {
		o.SetNamespace(s.Namespace)
		s.Create(o)
	}
	operator, err := s.As("system:serviceaccount:" + testutil.OperatorNamespace + ":" + testutil.OperatorServiceAccount)
	s.Expect(err).NotTo(HaveOccurred(), "the operator's rights are tried")
	s.Eventually(func() error {
		lease := client.ObjectKey{Namespace: s.Namespace, Name: "tideline.tideline.io"}
		return client.IgnoreNotFound(operator.Get(s.t.Context(), lease, &coordinationv1.Lease{}))
	}).Should(Succeed(), "the API server has seen the role")
	s.flags = append(s.flags, "--leader-elect", "--leader-election-namespace="+s.Namespace)
}
