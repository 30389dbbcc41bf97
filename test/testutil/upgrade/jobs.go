package upgrade

import (
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// lookedAt is time for the operator to look at every job again more than once (see testutil.Operator).
const lookedAt = 12 * time.Second

// Jobs are jobs in each state that lasts.
type Jobs struct {
	*testutil.Scenario

	all   []string
	queue string // who waits for room
}

// StartJobs starts jobs on a node of 6 GPUs: steady has lost a worker once, grown has surplus, suspended holds nothing, and
// another waits for room.
func StartJobs(s *testutil.Scenario) *Jobs {
	ginkgo.GinkgoHelper()
	j := &Jobs{Scenario: s, all: []string{"steady", "grown", "suspended"}}
	s.Submit(s.Job("steady").Range(2, 2), s.Job("grown").Range(1, 3), s.Job("suspended").Range(1, 1))
	for job, size := range map[string]int{"steady": 2, "grown": 3, "suspended": 1} {
		gomega.Eventually(s.Fetch(job)).Should(testutil.Train(size), "%s trains", job)
	}
	s.Fail("steady", 1, 1, "out of luck")
	gomega.Eventually(s.Fetch("steady")).Should(gomega.And(testutil.HaveRestarts(1), testutil.Train(2)), "steady lost a worker")
	j.suspend()
	j.queueUp()
	return j
}

func (j *Jobs) suspend() {
	ginkgo.GinkgoHelper()
	j.Patch(j.Read("suspended"), `{"spec":{"suspend":true}}`)
	gomega.Eventually(j.Fetch("suspended")).Should(testutil.HavePhase(v1beta1.PhaseSuspended), "it is suspended")
	gomega.Eventually(j.Workers("suspended")).Should(gomega.BeEmpty(), "it holds nothing")
}

// queueUp submits one more job, for which there is no room. Only a version that answers webhooks gives it an owner.
func (j *Jobs) queueUp() {
	ginkgo.GinkgoHelper()
	j.queue = fmt.Sprint("queued-", len(j.all))
	j.all = append(j.all, j.queue)
	j.Submit(j.Job(j.queue).Range(6, 6))
	gomega.Expect(j.Read(j.queue).Spec.Owner).NotTo(gomega.BeEmpty(), "the webhooks are asked")
	gomega.Eventually(j.Fetch(j.queue)).Should(testutil.Wait(v1beta1.ReasonUnschedulable), "it waits for room")
}

// standing is what must not change of a job when another operator takes over: what was counted, and whose pods it has.
type standing struct {
	Phase    v1beta1.JobPhase
	Attempt  string
	Restarts int32
	Pods     map[string]types.UID
	Leaving  []string
}

// stand returns how every job stands.
func (j *Jobs) stand() (map[string]standing, error) {
	all := map[string]standing{}
	for _, name := range j.all {
		job, err := j.Fetch(name)()
		if err != nil {
			return nil, err
		}
		pods, err := j.Pods(name)
		if err != nil {
			return nil, err
		}
		now := standing{Phase: job.Status.Phase, Attempt: job.Status.Attempt.ID(), Restarts: job.Status.Restarts}
		now.Pods = map[string]types.UID{}
		for _, pod := range pods {
			now.Pods[pod.Name] = pod.UID
			if pod.DeletionTimestamp != nil {
				now.Leaving = append(now.Leaving, pod.Name)
			}
		}
		all[name] = now
	}
	return all, nil
}

// StayAsTheyAre holds that jobs stay as they are whatever happens.
func (j *Jobs) StayAsTheyAre(event string, happens func()) {
	ginkgo.GinkgoHelper()
	before, err := j.stand()
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the jobs are read")
	began := time.Now()
	happens()
	gomega.Consistently(j.stand).WithTimeout(lookedAt).Should(gomega.Equal(before), "no job notices %s", event)
	writes, err := j.Audit.Select(testutil.ByOperator, testutil.Write, testutil.From(began))
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the audit log is read")
	ginkgo.AddReportEntry(fmt.Sprintf("Writes of the operators at %s: %v", event, testutil.Counts(writes)))
}

// Work has every job go on to work: one shrinks and grows, one is resumed and suspended, and one that waited finds room.
func (j *Jobs) Work() {
	ginkgo.GinkgoHelper()
	j.Patch(j.Read("grown"), `{"spec":{"maxReplicas":2}}`)
	gomega.Eventually(j.Workers("grown")).Should(gomega.Equal([]int{0, 1}), "it shrinks")
	j.Patch(j.Read("grown"), `{"spec":{"maxReplicas":3}}`)
	gomega.Eventually(j.Fetch("grown")).Should(testutil.Train(3), "it grows")
	j.Patch(j.Read("suspended"), `{"spec":{"suspend":false}}`)
	gomega.Eventually(j.Fetch("suspended")).Should(testutil.Train(1), "it is resumed")
	j.suspend()
	j.AddNode(6)
	gomega.Eventually(j.Fetch(j.queue)).Should(testutil.Train(6), "there is room")
	j.queueUp()
}
