package arbiter

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil/environ"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// watches are caches that watch a cluster in goroutines of their own, as those of an operator do.
type watches struct {
	cache.Cache // for the methods that the arbiter does not call

	informers map[reflect.Type]toolscache.SharedIndexInformer
	sources   map[reflect.Type]*cachetesting.FakeControllerSource
	// empty is for the kinds that the mirror does not keep.
	empty toolscache.SharedIndexInformer
}

// begin starts a watch of each kind that the mirror keeps; of kinds that it does not keep there are no objects.
func begin(t *testing.T) *watches {
	t.Helper()
	w := &watches{
		informers: map[reflect.Type]toolscache.SharedIndexInformer{}, sources: map[reflect.Type]*cachetesting.FakeControllerSource{},
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	for _, kind := range kinds() {
		of := reflect.TypeOf(kind.list)
		w.sources[of] = cachetesting.NewFakeControllerSource()
		// Objects are repeated each second, which is the least, as caches repeat them every few hours.
		w.informers[of] = toolscache.NewSharedIndexInformer(w.sources[of], nil, time.Second, toolscache.Indexers{})
		informer := w.informers[of]
		running.Go(func() { informer.RunWithContext(t.Context()) })
	}
	w.empty = toolscache.NewSharedIndexInformer(cachetesting.NewFakeControllerSource(), nil, 0, toolscache.Indexers{})
	running.Go(func() { w.empty.RunWithContext(t.Context()) })
	return w
}

// listOf is the list of a kind that the mirror keeps.
func listOf(o client.Object) client.ObjectList {
	switch o.(type) {
	case *corev1.Node:
		return &corev1.NodeList{}
	case *corev1.Pod:
		return &corev1.PodList{}
	case *corev1.PersistentVolumeClaim:
		return &corev1.PersistentVolumeClaimList{}
	case *corev1.PersistentVolume:
		return &corev1.PersistentVolumeList{}
	case *nodev1.RuntimeClass:
		return &nodev1.RuntimeClassList{}
	case *v1beta1.ElasticTrainingJob:
		return &v1beta1.ElasticTrainingJobList{}
	case *v1beta1.MergeJob:
		return &v1beta1.MergeJobList{}
	}
	if reflect.TypeOf(o) == reflect.TypeOf(gang.NewQueue()) {
		return gang.NewQueueList()
	}
	return gang.NewPodGroupList()
}

// GetInformer is that of a cache.
func (w *watches) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	switch o.(type) {
	case *v1beta1.ResourceQuotaProfile, *metav1.PartialObjectMetadata:
		return w.empty, nil
	}
	return w.informers[reflect.TypeOf(listOf(o))], nil
}

// Get is for namespaces and single Queues, which are not asked for here.
func (w *watches) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("objects").GroupResource(), key.Name)
}

// List lists what the caches hold now.
func (w *watches) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	informer, known := w.informers[reflect.TypeOf(list)]
	if !known {
		return nil
	}
	var items []runtime.Object
	for _, o := range informer.GetStore().List() {
		items = append(items, o.(client.Object))
	}
	return meta.SetList(list, items)
}

// follow tells the cluster what has changed on the shelves since it was told last.
func (w *watches) follow(shelves, told map[reflect.Type]shelf) {
	for of, shelf := range shelves {
		source := w.sources[of]
		for key, was := range told[of] {
			if is := shelf[key]; is == nil || is.GetUID() != was.GetUID() {
				source.Delete(was.DeepCopyObject())
				delete(told[of], key)
			}
		}
		for key, is := range shelf {
			switch was := told[of][key]; {
			case was == nil:
				source.Add(is.DeepCopyObject())
			case was != is:
				source.Modify(is.DeepCopyObject())
			}
			told[of][key] = is
		}
	}
}

// TestMirrorOfWatchesThatRun: events arrive in goroutines of several caches while evaluations read and others measure. In the end
// the mirror is the one that is built from nothing.
func TestMirrorOfWatchesThatRun(t *testing.T) {
	g := NewWithT(t)
	w := begin(t)
	random := rand.New(rand.NewPCG(environ.Number(t, "TIDELINE_SEED", 4), 0))
	c, told := newCaches(random), map[reflect.Type]shelf{}
	for of := range w.sources {
		told[of] = shelf{}
	}
	a := New(w, c.arbiter(true).config, func() bool { return true }, nil, c.arbiter(true).log)
	g.Expect(a.WatchCluster(t.Context(), w)).To(Succeed())

	g.Eventually(func() bool {
		m, done, err := a.mirrored(t.Context())
		defer done()
		return err == nil && m == a.mirror
	}).Should(BeTrue(), "the arbiter must go by its mirror")
	ctx, end := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	var failed error
	evaluations := 0
	beside.Go(func() {
		for ; ctx.Err() == nil && failed == nil; evaluations++ {
			_, _, failed = a.decide(ctx, now)
		}
	})
	beside.Go(func() {
		for ctx.Err() == nil {
			if _, err := a.MeasureFragmentation(ctx); err != nil {
				return
			}
		}
	})
	for range 400 {
		for range 5 {
			c.happen()
		}
		w.follow(c.shelves, told)
		if random.IntN(20) == 0 {
			for _, source := range w.sources {
				source.ResetWatch() // What happens until the next watch is seen as a list.
			}
		}
	}
	end()
	beside.Wait()
	g.Expect(failed).NotTo(HaveOccurred())
	g.Expect(evaluations).To(BeNumerically(">", 1))

	g.Eventually(func(g Gomega) {
		for of, shelf := range c.shelves {
			g.Expect(w.informers[of].GetStore().ListKeys()).To(HaveLen(len(shelf)), of.String())
		}
		anew, err := readMirror(t.Context(), w, config.DefaultConfiguration())
		g.Expect(err).NotTo(HaveOccurred())
		m, done, err := a.mirrored(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		defer done()
		g.Expect(m).To(BeIdenticalTo(a.mirror), "the watches have seen all there was")
		have := sumsOf(m)
		for name, sum := range sumsOf(anew) {
			g.Expect(reflect.DeepEqual(have[name], sum)).To(BeTrue(), "the mirror's %s are not those of the caches", name)
		}
	}).WithTimeout(20 * time.Second).Should(Succeed())
}
