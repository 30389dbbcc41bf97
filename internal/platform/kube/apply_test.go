package kube

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// cacheAt is a cache of jobs as of a version.
type cacheAt struct {
	cache.Cache
	jobs    client.Reader
	version string
}

func (c cacheAt) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return c.jobs.Get(ctx, key, o, options...)
}

func (c cacheAt) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return informerAt{version: c.version}, nil
}

type informerAt struct {
	toolscache.SharedIndexInformer
	version string
}

func (i informerAt) GetStore() toolscache.Store { return storeAt{version: i.version} }

type storeAt struct {
	toolscache.Store
	version string
}

func (s storeAt) LastStoreSyncResourceVersion() string { return s.version }

func TestAJobThatChangedMeanwhileIsLeftAloneUntilTheCacheKnows(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
	job := func(uid types.UID, version string) *v1beta1.ElasticTrainingJob {
		return &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: "ctr", UID: uid, ResourceVersion: version,
		}}
	}
	known := func(jobs ...client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(jobs...).Build()
	}
	for name, c := range map[string]struct {
		live, cached client.Client
		version      string
		goesOn       bool
	}{
		"changed":                      {known(job("u-1", "7")), known(job("u-1", "5")), "5", false},
		"changed, and the cache knows": {known(job("u-1", "7")), known(job("u-1", "7")), "7", true},
		"not changed at all":           {known(job("u-1", "5")), known(job("u-1", "5")), "5", true},
		"created anew":                 {known(job("u-2", "8")), known(job("u-1", "5")), "6", false},
		"deleted":                      {known(), known(job("u-1", "5")), "6", false},
		"deleted, and the cache knows": {known(), known(), "7", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := Applier{
				Creator: Creator{Live: c.live},
				Writes:  NewWrites(cacheAt{jobs: c.cached, version: c.version}, scheme),
			}
			key := types.NamespacedName{Namespace: "ads", Name: "ctr"}
			g.Expect(a.CatchUp(t.Context(), key, job("u-1", "5"), &v1beta1.ElasticTrainingJob{})).To(Succeed())
			g.Expect(a.Writes.HasSeenAll(t.Context(), key)).To(Equal(c.goesOn))
		})
	}
}

func TestAStatusIsPatchedWithoutTheRestOfTheObject(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "p", ResourceVersion: "7"}}
	pod.Spec.NodeName = strings.Repeat("n", 1000)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Message: "waits", Reason: "Stays"}
	wanted := pod.Status.DeepCopy()
	wanted.Phase, wanted.Message = corev1.PodRunning, ""
	var sent string
	var answer client.Object
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(
		_ context.Context, _ client.Client, sub string, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
	) error {
		content, err := patch.Data(o)
		sent, answer = sub+" "+string(content), o
		o.SetResourceVersion("8")
		return err
	}}).Build()
	a := Applier{Creator: Creator{Client: c}, Writes: NewWrites(nil, c.Scheme())}
	g.Expect(a.PatchStatus(t.Context(), types.NamespacedName{Name: "owner"}, pod, &pod.Status, wanted)).To(Succeed())
	g.Expect(sent).To(Equal(`status {"metadata":{"resourceVersion":"7"},"status":{"message":null,"phase":"Running"}}`))
	g.Expect(answer).To(BeAssignableToTypeOf(&metav1.PartialObjectMetadata{}), "and the API server answers with no more")
	g.Expect(a.Writes.recordOf(types.NamespacedName{Name: "owner"}).written).To(HaveKeyWithValue(
		corev1.SchemeGroupVersion.WithKind("Pod"), write{kind: &corev1.Pod{}, version: "8"}))
}
