package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/tideline-io/tideline/test/testutil"
)

// ending is how a run of a story ended.
type ending struct {
	// writes are those that the operator made since the story began, and carried out or not.
	writes []call
	// snapshot is what there was at the end.
	snapshot []string
	// changes counts what the operator created and deleted, by "create pods a-worker-0".
	changes map[string]int
}

// run runs the story without a fault.
func (st *story) run(ctx context.Context) (end ending, err error) {
	err = try(ctx, st.name+", undisturbed", func(t *storyRun) {
		env := st.begin(t)
		st.action(env)
		st.sequel(env)
		env.rests(st.longerThanHeldBack())
		snapshot, err := env.snapshot()
		env.Expect(err).NotTo(HaveOccurred(), "the end is looked at")
		end = st.end(env, snapshot)
	})
	return end, err
}

// begin brings a new job to where the story begins, on an environment that was prepared. Writes are counted from there.
func (st *story) begin(t *storyRun, prepare ...func(*environment)) *environment {
	if st.prepare != nil {
		prepare = append(prepare, st.prepare)
	}
	env := newEnvironment(t, st, prepare...)
	if st.setup != nil {
		st.setup(env)
	}
	env.proxy.count()
	return env
}

// longerThanHeldBack is longer than any change of a job's status but of words is held back.
const longerThanHeldBack = 6 * time.Second

// longerThanHeldBack is longer than anything is held back that is compared of the story's statuses. Figures of profiles, which
// the full grid compares, are for ten seconds.
func (st *story) longerThanHeldBack() time.Duration {
	if st.clusterWide && fullGrid {
		return 12 * time.Second
	}
	return longerThanHeldBack
}

// rests waits until the operators have written nothing for so long.
func (env *environment) rests(rest time.Duration) {
	writes, since := -1, time.Now()
	env.Eventually(func() time.Duration {
		n := 0
		for _, r := range env.replicas() {
			n += len(r.proxy.counted())
		}
		if n != writes {
			writes, since = n, time.Now()
		}
		return time.Since(since)
	}).Should(BeNumerically(">", rest), "the operator writes nothing more")
}

// secondThoughts is longer than an operator with nothing else to do takes until it begins what would end as before: another run
// of a merge, which would begin at once, or another revision of a report, once the ledger has all that ran. It is 0 for all else.
func (env *environment) secondThoughts() time.Duration {
	switch {
	case env.merges != nil:
		return 2 * time.Second
	case env.books != nil:
		return 8 * time.Second
	}
	return 0
}

// endsSame holds the end of a story to that of the undisturbed run.
func (st *story) endsSame(env *environment) ending {
	want := st.looksSame(env)
	if rest := env.secondThoughts(); rest > 0 {
		env.rests(rest)
		want = st.looksSame(env)
	}
	end := st.end(env, want.snapshot)
	for _, c := range env.proxy.faulted() {
		// A deletion of which the operator heard nothing may be asked for once more.
		if does := env.nameless(c.does()); c.verb == "delete" && c.fault == timeoutAfter && end.changes[does] > want.changes[does] {
			end.changes[does]--
		}
	}
	env.Expect(st.decided(end.changes)).To(Equal(st.decided(want.changes)),
		"everything is created and deleted as often as undisturbed")
	return end
}

// looksSame holds what there is at the end to the undisturbed run, which it returns.
func (st *story) looksSame(env *environment) ending {
	want, err := st.undisturbed()
	if err != nil {
		env.t.Fatalf("the undisturbed run failed, which its own spec reports")
	}
	env.Eventually(func() (string, error) {
		snapshot, err := env.snapshot()
		return diff.Diff(want.snapshot, snapshot), err
	}).Should(BeEmpty(), "the end is the same as undisturbed")
	return want
}

// decided are those of the changes that nobody but the operator may make.
func (st *story) decided(changes map[string]int) map[string]int {
	changes = maps.Clone(changes)
	maps.DeleteFunc(changes, func(does string, _ int) bool {
		return st.shared && strings.HasPrefix(does, "delete pods ") || st.deletes != "" && st.isOfDeleted(does)
	})
	return changes
}

// isOfDeleted holds for changes of what belongs to the job that is deleted on the way, as far as they vary.
func (st *story) isOfDeleted(does string) bool {
	creates := []string{"create services " + st.deletes + "-workers", "create podgroups " + st.deletes}
	deletes := []string{"delete podgroups " + st.deletes, "delete podgroups " + st.deletes + "-surplus"}
	return !st.createsOnce && slices.Contains(creates, does) || slices.Contains(deletes, does) ||
		strings.HasPrefix(does, "delete pods "+st.deletes+"-worker-")
}

// end holds what every run must show at its end, and returns it.
func (st *story) end(env *environment, snapshot []string) ending {
	st.holds(env)
	return ending{writes: env.proxy.counted(), snapshot: snapshot, changes: env.changes()}
}

// holds checks what there must be at the end, besides that it looks the same.
func (st *story) holds(env *environment) {
	env.Expect(env.Remains()).To(ConsistOf(st.leaves), "nothing is missing, and nothing left over")
	if slices.Contains(st.leaves, ended[0]) {
		env.Expect(env.Read(jobName)).To(testutil.HaveRestarts(st.restarts), "each loss is counted once, and nothing else")
	}
	if env.merges != nil {
		env.keepsTheLine()
	}
	if st.verify != nil {
		st.verify(env)
	}
}

// changes counts what the operators created and deleted: from the very first write on or, where names were another job's before,
// from the first that the story's job has in its status. The API server's audit log must have the same writes as the proxies.
func (env *environment) changes() map[string]int {
	var changes map[string]int
	env.Eventually(func(g Gomega) {
		requests, err := env.Audit.Select(testutil.ByOperator, testutil.Write)
		g.Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		var audited, proxied []string
		for _, r := range requests {
			audited = append(audited, fmt.Sprintf("%s %s %s: %d", r.Verb, r.Resource, r.Name, r.Code))
		}
		changes = map[string]int{}
		for _, r := range env.replicas() {
			answered := r.proxy.answered()
			for _, c := range answered {
				proxied = append(proxied, fmt.Sprintf("%s: %d", c.does(), c.code))
			}
			if i := slices.IndexFunc(answered, call.begins); env.story.namesTaken && i >= 0 {
				answered = answered[i:]
			}
			for _, c := range answered {
				if (c.verb == "create" || c.verb == "delete") && c.code < 400 {
					changes[env.nameless(c.does())]++
				}
			}
		}
		// Sorted, because writes for two jobs cross each other on their way.
		slices.Sort(audited)
		slices.Sort(proxied)
		g.Expect(audited).To(Equal(proxied), "no write passes by the proxy")
	}).Should(Succeed(), "the audit log and the proxy agree")
	return changes
}
