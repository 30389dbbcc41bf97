package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("under a fault that lasts", func() {
	itEndsTheSame("watches tell late what happens", func(ctx context.Context, res *results) (string, error) {
		combinations := slices.Concat(
			combine([]*story{growing, scaling}, late(time.Second)),
			combine([]*story{givingWay, losing, suspending, preempting}, late(5*time.Second)),
			combine([]*story{failing, finishing, suspending}, late(5*time.Second, "pods")),
			combine([]*story{handingOver, reporting}, late(5*time.Second)),
			// Longer than a turn counts that no reconcile acts on.
			combine([]*story{capping}, late(admission.Arrival+5*time.Second, "podgroups", "pods")))
		if fullGrid {
			combinations = combine(stories, late(30*time.Second), late(30*time.Second, jobsResource))
			for _, by := range []time.Duration{time.Second, 5 * time.Second} {
				combinations = append(combinations,
					combine(stories, late(by), late(by, "pods"), late(by, jobsResource), late(by, "podgroups", "services"))...)
			}
			combinations = append(combinations, combine(slices.Concat(mergeStories, rareMergeStories), late(5*time.Second),
				late(5*time.Second, "pods"), late(5*time.Second, mergesResource), late(5*time.Second, "podgroups", "configmaps"))...)
			combinations = append(combinations, combine(profileStories, late(5*time.Second), late(5*time.Second, "pods"),
				late(5*time.Second, profilesResource), late(5*time.Second, "podgroups", queuesResource))...)
			combinations = append(combinations, combine(reportStories, late(5*time.Second), late(30*time.Second, reportsResource))...)
		}
		return runCombinations(ctx, res, combinations)
	})
	itEndsTheSame("a job is deleted and created anew while watches sleep", func(ctx context.Context, res *results) (string, error) {
		told := []*story{replacing}
		combinations := combine(told, late(5*time.Second), late(5*time.Second, jobsResource))
		if fullGrid {
			combinations = append(combinations, combine(told, late(5*time.Second, "pods"), late(30*time.Second),
				late(30*time.Second, "pods"), late(30*time.Second, jobsResource))...)
		}
		return runCombinations(ctx, res, combinations)
	})
	itEndsTheSame("requests are refused or get no answer", func(ctx context.Context, res *results) (string, error) {
		tries := map[int]uint64{20: 1, 50: 1}
		if fullGrid {
			tries = map[int]uint64{5: 5, 20: 8, 50: 5}
		}
		var combinations []combination
		for _, percent := range slices.Sorted(maps.Keys(tries)) {
			for seed := uint64(1); seed <= tries[percent]; seed++ {
				combinations = append(combinations, combine([]*story{life}, refusing(percent, seed))...)
			}
		}
		combinations = append(combinations, combine([]*story{handingOver, reporting}, refusing(20, 1))...)
		return runCombinations(ctx, res, combinations)
	})
})

// What the API server calls jobs and merges.
const jobsResource, mergesResource = "elastictrainingjobs", "mergejobs"

// lastingFault is a fault that lasts for a whole run, where a fault is what happens to one request.
type lastingFault struct {
	name string
	// prepare is done before the operator starts; nil for nothing.
	prepare func(*environment)
	// set makes it so, before the story begins.
	set func(*environment)
	// clear is done when the story is over, before its end is looked at; nil for nothing.
	clear func(*environment)
	// check holds at the end that it was so, and what else must be; it returns what was tried, for people.
	check func(*environment) (verdict, string)
}

// combination is a story under a fault that lasts, which is made anew for each run.
type combination struct {
	*story
	fault func() lastingFault
}

// combine puts each story under each fault.
func combine(stories []*story, faults ...func() lastingFault) []combination {
	var combinations []combination
	for _, st := range stories {
		for _, f := range faults {
			combinations = append(combinations, combination{st, f})
		}
	}
	return combinations
}

// runCombinations runs stories under faults that last, side by side.
func runCombinations(ctx context.Context, res *results, combinations []combination) (string, error) {
	combinations = spots(combinations, 6)
	var runs []func() error
	lines := make([]string, len(combinations))
	for i, c := range combinations {
		f := c.fault()
		what := f.name
		if !slices.ContainsFunc(combinations, func(other combination) bool { return other.story != c.story }) {
			what += ": " + c.name
		}
		res.plan(what, 0)
		runs = append(runs, func() error {
			return res.record(what, func() (verdict, error) {
				v, said, err := c.tryLasting(ctx)
				lines[i] = strings.TrimSuffix(fmt.Sprintf("%s, %s: %s, %s", c.name, f.name, v, said), ", ")
				return v, err
			})
		})
	}
	// Before any run has a lane: none might be left for what they all wait for.
	var undisturbed sync.WaitGroup
	for _, c := range combinations {
		undisturbed.Go(func() { _, _ = c.undisturbed() }) // its own spec reports its error
	}
	undisturbed.Wait()
	err := abreast(runs...)
	return strings.Join(lines, "\n"), err
}

// tryLasting runs the story under a fault that lasts, until it hits; three times at most.
func (c combination) tryLasting(ctx context.Context) (v verdict, said string, err error) {
	for range 3 {
		if v, said, err = c.story.tryOnce(ctx, c.fault()); err != nil || v != void {
			break
		}
	}
	return v, said, err
}

// tryOnce runs the story under a fault that lasts.
func (st *story) tryOnce(ctx context.Context, f lastingFault) (v verdict, said string, err error) {
	err = try(ctx, st.name+", "+f.name, func(t *storyRun) {
		prepare := []func(*environment){}
		if f.prepare != nil {
			prepare = append(prepare, f.prepare)
		}
		env := st.begin(t, prepare...)
		f.set(env)
		st.action(env)
		st.sequel(env)
		if f.clear != nil {
			f.clear(env)
		}
		st.endsSame(env)
		v, said = f.check(env)
	})
	if err != nil {
		return failed, "", err
	}
	return v, said, nil
}

// late has watches tell of these resources later; of all when there are none.
func late(by time.Duration, resources ...string) func() lastingFault {
	return func() lastingFault {
		what := "all watches"
		if len(resources) > 0 {
			what = "watches of " + strings.Join(resources, " and ")
		}
		return lastingFault{
			name: fmt.Sprintf("%s %s late", what, by),
			set: func(env *environment) {
				env.isPatient(8 * by)
				env.proxy.delayWatches(func(resource string) time.Duration {
					if len(resources) == 0 || slices.Contains(resources, resource) {
						return by
					}
					return 0
				})
			},
			// What the operator would do on account of what it is still told is done then.
			clear: func(env *environment) { env.rests(by + time.Second) },
			check: func(env *environment) (verdict, string) {
				env.Expect(env.proxy.delayedParts.Load()).To(BeNumerically(">", 0), "watches are late")
				requests, err := env.Audit.Select(testutil.ByOperator, testutil.Write)
				env.Expect(err).NotTo(HaveOccurred(), "the audit log is read")
				refused := slices.DeleteFunc(slices.Clone(requests), func(r testutil.Request) bool {
					return r.Verb != "create" || !testutil.Refused(r)
				})
				if !env.story.namesTaken {
					env.Expect(refused).To(BeEmpty(), "nothing is created twice on an old view")
				}
				for does, n := range env.inVain() {
					env.Expect(n).To(BeNumerically("<=", 2), "%s, for a job that is gone", does)
				}
				return passed, fmt.Sprintf("%d writes, %d creations refused", len(requests), len(refused))
			},
		}
	}
}

// inVain counts what was created since the story began and before its job had a status.
func (env *environment) inVain() map[string]int {
	counts := map[string]int{}
	for _, c := range env.proxy.counted() {
		if c.begins() {
			break
		}
		if env.story.namesTaken && c.verb == "create" && c.code != 0 && c.code < 400 {
			counts[c.does()]++
		}
	}
	return counts
}

// isPatient has everything that is awaited from now on take so much longer.
func (env *environment) isPatient(by time.Duration) { env.SetDefaultEventuallyTimeout(patience + by) }

// refusing has so many of a hundred requests fail, as a seed decides; watches excepted.
func refusing(percent int, seed uint64) func() lastingFault {
	return func() lastingFault {
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), seed))
		return lastingFault{
			name: fmt.Sprintf("%d %% of requests fail", percent),
			set: func(env *environment) {
				env.isPatient(time.Duration(percent) * 4 * time.Second) // failures in a row are tried again later and later
				env.proxy.inject(func(c call) fault {
					if random.IntN(100) >= percent {
						return noFault
					}
					if c.isWrite() {
						return conflict + fault(random.IntN(int(timeoutAfter-conflict)+1))
					}
					return tooManyRequests + fault(random.IntN(int(timeoutBefore-tooManyRequests)+1))
				})
			},
			check: func(env *environment) (verdict, string) {
				counts := map[string]int{}
				for _, c := range env.proxy.faulted() {
					counts[c.fault.String()]++
				}
				if len(counts) == 0 {
					return void, "by chance none failed"
				}
				var kinds []string
				for _, kind := range slices.Sorted(maps.Keys(counts)) {
					kinds = append(kinds, fmt.Sprintf("%d × %s", counts[kind], kind))
				}
				return passed, strings.Join(kinds, ", ")
			},
		}
	}
}
