package install

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/testutil"
)

// lookedAt is time for the operator to look at every job again more than once (see testutil.Operator).
const lookedAt = 12 * time.Second

var _ = Describe("Another version", func() {
	It("takes over from the one before and gives back, while jobs train on", func(ctx SpecContext) {
		before, now := previousVersion.render(ctx), thisVersion.render(ctx)
		if !before.hasJobField("suspend") {
			AddReportEntry(before.version.Name + " has other field names, so that this version stands for the one before it.")
			before = thisVersion.render(ctx)
		}
		r := &rollout{target: newTarget(ctx)}
		r.apply(ctx, before.objects, r.next())
		r.replace(ctx, before)
		jobs := startJobs(r.NewScenario(GinkgoT(), "upgrade", 6))

		jobs.stayAsTheyAre("the upgrade to this version", func() {
			r.apply(ctx, now.objects, r.next())
			r.replace(ctx, now)
		})
		jobs.work()
		definitions, others := split(before.objects)
		jobs.stayAsTheyAre("the way back, without the definitions", func() {
			r.apply(ctx, others, r.next())
			r.replace(ctx, before)
		})
		jobs.work()
		jobs.stayAsTheyAre("the way back of the definitions", func() { r.apply(ctx, definitions, "") })
		jobs.work()
	})
})

// split returns CustomResourceDefinitions, and all other objects.
func split(objects []*unstructured.Unstructured) (definitions, others []*unstructured.Unstructured) {
	isDefinition := func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }
	definitions = slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return !isDefinition(o) })
	return definitions, slices.DeleteFunc(slices.Clone(objects), isDefinition)
}

// rollout stands for the Deployment.
type rollout struct {
	*target

	operator *testutil.Operator // who runs; nil at first
	address  string             // of the webhooks of who is to run next
	count    int
}

// next is the address of who is to run next.
func (r *rollout) next() string {
	GinkgoHelper()
	r.address = freeAddress()
	return r.address
}

// replace starts a version's operator, and ends who ran before when it answers.
func (r *rollout) replace(ctx context.Context, in installation) {
	GinkgoHelper()
	r.count++
	operator := r.launch(ctx, in, fmt.Sprint("operator-", r.count), r.address)
	Expect(r.AwaitWebhooks(ctx)).To(Succeed(), "the webhooks of %s answer", in.version.Name)
	if r.operator != nil {
		Expect(r.operator.Stop()).To(Succeed(), "who ran before ends in order")
	}
	Expect(operator.AwaitReady(ctx)).To(Succeed(), "%s leads", in.version.Name)
	r.operator = operator
}

// liveJobs are jobs in each state that lasts.
type liveJobs struct {
	*testutil.Scenario

	all   []string
	queue string // who waits for room
}

// startJobs starts jobs on a node of 6 GPUs: steady has lost a worker once, grown has surplus, suspended holds nothing, and
// another waits for room.
func startJobs(s *testutil.Scenario) *liveJobs {
	GinkgoHelper()
	j := &liveJobs{Scenario: s, all: []string{"steady", "grown", "suspended"}}
	s.Submit(s.Job("steady").Range(2, 2), s.Job("grown").Range(1, 3), s.Job("suspended").Range(1, 1))
	for job, size := range map[string]int{"steady": 2, "grown": 3, "suspended": 1} {
		Eventually(s.Fetch(job)).Should(testutil.Train(size), "%s trains", job)
	}
	s.Fail("steady", 1, 1, "out of luck")
	Eventually(s.Fetch("steady")).Should(And(testutil.HaveRestarts(1), testutil.Train(2)), "steady lost a worker")
	j.suspend()
	j.queueUp()
	return j
}

func (j *liveJobs) suspend() {
	GinkgoHelper()
	j.Patch(j.Read("suspended"), `{"spec":{"suspend":true}}`)
	Eventually(j.Fetch("suspended")).Should(testutil.HavePhase(v1alpha1.PhaseSuspended), "it is suspended")
	Eventually(j.Workers("suspended")).Should(BeEmpty(), "it holds nothing")
}

// queueUp submits one more job, for which there is no room. Only a version that answers webhooks gives it an owner.
func (j *liveJobs) queueUp() {
	GinkgoHelper()
	j.queue = fmt.Sprint("queued-", len(j.all))
	j.all = append(j.all, j.queue)
	j.Submit(j.Job(j.queue).Range(6, 6))
	Expect(j.Read(j.queue).Spec.Owner).NotTo(BeEmpty(), "the webhooks are asked")
	Eventually(j.Fetch(j.queue)).Should(testutil.Wait(v1alpha1.ReasonUnschedulable), "it waits for room")
}

// standing is what must not change of a job when another operator takes over: what was counted, and whose pods it has.
type standing struct {
	Phase    v1alpha1.JobPhase
	Attempt  string
	Restarts int32
	Pods     map[string]types.UID
	Leaving  []string
}

// stand returns how every job stands.
func (j *liveJobs) stand() (map[string]standing, error) {
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

// stayAsTheyAre holds that jobs stay as they are whatever happens.
func (j *liveJobs) stayAsTheyAre(event string, happens func()) {
	GinkgoHelper()
	before, err := j.stand()
	Expect(err).NotTo(HaveOccurred(), "the jobs are read")
	began := time.Now()
	happens()
	Consistently(j.stand).WithTimeout(lookedAt).Should(Equal(before), "no job notices %s", event)
	writes, err := j.Audit.Select(testutil.ByOperator, testutil.Write, testutil.From(began))
	Expect(err).NotTo(HaveOccurred(), "the audit log is read")
	AddReportEntry(fmt.Sprintf("Writes of the operators at %s: %v", event, testutil.Counts(writes)))
}

// work has every job go on to work: one shrinks and grows, one is resumed and suspended, and one that waited finds room.
func (j *liveJobs) work() {
	GinkgoHelper()
	j.Patch(j.Read("grown"), `{"spec":{"maxReplicas":2}}`)
	Eventually(j.Workers("grown")).Should(Equal([]int{0, 1}), "it shrinks")
	j.Patch(j.Read("grown"), `{"spec":{"maxReplicas":3}}`)
	Eventually(j.Fetch("grown")).Should(testutil.Train(3), "it grows")
	j.Patch(j.Read("suspended"), `{"spec":{"suspend":false}}`)
	Eventually(j.Fetch("suspended")).Should(testutil.Train(1), "it is resumed")
	j.suspend()
	j.AddNode(8)
	Eventually(j.Fetch(j.queue)).Should(testutil.Train(8), "there is room")
	j.queueUp()
}
