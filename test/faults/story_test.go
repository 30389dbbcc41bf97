package faults

import (
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// jobName is the name of the job that a story is about.
const jobName = "a"

// importantName is the name of the job for which another is stopped whole.
const importantName = "launch"

// story is a piece of a job's life that must end the same way whatever hits the operator meanwhile.
type story struct {
	// name is what happens, slug the beginning of its namespaces' names.
	name, slug string
	// gpus is how many there are.
	gpus int64
	// prepare is done before the operator starts; nil for nothing.
	prepare func(*environment)
	// setup brings the job to where the story begins; nil if there is no job yet.
	setup func(*environment)
	// action is what happens to the job; it returns when it has happened, whether or not the operator has noticed.
	action func(*environment)
	// sequel is what follows, each part when the operator has come to terms with the one before.
	sequel func(*environment)
	// restarts is how many the job must count at the end, leaves all there must be then.
	restarts int
	leaves   []string
	// shared is true when Volcano may delete what the operator would, so that the operator's deletions vary.
	shared bool
	// deletes is the job that is deleted on the way. The operator or the garbage collector deletes what belongs to it, whoever comes
	// first; it may be seen to go before the job does, and be created once more, unless nothing is created for the job any more.
	deletes     string
	createsOnce bool
	// namesTaken is true when names are somebody else's for a while, so that creations may be refused.
	namesTaken bool
	// runs are the merges in the order in which their runs begin, each as often as it has one; none in a story of jobs.
	runs []string
	// clusterWide is true in a story of what is outside of namespaces, of which the environments of other stories see nothing.
	clusterWide bool
	// rare is true for a story that is told with every fault in the full grid only.
	rare bool
	// verify is what else must hold at the end; nil for nothing.
	verify func(*environment)

	// undisturbed is how the story ends without a fault; it is run once, in a lane, when first asked. Who has a lane may only ask
	// for what was asked before: there might be no other lane.
	undisturbed func() (ending, error)
}

func tell(st story) *story {
	st.undisturbed = sync.OnceValues(func() (end ending, err error) {
		err = abreast(func() error {
			end, err = st.run(suiteContext)
			return err
		})
		return end, err
	})
	return &st
}

// What there is of a job with four workers, and of one that has ended.
var (
	ended    = []string{"ElasticTrainingJob a", "Pod a-worker-0", "Pod a-worker-1", "Pod a-worker-2", "Pod a-worker-3"}
	fullSize = append(slices.Clip(ended), "Service a-workers", "PodGroup a", "PodGroup a-surplus")
)

// stories are those that are told with a crash at each write; rareStories with a few only, outside of the full grid.
var (
	stories     = []*story{growing, givingWay, losing, failing, finishing, scaling, suspending, preempting}
	rareStories = []*story{replacing, saving, restarting, ranging, plain, paging, expiring}
)

var (
	growing = tell(story{
		name: "a job is created, runs and grows", slug: "grow", gpus: 4, leaves: fullSize,
		action: func(env *environment) { env.submit(4) },
		sequel: func(env *environment) { env.trains(4, "the job grows to its maximum") },
	})
	givingWay = tell(story{
		name: "surplus gives way to a gang and grows back", slug: "evict", gpus: 4, leaves: fullSize,
		setup: func(env *environment) { env.runs(4) }, action: evictTwo, sequel: growBack, verify: respectsCooldown,
	})
	losing = tell(story{
		name: "worker 0 is lost", slug: "loss", gpus: 4, restarts: 1, leaves: fullSize,
		setup: func(env *environment) { env.runs(4) }, action: loseWorker0,
		sequel: func(env *environment) {
			env.Eventually(env.Fetch(jobName)).Should(And(testutil.HaveRestarts(1), testutil.Train(4)), "worker 0 is replaced")
		},
	})
	failing = tell(story{
		name: "worker 1 fails", slug: "fail", gpus: 4, restarts: 1, leaves: fullSize,
		setup:  func(env *environment) { env.runs(4) },
		action: func(env *environment) { env.Fail(jobName, 1, 3, "out of luck") },
		sequel: func(env *environment) {
			env.Eventually(env.Fetch(jobName)).Should(And(testutil.HaveRestarts(1), testutil.Train(4)), "worker 1 is replaced")
		},
	})
	finishing = tell(story{
		name: "every worker succeeds, while one still waits for room", slug: "finish", gpus: 3, leaves: ended[:4],
		setup:  func(env *environment) { env.runs(3) },
		action: func(env *environment) { env.Succeed(jobName, 0) },
		sequel: func(env *environment) {
			env.Eventually(env.Fetch(jobName)).Should(testutil.HaveReason(v1beta1.ReasonCompleting), "the job awaits the others")
			env.SucceedAll(jobName)
			env.Eventually(env.Fetch(jobName)).Should(testutil.HavePhase(v1beta1.PhaseSucceeded), "the job succeeds")
		},
	})
	scaling = tell(story{
		name: "a job is scaled from 4 to 2 and back to 4", slug: "scale", gpus: 4, leaves: fullSize,
		setup:  func(env *environment) { env.runs(4) },
		action: func(env *environment) { env.scale(2) },
		sequel: func(env *environment) {
			env.trains(2, "the job shrinks")
			env.Eventually(env.Workers(jobName)).Should(Equal([]int{0, 1}), "the highest indices left")
			env.scale(4)
			env.trains(4, "the job grows again")
		},
	})
	suspending = tell(story{
		name: "a job is suspended and resumed", slug: "suspend", gpus: 4, leaves: fullSize,
		setup:  func(env *environment) { env.runs(4) },
		action: func(env *environment) { env.suspend(true) },
		sequel: func(env *environment) {
			env.Eventually(env.Fetch(jobName)).Should(testutil.HaveReason(v1beta1.ReasonSuspended), "the job holds nothing")
			env.suspend(false)
			env.trains(4, "the job goes on")
		},
	})
	preempting = tell(story{
		name: "a job is stopped whole for a more important one, and goes on", slug: "preempt", gpus: 4, leaves: fullSize,
		shared:  true, // While the operator is down, Volcano takes the surplus for the important job.
		deletes: importantName,
		setup:   func(env *environment) { env.runs(4) },
		action: func(env *environment) {
			env.Submit(env.Job(importantName).Range(4, 4).Tier("main-traffic").Asks("1", "1Gi").Starvation(time.Second))
		},
		sequel: func(env *environment) {
			env.Eventually(env.Fetch(importantName)).Should(testutil.Train(4), "the important job runs")
			env.Eventually(env.Fetch(jobName)).Should(testutil.HaveReason(v1beta1.ReasonPreempted), "the job holds nothing")
			env.DeleteJob(importantName)
			env.trains(4, "the job goes on")
		},
	})
	// life is all stories, one after another.
	life = tell(story{
		name: "a whole life", slug: "life", gpus: 4, restarts: 1, leaves: ended, verify: respectsCooldown,
		action: growing.action,
		sequel: func(env *environment) {
			growing.sequel(env)
			for _, st := range []*story{givingWay, losing, scaling, suspending, finishing} {
				st.action(env)
				st.sequel(env)
			}
		},
	})
)

// cooldown is long enough that a gang which has had its turn is gone before it has passed.
const cooldown = 5 * time.Second

// submit creates the job of the story, for at least 2 workers.
func (env *environment) submit(maximum int32, changes ...func(*v1beta1.ElasticTrainingJob)) {
	b := env.Job(jobName).Range(2, maximum).Cooldown(cooldown)
	for _, change := range changes {
		b.With(change)
	}
	env.Submit(b)
}

// runs creates a job for 2 to 4 workers and returns when it is at rest with so many.
func (env *environment) runs(n int, changes ...func(*v1beta1.ElasticTrainingJob)) {
	env.submit(4, changes...)
	env.trains(n, "the job runs before the story begins")
}

// trains awaits a job that has come to terms with its spec and trains with so many workers.
func (env *environment) trains(n int, why string) {
	env.Eventually(env.Fetch(jobName)).Should(And(testutil.Train(n), Satisfy(upToDate)), why)
}

// upToDate tells whether a job's status speaks of its spec, and of growth that has settled.
func upToDate(job *v1beta1.ElasticTrainingJob) bool {
	return job.Status.ObservedGeneration == job.Generation &&
		testutil.Condition(job, v1beta1.ConditionFullSize).Reason != v1beta1.ReasonGrowing
}

func (env *environment) scale(maximum int) {
	env.patchJob(fmt.Sprintf(`{"spec":{"maxReplicas":%d}}`, maximum))
}

func (env *environment) suspend(yes bool) {
	env.patchJob(fmt.Sprintf(`{"spec":{"suspend":%t}}`, yes))
}

func (env *environment) patchJob(json string) {
	env.Patch(&v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: jobName}}, json)
}

// evictTwo has a gang of two take the place of two surplus workers.
func evictTwo(env *environment) {
	env.Create(plainGang(env.Namespace)...)
	env.Eventually(env.Workers(jobName, testutil.Running)).Should(HaveLen(2), "the surplus gives way")
}

func loseWorker0(env *environment) {
	lost := env.UIDs(jobName)[0]
	env.DeleteWorker(jobName, 0)
	env.Eventually(func() any { return env.UIDs(jobName)[0] }).ShouldNot(Equal(lost), "worker 0 is gone")
}

// growBack has the other job end once it was noticed, and awaits the growth after the cooldown.
func growBack(env *environment) {
	env.Eventually(env.Fetch(jobName)).Should(And(testutil.Train(2), testutil.HaveReason(v1beta1.ReasonCoolingDown)),
		"the job goes on with its core")
	for _, o := range plainGang(env.Namespace) {
		env.Delete(o)
	}
	env.trains(4, "the job grows back")
}

// respectsCooldown checks that no worker came back before the cooldown had passed since it gave way.
func respectsCooldown(env *environment) {
	evictions, err := env.Audit.Select(testutil.ByVolcano, testutil.Doing("delete", "pods"))
	env.Expect(err).NotTo(HaveOccurred(), "the audit log is read")
	env.Expect(evictions).NotTo(BeEmpty(), "Volcano evicts")
	for _, eviction := range evictions {
		since := testutil.From(eviction.Answered)
		back, err := env.Audit.Select(testutil.ByOperator, testutil.Doing("create", "pods"), testutil.To(eviction.Name), since)
		env.Expect(err).NotTo(HaveOccurred(), "the audit log is read")
		env.Expect(back).NotTo(BeEmpty(), eviction.Name+" comes back")
		env.Expect(back[0].Received).To(BeTemporally(">=", eviction.Answered.Add(cooldown)), eviction.Name+" cools down")
	}
}

// plainGang is a gang of two pods of default priority that Tideline knows nothing of.
func plainGang(pool string) []client.Object {
	const name = "other"
	gang := []client.Object{&schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: pool, Name: name}, Spec: schedulingv1beta1.PodGroupSpec{MinMember: 2},
	}}
	for i := range 2 {
		gang = append(gang, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: pool, Name: fmt.Sprintf("%s-%d", name, i),
				Annotations: map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: name},
			},
			Spec: corev1.PodSpec{
				SchedulerName: "volcano", NodeSelector: map[string]string{testutil.PoolLabel: pool},
				Containers: []corev1.Container{{
					Name: name, Image: "registry.example/other:1",
					Resources: corev1.ResourceRequirements{
						Limits: corev1.ResourceList{testutil.GPUResource: *resource.NewQuantity(1, resource.DecimalSI)},
					},
				}},
			},
		})
	}
	return gang
}
