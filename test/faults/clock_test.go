package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// Not in the short run, because another operator must be linked for it.
var _ = Describe("when the clock of its node is set by an hour", func() {
	if spotChecks {
		return
	}
	itEndsTheSame("the operator goes on", func(ctx context.Context, res *results) (string, error) {
		if _, err := settableOperator(); errors.Is(err, testutil.ErrClockNotSettable) {
			return err.Error(), nil
		} else if err != nil {
			return "", err
		}
		combinations := slices.Concat(
			combine([]*story{limited, suspending, givingWay, restarting, takingTurns, reporting},
				setBy(time.Hour, 0), setBy(-time.Hour, 0)),
			combine([]*story{growing, losing, retrying, capping, expiring}, setBy(time.Hour, 2), setBy(-time.Hour, 2)))
		if fullGrid {
			told := append(slices.Concat(stories, mergeStories, rareMergeStories, profileStories, reportStories, rareStories), limited)
			combinations = combine(told, setBy(time.Hour, 0), setBy(-time.Hour, 0), setBy(time.Hour, 2), setBy(-time.Hour, 2))
		}
		return runCombinations(ctx, res, combinations)
	})
})

// settableOperator is a program whose clock can be set, built once.
var settableOperator = sync.OnceValues(func() (string, error) {
	return testutil.BuildSettableOperator(suiteContext, shared.dir)
})

// limited is told under this fault only.
var limited = tell(story{
	name: "a job with half an hour to train and a checkpoint due within minutes is suspended and resumed", slug: "limit", gpus: 4,
	leaves: fullSize,
	setup: func(env *environment) {
		env.runs(4, func(job *v1beta1.ElasticTrainingJob) {
			job.Spec.Deadlines.ActiveSeconds, job.Spec.Deadlines.SchedulingSeconds = ptr.To[int32](1800), ptr.To[int32](1800)
			job.Spec.Checkpoint.GraceSeconds = ptr.To[int32](300)
		})
	},
	action: saving.action,
	sequel: saving.sequel,
})

// setBy has the clock of the operator's node be set forward or back when the story begins, or once the operator has sent its
// n-th write, and put right again two writes later, or at the end. The operator is elected to lead, as users have it, so that its
// Lease is tried too. Nothing has more time than without a fault.
func setBy(by time.Duration, n int) func() lastingFault {
	return func() lastingFault {
		var clock *testutil.Clock
		when := "when it happens"
		if n > 0 {
			when = fmt.Sprintf("at write %d", n)
		}
		set := func(env *environment, ahead time.Duration) {
			env.Expect(clock.Set(env.operator, ahead)).To(Succeed(), "the clock is set")
		}
		return lastingFault{
			name: fmt.Sprintf("its clock is set by %s %s", by, when),
			prepare: func(env *environment) {
				var err error
				clock, err = testutil.NewClock(env.file("clock"))
				env.Expect(err).NotTo(HaveOccurred(), "there is a clock")
				env.program, err = settableOperator()
				env.Expect(err).NotTo(HaveOccurred(), "there is an operator whose clock can be set")
				env.variables = append(env.variables, clock.Variable())
				electLeader(env)
			},
			set: func(env *environment) {
				if n == 0 {
					set(env, by)
					env.hasClock(clock.Says(by))
				}
				env.proxy.inject(func(c call) fault {
					switch {
					case n > 0 && c.number == n:
						set(env, by)
					case c.number == n+2:
						set(env, 0)
					}
					return noFault
				})
			},
			clear: func(env *environment) {
				env.rests(longerThanHeldBack)
				set(env, 0)
				env.rests(longerThanHeldBack)
			},
			check: func(env *environment) (verdict, string) {
				writes := len(env.proxy.counted())
				if writes < n {
					return void, fmt.Sprintf("%d writes only", writes)
				}
				env.hasClock(clock.Says(by))
				env.hasClock(clock.Says(0))
				return passed, fmt.Sprintf("%d writes", writes)
			},
		}
	}
}

// hasClock awaits that the operator has said how its clock was set.
func (env *environment) hasClock(says string) {
	env.Eventually(func() (bool, error) {
		log, err := env.operator.Log()
		return bytes.Contains(log, []byte(says)), err
	}).Should(BeTrue(), says)
}
