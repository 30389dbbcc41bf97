package install

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil"
)

// takeover is how long it may take after the leader's crash until the other replica acts: the lease of component ha, and 5 s.
const takeover = 13 * time.Second

var _ = Describe("Component ha", func() {
	It("has the other replica act within 13 s of the leader's crash, and nothing is created twice", func(ctx SpecContext) {
		in := thisVersion.render(ctx, "ha")
		t := newTarget(ctx)
		addresses := [2]string{freeAddress(), freeAddress()}
		t.apply(ctx, in.objects, addresses[1])
		leader := t.launch(ctx, in, "one", addresses[0])
		Expect(leader.AwaitReady(ctx)).To(Succeed(), "one leads")
		other := t.launch(ctx, in, "two", addresses[1])
		Expect(t.AwaitWebhooks(ctx)).To(Succeed(), "who does not lead answers webhooks")

		s := t.NewScenario(GinkgoT(), "ha", 256)
		sizes := map[string]int{"steady": 3, "scaled-1": 3, "scaled-2": 3}
		for job, size := range sizes {
			s.Submit(s.Job(job).Range(2, 3))
			Eventually(s.Fetch(job)).Should(testutil.Train(size), "job %s trains", job)
		}
		steady := s.UIDs("steady")
		for crash := 1; crash <= 2; crash++ {
			// A Service sends reviews to who answers. Here the API server knows one address: that of who does not crash.
			t.apply(ctx, in.objects, addresses[crash%2])
			Expect(t.AwaitWebhooks(ctx)).To(Succeed(), "who does not lead answers webhooks")
			work := fmt.Sprintf("work-%d-", crash)
			for i := range 6 {
				job := fmt.Sprint(work, i)
				s.Submit(s.Job(job).Range(2, 3))
				sizes[job] = 3
			}
			Eventually(created(s, "pods", work)).ShouldNot(BeEmpty(), "the leader is at work")
			leader.Kill()
			killed := time.Now()
			scaled := fmt.Sprint("scaled-", crash)
			s.Patch(s.Read(scaled), `{"spec":{"maxReplicas":2}}`)
			sizes[scaled] = 2
			var follows []testutil.Request
			Eventually(func() (_ []testutil.Request, err error) {
				follows, err = s.Audit.Select(testutil.ByOperator, testutil.Doing("delete", "pods"), testutil.To(scaled+"-worker-2"))
				return follows, err
			}).WithTimeout(2*takeover).ShouldNot(BeEmpty(), "the other acts")
			took := follows[0].Received.Sub(killed)
			AddReportEntry(fmt.Sprintf("The other replica acted %.1f s after crash %d of the leader.", took.Seconds(), crash))
			Expect(took).To(BeNumerically("<", takeover), "it acts in time")
			for job, size := range sizes {
				Eventually(s.Fetch(job)).Should(And(testutil.Train(size), testutil.HaveRestarts(0)), "job %s goes on", job)
			}
			Expect(leader.Launch(ctx)).To(Succeed(), "its container starts again")
			leader, other = other, leader
		}
		Expect(s.UIDs("steady")).To(Equal(steady), "who trained keeps its pods")
		names, err := created(s, "", "")()
		Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		times := map[string]int{}
		for _, name := range names {
			times[name]++
		}
		Expect(times).To(HaveEach(1), "nothing was created twice")
		role, err := os.ReadFile(filepath.Join(thisRoot, "config", "rbac", "leader_election_role.yaml"))
		Expect(err).NotTo(HaveOccurred(), "the role of leaders is read")
		Expect(testutil.Unused(role, nil, t.AuditLog)).To(BeEmpty(), "leaders need every right that they have")
	})
})

// created returns a function that lists what the operator has created, as resource/name: everything, or what begins so.
func created(s *testutil.Scenario, resource, name string) func() ([]string, error) {
	return func() ([]string, error) {
		requests, err := s.Audit.Select(testutil.ByOperator, testutil.Write, testutil.Not(testutil.Refused))
		var all []string
		for _, r := range requests {
			if r.Verb == "create" && strings.HasPrefix(r.Resource, resource) && strings.HasPrefix(r.Name, name) {
				all = append(all, r.Resource+"/"+r.Name)
			}
		}
		return all, err
	}
}
