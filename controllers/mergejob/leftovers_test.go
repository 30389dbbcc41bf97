package mergejob

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

const testPool = "tideline-merge"

// leftoverCluster is what the caches have, and a clock. Leftovers are judged by the reconciler of an operator that may restart.
type leftoverCluster struct {
	t       *testing.T
	now     time.Time
	objects []client.Object
	r       *Reconciler
}

func newLeftovers(t *testing.T) *leftoverCluster {
	t.Helper()
	c := &leftoverCluster{t: t, now: time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)}
	c.restart()
	return c
}

// restart begins an operator that remembers nothing.
func (c *leftoverCluster) restart() {
	c.r = &Reconciler{departed: newDeparted(func() time.Time { return c.now })}
}

func (c *leftoverCluster) add(objects ...client.Object) { c.objects = append(c.objects, objects...) }

// cached serves what there is as the manager's cache does.
func (c *leftoverCluster) cached() {
	c.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1beta1.AddToScheme, gang.AddToScheme} {
		if err := add(scheme); err != nil {
			c.t.Fatal(err)
		}
	}
	c.r.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).
		WithIndex(&corev1.Pod{}, jobsByModel, modelsOfPod).
		WithIndex(&corev1.Pod{}, kube.PodsByOwner, kube.OwnerUID).
		WithIndex(&v1beta1.MergeJob{}, setAside, func(o client.Object) []string {
			job, _ := o.(*v1beta1.MergeJob)
			return asideIn(job)
		}).
		WithIndex(gang.NewPodGroup(), coreByPool, poolsOfCore).Build()
}

// held has the names of leftovers that keep the job waiting at this moment.
func (c *leftoverCluster) held(job *v1beta1.MergeJob) (strangers, namesakes []string) {
	c.t.Helper()
	c.cached()
	j := &merging.Job{Object: job}
	if err := c.r.observeStrangers(context.Background(), j); err != nil {
		c.t.Fatal(err)
	}
	return c.waited(j.Strangers), c.waited(j.Namesakes)
}

// leaving are the names of the gangs that keep the pool waiting at this moment.
func (c *leftoverCluster) leaving() []string {
	c.t.Helper()
	c.cached()
	o := merging.Observed{Pool: testPool}
	if err := c.r.observeLeaving(context.Background(), &o); err != nil {
		c.t.Fatal(err)
	}
	return c.waited(o.Leaving)
}

func (c *leftoverCluster) waited(all []merging.Leftover) []string {
	var names []string
	for _, l := range all {
		if c.now.Before(l.BlocksUntil()) {
			names = append(names, l.Key.Name)
		}
	}
	return names
}

func mergeOf(namespace, name string, uid types.UID) *v1beta1.MergeJob {
	return &v1beta1.MergeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid},
		Spec: v1beta1.MergeJobSpec{Pool: testPool, Store: v1beta1.ModelStore{
			Type: v1beta1.StoreS3, S3: &v1beta1.S3Store{Bucket: "models"}, Prefix: "ctr", Increments: "inc/", Full: "full/",
		}},
	}
}

// ran gives the job a run.
func ran(job *v1beta1.MergeJob) *v1beta1.MergeJob {
	job.Status.Run, job.Status.Pool = &v1beta1.MergeRun{ID: "r", Attempt: 1, MinReplicas: 1}, job.Spec.Pool
	return job
}

func controlledBy(job *v1beta1.MergeJob) []metav1.OwnerReference {
	return []metav1.OwnerReference{v1beta1.ControllerReference(job, v1beta1.MergeJobKind)}
}

// podOf is a pod with the label and the owner of a job's.
func podOf(job *v1beta1.MergeJob) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: mergepod.PodName(job.Name, 0), UID: "pod-of-" + job.UID, OwnerReferences: controlledBy(job),
		Labels: map[string]string{v1beta1.LabelModelHash: mergepod.ModelHash(job)},
	}}
}

// coreGroupOf is a PodGroup with a finalizer, in the job's pool.
func coreGroupOf(job *v1beta1.MergeJob) client.Object {
	group := gang.Group{
		Namespace: job.Namespace, Name: mergepod.CoreName(job.Name), Owner: controlledBy(job)[0], Queue: job.Spec.Pool,
	}.PodGroup()
	group.SetFinalizers([]string{"example.com/stays"})
	return group
}

// A pod may be given any label, and any owner: what the operator did not see go keeps others waiting for a moment after a start.
func TestForgedPodsHoldNoMergeBack(t *testing.T) {
	g := NewWithT(t)
	c := newLeftovers(t)
	job := mergeOf("ads", "ctr", "1")
	ghost := mergeOf("evil", "x", "ghost")
	live := ran(mergeOf("evil", "own", "2"))
	live.Spec.Store.Prefix = "other" // A model of their own.
	alive := podOf(live)
	alive.Labels[v1beta1.LabelModelHash] = mergepod.ModelHash(job)
	c.add(job, live, podOf(ghost), alive)
	strangers, _ := c.held(job)
	g.Expect(strangers).To(Equal([]string{"x-merge-0"}), "it may be of a MergeJob that went while no operator ran")
	c.now = c.now.Add(2 * time.Minute)
	strangers, _ = c.held(job)
	g.Expect(strangers).To(BeEmpty())
}

func TestForgedPodGroupsStopNoPool(t *testing.T) {
	g := NewWithT(t)
	c := newLeftovers(t)
	ghost := mergeOf("evil", "x", "ghost")
	c.add(coreGroupOf(ghost))
	g.Expect(c.leaving()).To(HaveLen(1))
	c.now = c.now.Add(2 * time.Minute)
	g.Expect(c.leaving()).To(BeEmpty(), "although a finalizer keeps it there")

	// One of a MergeJob that is there, of whatever pool, does not leave.
	live := ran(mergeOf("evil", "own", "2"))
	live.Status.Pool, live.Spec.Pool = "another", "another"
	moved := live.DeepCopy()
	moved.Spec.Pool = testPool
	c.add(live, coreGroupOf(moved))
	c.restart()
	g.Expect(c.leaving()).To(Equal([]string{mergepod.CoreName("x")}))
}

// A MergeJob without a run made no pods, so none of those that name it is its own.
func TestPodsOfAMergeJobWithoutARunAreNone(t *testing.T) {
	g := NewWithT(t)
	c := newLeftovers(t)
	c.now = c.now.Add(time.Hour)
	job, rival := mergeOf("ads", "ctr", "1"), mergeOf("evil", "x", "2")
	c.r.departed.noteGone(rival)
	c.add(job, podOf(rival))
	strangers, _ := c.held(job)
	g.Expect(strangers).To(BeEmpty())
}

func TestPredecessorsKeepOthersWaitingUntilTheyShouldBeGone(t *testing.T) {
	g := NewWithT(t)
	c := newLeftovers(t)
	c.now = c.now.Add(time.Hour) // The operator has long known the MergeJob.
	job, old := mergeOf("ads", "ctr", "1"), ran(mergeOf("other", "old", "2"))
	pod, group := podOf(old), coreGroupOf(old)
	pod.Labels = nil // Whoever may write the pod may take it away.
	c.add(job, pod, group)
	c.r.departed.noteGone(toolscache.DeletedFinalStateUnknown{Obj: old})
	strangers, _ := c.held(job)
	g.Expect(strangers).To(Equal([]string{"old-merge-0"}))
	g.Expect(c.leaving()).To(HaveLen(1))

	pod.Finalizers = []string{"example.com/stays"}
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: c.now.Add(30 * time.Second)}, ptr.To[int64](30)
	group.SetDeletionTimestamp(&metav1.Time{Time: c.now})
	c.now = c.now.Add(89 * time.Second)
	strangers, _ = c.held(job)
	g.Expect(strangers).To(HaveLen(1), "its grace period, and a minute")
	c.now = c.now.Add(time.Second)
	strangers, _ = c.held(job)
	g.Expect(strangers).To(BeEmpty(), "a node that is gone keeps no merge waiting for ever")
	g.Expect(c.leaving()).To(BeEmpty())
}

func TestAYearOfGraceIsNotWaitedForAYear(t *testing.T) {
	g := NewWithT(t)
	c := newLeftovers(t)
	job, old := mergeOf("ads", "ctr", "1"), ran(mergeOf("other", "old", "2"))
	pod := podOf(old)
	pod.Finalizers, pod.DeletionTimestamp = []string{"example.com/stays"}, &metav1.Time{Time: c.now.AddDate(1, 0, 0)}
	old.Finalizers, old.DeletionTimestamp = []string{"foregroundDeletion"}, &metav1.Time{Time: c.now}
	c.add(job, old, pod)
	c.r.departed.rememberDeleting(old)
	strangers, _ := c.held(job)
	g.Expect(strangers).To(HaveLen(1), "its MergeJob is there until it is gone")
	c.now = c.now.Add(time.Hour)
	strangers, _ = c.held(job)
	g.Expect(strangers).To(BeEmpty())
}

func TestRestartedOperatorWaitsForPredecessorsThatItNeverKnew(t *testing.T) {
	g := NewWithT(t)
	c := newLeftovers(t)
	job, other, same := mergeOf("ads", "ctr", "1"), ran(mergeOf("other", "old", "2")), ran(mergeOf("ads", "older", "3"))
	c.add(job, podOf(other), podOf(same), coreGroupOf(other))
	c.r.departed.noteGone(other)
	c.r.departed.noteGone(same)
	c.restart()
	strangers, _ := c.held(job)
	g.Expect(strangers).To(ConsistOf("old-merge-0", "older-merge-0"))
	g.Expect(c.leaving()).To(HaveLen(1))
	c.now = c.now.Add(2 * time.Minute)
	strangers, _ = c.held(job)
	g.Expect(strangers).To(Equal([]string{"older-merge-0"}), "those of the own namespace are written by those who own the model")
	c.now = c.now.Add(8 * time.Minute)
	strangers, _ = c.held(job)
	g.Expect(strangers).To(BeEmpty())
}

func TestPodsThatHaveTheNamesOfTheJobsOwn(t *testing.T) {
	g := NewWithT(t)
	c := newLeftovers(t)
	old, job := ran(mergeOf("ads", "ctr", "1")), mergeOf("ads", "ctr", "2")
	pod := podOf(old)
	pod.Status.Phase = corev1.PodSucceeded // It has the name all the same.
	stray := podOf(old)
	stray.Name, stray.UID = "ctr-merge-x", "stray"
	c.add(job, pod, stray)
	c.r.departed.noteGone(old)
	strangers, namesakes := c.held(job)
	g.Expect(strangers).To(BeEmpty())
	g.Expect(namesakes).To(Equal([]string{"ctr-merge-0"}))
	c.now = c.now.Add(10 * time.Minute)
	_, namesakes = c.held(job)
	g.Expect(namesakes).To(BeEmpty(), "from then on the merge says what to do")
}

func TestDeparturesAreForgotten(t *testing.T) {
	g := NewWithT(t)
	c := newLeftovers(t)
	c.r.departed.noteGone(ran(mergeOf("ads", "a", "1")))
	c.now = c.now.Add(3 * time.Hour)
	c.r.departed.noteGone(ran(mergeOf("ads", "b", "2")))
	g.Expect(c.r.departed.jobs).To(HaveLen(1))
}
