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
	// picture is what there was at the end.
	picture []string
	// changes counts what the operator created and deleted, by "create pods a-worker-0".
	changes map[string]int
}

// run runs the story without a fault.
func (st *story) run(ctx context.Context) (end ending, err error) {
	err = try(ctx, st.name+", undisturbed", func(t *trial) {
		s := st.begin(t)
		st.strike(s)
		st.sequel(s)
		s.rests()
		picture, err := s.picture()
		s.Expect(err).NotTo(HaveOccurred(), "the end is looked at")
		end = st.end(s, picture)
	})
	return end, err
}

// begin brings a new job to where the story begins. Writes are counted from there.
func (st *story) begin(t *trial) *site {
	s := newSite(t, st.slug, st.gpus)
	if st.prelude != nil {
		st.prelude(s)
	}
	s.proxy.count()
	return s
}

// rests waits until the operator writes nothing more.
func (s *site) rests() {
	// Longer than any change of status but of words is held back.
	const rest = 6 * time.Second
	writes, since := -1, time.Now()
	s.Eventually(func() time.Duration {
		if n := len(s.proxy.counted()); n != writes {
			writes, since = n, time.Now()
		}
		return time.Since(since)
	}).Should(BeNumerically(">", rest), "the operator writes nothing more")
}

// endsSame continues a story that has begun, and holds its end to that of the undisturbed run.
func (st *story) endsSame(s *site) ending {
	st.sequel(s)
	want, err := st.undisturbed()
	if err != nil {
		s.t.Fatalf("the undisturbed run failed, which its own spec reports")
	}
	s.Eventually(func() (string, error) {
		picture, err := s.picture()
		return diff.Diff(want.picture, picture), err
	}).Should(BeEmpty(), "the end is the same as undisturbed")
	end := st.end(s, want.picture)
	s.Expect(st.decided(end.changes)).To(Equal(st.decided(want.changes)), "all is created and deleted as often as undisturbed")
	return end
}

// decided are those of the changes that nobody but the operator may make.
func (st *story) decided(changes map[string]int) map[string]int {
	changes = maps.Clone(changes)
	if st.shared {
		maps.DeleteFunc(changes, func(does string, _ int) bool {
			// The Service of a job that is deleted may be seen to go before the job is, and be created once more.
			return strings.HasPrefix(does, "delete pods ") || does == "create services "+importantName+"-workers"
		})
	}
	return changes
}

// end holds what every run must show at its end, and returns it.
func (st *story) end(s *site, picture []string) ending {
	s.Expect(s.Remains()).To(ConsistOf(st.leaves), "nothing is missing, and nothing left over")
	s.Expect(s.Read(jobName)).To(testutil.HaveRestarts(st.restarts), "each loss is counted once, and nothing else")
	if st.verify != nil {
		st.verify(s)
	}
	return ending{writes: s.proxy.counted(), picture: picture, changes: s.changes()}
}

// changes counts what the operator created and deleted from its very first write on. The API server's audit log must have the
// same writes as the proxy.
func (s *site) changes() map[string]int {
	var changes map[string]int
	s.Eventually(func(g Gomega) {
		requests, err := s.Audit.Select(testutil.ByOperator, testutil.Write)
		g.Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		var audited, proxied []string
		changes = map[string]int{}
		for _, r := range requests {
			does := fmt.Sprintf("%s %s %s", r.Verb, r.Resource, r.Name)
			audited = append(audited, fmt.Sprintf("%s: %d", does, r.Code))
			if (r.Verb == "create" || r.Verb == "delete") && !testutil.Refused(r) {
				changes[does]++
			}
		}
		for _, c := range s.proxy.answered() {
			proxied = append(proxied, fmt.Sprintf("%s: %d", c.does(), c.code))
		}
		// Sorted, because writes for two jobs cross each other on their way.
		slices.Sort(audited)
		slices.Sort(proxied)
		g.Expect(audited).To(Equal(proxied), "no write passes by the proxy")
	}).Should(Succeed(), "the audit log and the proxy agree")
	return changes
}
