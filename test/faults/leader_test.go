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
		func(ctx context.Context, res *results) (string, error) {
			combinations := slices.Concat(combine([]*story{losing}, paused(0)), combine([]*story{suspending, capping}, paused(2)))
			if fullGrid {
				combinations = nil
				told := []*story{losing, suspending, givingWay, scaling, finishing, sharing, handingOver, capping}
				for n := range 9 {
					combinations = append(combinations, combine(told, paused(n))...)
				}
			}
			return runCombinations(ctx, res, combinations)
		})
})

// takeover is how long it may take until another operator leads, by the defaults of leases.
const takeover = 20 * time.Second

// paused has the operator that leads paused before the story begins, or when it has sent its n-th write. Another takes over and
// tells the story to its end. Then the first goes on, with a write that is as old: it must do no harm and end by itself.
func paused(n int) func() lastingFault {
	return func() lastingFault {
		name := "the leader is paused when it happens"
		if n > 0 {
			name = fmt.Sprintf("the leader is paused at write %d", n)
		}
		before := max(0, n-1) // as many writes as were made until then
		return lastingFault{
			name:    name,
			prepare: electLeader,
			set: func(env *environment) {
				env.isPatient(2 * takeover)
				env.standby = env.newReplica("standby")
				env.Expect(env.standby.operator.Launch(env.t.Context())).To(Succeed(), "another operator starts")
				env.Eventually(env.standby.operator.Log).Should(ContainSubstring("Attempting to acquire leader lease"), "it would lead")
				if n == 0 {
					env.pause()
					before = len(env.proxy.counted())
				} else {
					env.proxy.inject(at(n, stall))
				}
			},
			clear: func(env *environment) {
				if !env.missed() {
					env.rests(longerThanHeldBack) // unless it is paused at one of the last writes
				}
				if !env.missed() {
					return
				}
				env.Expect(env.standby.operator.AwaitReady(env.t.Context())).To(Succeed(), "the other leads")
				env.resume()
				env.Eventually(env.operator.Done()).Should(BeClosed(), "who has lost its lease ends")
			},
			check: func(env *environment) (verdict, string) {
				if !env.missed() {
					return void, fmt.Sprintf("%d writes only", len(env.proxy.counted()))
				}
				log, err := env.operator.Log()
				env.Expect(err).NotTo(HaveOccurred(), "the log is read")
				env.Expect(string(log)).To(ContainSubstring(`"The operator ends","error":"leader election lost"`), "it says why it ended")
				late := env.proxy.counted()[before:]
				said := []string{fmt.Sprintf("%d writes came late", len(late))}
				for _, c := range late {
					said = append(said, fmt.Sprintf("%s: answered %d", c, c.code))
				}
				return passed, strings.Join(said, "; ")
			},
		}
	}
}

// electLeader has the operators of an environment elect who leads, by a lease in its namespace.
func electLeader(env *environment) {
	objects, err := testutil.Manifests(env.t.Context(), "rbac/leader_election_role*.yaml")
	env.Expect(err).NotTo(HaveOccurred(), "the role is read")
	for _, o := range objects {
		o.SetNamespace(env.Namespace)
		env.Create(o)
	}
	operator, err := env.As("system:serviceaccount:" + testutil.OperatorNamespace + ":" + testutil.OperatorServiceAccount)
	env.Expect(err).NotTo(HaveOccurred(), "the operator's rights are tried")
	env.Eventually(func() error {
		lease := client.ObjectKey{Namespace: env.Namespace, Name: "tideline.tideline.io"}
		return client.IgnoreNotFound(operator.Get(env.t.Context(), lease, &coordinationv1.Lease{}))
	}).Should(Succeed(), "the API server has seen the role")
	env.flags = append(env.flags, "--leader-elect", "--leader-election-namespace="+env.Namespace)
}
