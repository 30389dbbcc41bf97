package elastictrainingjob

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/test/testutil"
)

// forgetful is a reconciler whose cache has no job, and two pods and a PodGroup of job team/ctr with UID gone.
type forgetful struct {
	*Reconciler
	cached client.WithWatch
	// asked counts questions to the API server about the job, and answer is what it says of it; nil for what there is.
	asked  int
	answer error
	// deleted are the preconditions and grace periods of deletions, and refusal is what the API server answers them; nil for yes.
	mu      sync.Mutex
	deleted []client.DeleteOptions
	refusal error
	// lags is true while the cache does not see deletions.
	lags bool
}

// late is a cache of which only single objects are read.
type late struct {
	cache.Cache

	reader client.Reader
}

// Get implements client.Reader.
func (l late) Get(ctx context.Context, key client.ObjectKey, o client.Object, of ...client.GetOption) error {
	return l.reader.Get(ctx, key, o, of...)
}

var ctr = types.NamespacedName{Namespace: "team", Name: "ctr"}

// forgetting returns one for an API server that has these jobs.
func forgetting(t *testing.T, there ...client.Object) *forgetful {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1beta1.AddToScheme, gang.AddToScheme,
	} {
		g.Expect(add(scheme)).To(Succeed())
	}
	f := &forgetful{}
	f.cached = fake.NewClientBuilder().WithScheme(scheme).WithIndex(&corev1.Pod{}, kube.PodsByOwner, kube.OwnerUID).
		WithObjects(parts()...).Build()
	live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, of ...client.GetOption) error {
			f.asked++
			if f.answer != nil {
				return f.answer
			}
			return c.Get(ctx, key, o, of...)
		},
	})
	deleting := interceptor.NewClient(f.cached, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, of ...client.DeleteOption) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.deleted = append(f.deleted, *(&client.DeleteOptions{}).ApplyOptions(of))
			if f.refusal != nil || f.lags {
				return f.refusal
			}
			return c.Delete(ctx, o)
		},
	})
	writes := kube.NewWrites(late{reader: f.cached}, scheme)
	now := time.Now
	f.Reconciler = &Reconciler{
		Dependencies: Dependencies{Volcano: &kube.Kinds{}}, client: deleting, memory: newMemory(), outages: newOutages(),
		children: children{kube.Applier{Creator: kube.Creator{Client: deleting, Live: live}, Writes: writes}},
		pacer:    kube.NewPacer(), metrics: newMetrics(nil, now, nil, nil, nil), trainings: newTrainings(t.Context(), now),
		suspects: newSuspects(now), pages: newPageServer(deleting, children{}, nil), now: now,
	}
	for _, o := range parts() {
		f.see(o)
	}
	return f
}

// see has the operator see a pod.
func (f *forgetful) see(o client.Object) {
	if job, owner, ok := jobOf(o); ok && o.GetName() != ctr.Name {
		f.memory.noteSeen(job, owner, o.GetUID(), podstate.Worker{})
	}
}

// parts are the objects of job team/ctr with UID gone.
func parts() []client.Object {
	all := []client.Object{&corev1.Pod{}, &corev1.Pod{}, gang.NewPodGroup()}
	for i, name := range []string{"ctr-worker-0", "ctr-worker-1", "ctr"} {
		all[i].SetNamespace(ctr.Namespace)
		all[i].SetName(name)
		all[i].SetUID(types.UID(name))
		all[i].SetOwnerReferences([]metav1.OwnerReference{ownedBy(ctr.Name, "gone")})
	}
	return all
}

func ownedBy(name string, uid types.UID) metav1.OwnerReference {
	return v1beta1.ControllerReference(jobWith(name, uid), v1beta1.ElasticTrainingJobKind)
}

func jobWith(name string, uid types.UID) *v1beta1.ElasticTrainingJob {
	job := testutil.Job(name).In(ctr.Namespace).Obj()
	job.UID = uid
	return job
}

// change has an object of the cache be another.
func (f *forgetful) change(t *testing.T, o client.Object, change func()) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(f.cached.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	change()
	g.Expect(f.cached.Update(t.Context(), o)).To(Succeed())
}

// left are the names of pods and PodGroups that are there.
func (f *forgetful) left(t *testing.T) (names []string) {
	t.Helper()
	g := NewWithT(t)
	for _, list := range []client.ObjectList{&corev1.PodList{}, gang.NewPodGroupList()} {
		g.Expect(f.cached.List(t.Context(), list)).To(Succeed())
		g.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			one, err := meta.Accessor(o)
			if err == nil {
				names = append(names, one.GetName())
			}
			return err
		})).To(Succeed())
	}
	return names
}

var (
	done  = reconcile.Result{}
	again = reconcile.Result{RequeueAfter: kube.StaleInterval}
)

func TestWhatADeletedJobLeftIsDeletedAtOnce(t *testing.T) {
	g := NewWithT(t)
	f := forgetting(t)
	pod := &corev1.Pod{}
	pod.SetNamespace(ctr.Namespace)
	pod.SetName("ctr-worker-0")
	f.change(t, pod, func() { pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600) })
	g.Expect(f.forgetJob(t.Context(), ctr)).To(Equal(done))
	g.Expect(f.left(t)).To(BeEmpty())
	graces := func(o client.DeleteOptions) int64 { return ptr.Deref(o.GracePeriodSeconds, -1) }
	g.Expect(f.deleted).To(ConsistOf(WithTransform(graces, BeEquivalentTo(120)), WithTransform(graces, BeEquivalentTo(30)),
		WithTransform(graces, BeEquivalentTo(-1))), "an hour is two minutes")
	g.Expect(f.memory.ownersOf(ctr)).NotTo(BeEmpty(), "until the watches say that its pods are gone")
	g.Expect(f.forgetJob(t.Context(), ctr)).To(Equal(done))
	g.Expect(f.memory.jobs).To(BeEmpty())
	g.Expect(f.asked).To(Equal(1), "nothing is asked again once nothing is left")
}

func TestADeletionIsNotAskedForAgainBeforeTheCacheHasSeenIt(t *testing.T) {
	g := NewWithT(t)
	f := forgetting(t)
	f.lags = true
	g.Expect(f.Reconcile(t.Context(), reconcile.Request{NamespacedName: ctr})).To(Equal(done))
	g.Expect(f.Reconcile(t.Context(), reconcile.Request{NamespacedName: ctr})).To(Equal(again))
	g.Expect(f.deleted).To(HaveLen(3))
	for _, o := range parts() {
		g.Expect(f.cached.Delete(t.Context(), o)).To(Succeed())
	}
	g.Expect(f.Reconcile(t.Context(), reconcile.Request{NamespacedName: ctr})).To(Equal(done))
	g.Expect(f.memory.jobs).To(BeEmpty())
	g.Expect(f.asked).To(Equal(1))
}

func TestPodGroupsOfADeletedJobAreFoundWithoutPods(t *testing.T) {
	g := NewWithT(t)
	f := forgetting(t)
	f.memory = newMemory()
	g.Expect(f.forgetJob(t.Context(), ctr)).To(Equal(done))
	g.Expect(f.left(t)).To(BeEmpty(), "pods too, after a start of the operator")
}

func TestOfAJobThatIsThereNothingIsDeleted(t *testing.T) {
	g := NewWithT(t)
	f := forgetting(t, jobWith(ctr.Name, "gone"))
	g.Expect(f.forgetJob(t.Context(), ctr)).To(Equal(again), "the cache of jobs lags")
	g.Expect(f.left(t)).To(HaveLen(3))

	f = forgetting(t, jobWith(ctr.Name, "another"))
	g.Expect(f.forgetJob(t.Context(), ctr)).To(Equal(done))
	g.Expect(f.left(t)).To(BeEmpty(), "what is there is a later job of the same name")

	f = forgetting(t)
	for _, answer := range []error{
		apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, true),
		apierrors.NewServiceUnavailable("not now"),
	} {
		f.answer = answer
		_, err := f.forgetJob(t.Context(), ctr)
		g.Expect(err).To(MatchError(answer))
		g.Expect(f.left(t)).To(HaveLen(3), "who does not serve the kind knows nothing of the job")
	}
}

// A pod that claims to be of a job that does not exist, by the UID of one that does, is no reason to delete that job's pods.
func TestForgedOwnersOfPodsHurtOnlyThem(t *testing.T) {
	g := NewWithT(t)
	f := forgetting(t, jobWith(ctr.Name, "gone"))
	forged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: ctr.Namespace, Name: "forged", UID: "forged", OwnerReferences: []metav1.OwnerReference{ownedBy("ghost", "gone")},
	}}
	g.Expect(f.cached.Create(t.Context(), forged)).To(Succeed())
	f.see(forged)
	ghost := types.NamespacedName{Namespace: ctr.Namespace, Name: "ghost"}
	g.Expect(f.forgetJob(t.Context(), ghost)).To(Equal(done))
	g.Expect(f.left(t)).To(ConsistOf("ctr-worker-0", "ctr-worker-1", "ctr"))
}

func TestWhatHasOtherOwnersOrNoneStays(t *testing.T) {
	g := NewWithT(t)
	f := forgetting(t)
	all := parts()
	f.change(t, all[1], func() { all[1].SetOwnerReferences(nil) })
	f.change(t, all[2], func() {
		all[2].SetOwnerReferences(append(all[2].GetOwnerReferences(), metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: "keeps", UID: "keeps",
		}))
	})
	g.Expect(f.forgetJob(t.Context(), ctr)).To(Equal(done))
	g.Expect(f.left(t)).To(ConsistOf("ctr-worker-1", "ctr"))
}

// With --cascade=orphan the owner is taken away, and a cache may not have seen it when it has seen that the job is gone.
func TestWhatChangedSinceIsLookedAtAgain(t *testing.T) {
	g := NewWithT(t)
	f := forgetting(t)
	f.refusal = apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "ctr-worker-0", nil)
	g.Expect(f.forgetJob(t.Context(), ctr)).To(Equal(again))
	g.Expect(f.deleted).To(HaveLen(3), "each is tried")
	for _, o := range f.deleted {
		g.Expect(*o.Preconditions.UID).NotTo(BeEmpty())
		g.Expect(*o.Preconditions.ResourceVersion).To(Equal("999"), "as the cache has it")
	}
	f.refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "ctr-worker-0", errors.New("a policy says no"))
	_, err := f.forgetJob(t.Context(), ctr)
	g.Expect(err).To(MatchError(ContainSubstring("a policy says no")))
	g.Expect(f.memory.ownersOf(ctr)).NotTo(BeEmpty(), "it is tried again")
}
