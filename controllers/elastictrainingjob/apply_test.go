package elastictrainingjob

import (
	"context"
	"errors"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/test/testutil"
)

func TestPodsAreDeletedWithTheGraceThatIsDecided(t *testing.T) {
	g := NewWithT(t)
	graces, mu := map[string]int64{}, sync.Mutex{}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			asked := (&client.DeleteOptions{}).ApplyOptions(options)
			g.Expect(asked.Preconditions.UID).To(HaveValue(Equal(o.GetUID())))
			mu.Lock()
			defer mu.Unlock()
			graces[o.GetName()] = *asked.GracePeriodSeconds
			return nil
		},
	}).Build()
	r := &Reconciler{children: children{kube.Applier{
		Creator: kube.Creator{Client: c}, Writes: kube.NewWrites(nil, clientgoscheme.Scheme),
	}}}
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr"}}
	p := r.deletePods(t.Context(), jobstate.Observed{Job: job}, training.Decision{DeletePods: []podstate.Worker{
		{Index: 1, Name: "ctr-worker-1", UID: "u-1", GraceSeconds: 120, Phase: corev1.PodRunning}, {Index: 0, Name: "ctr-worker-0",
			UID: "u-0"},
	}})
	g.Expect(p).To(BeNil())
	g.Expect(graces).To(Equal(map[string]int64{"ctr-worker-1": 120, "ctr-worker-0": 0}))
}

// What the API server refuses for each of a thousand pods, it says of the first: a quota, or an admission webhook that is away.
func TestPodsThatAreRefusedAreNotAskedForOneByOne(t *testing.T) {
	g := NewWithT(t)
	asked, mu := []string{}, sync.Mutex{}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, o.GetName())
			if o.GetName() < "ctr-worker-3" {
				o.SetResourceVersion("1")
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("exceeded quota"))
		},
	}).Build()
	scheme := runtime.NewScheme()
	g.Expect(errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme))).To(Succeed())
	r := &Reconciler{children: children{kube.Applier{Creator: kube.Creator{Client: c}, Writes: kube.NewWrites(nil, scheme)}}}
	job := testutil.Job("ctr").Range(100, 100).Obj()
	d := training.Decision{Blueprint: trainingpod.Blueprint{Job: job, Attempt: &v1beta1.AttemptStatus{MinReplicas: 100}}}
	for i := range int32(100) {
		d.CreateWorkers = append(d.CreateWorkers, i)
	}
	p := r.createWorkers(t.Context(), jobstate.Observed{Job: job}, d)
	g.Expect(p).NotTo(BeNil())
	g.Expect(p.Message).To(ContainSubstring("Cannot create pod ctr-worker-3: "), "the earliest that is refused")
	g.Expect(asked).To(ConsistOf("ctr-worker-0", "ctr-worker-1", "ctr-worker-2", "ctr-worker-3", "ctr-worker-4", "ctr-worker-5",
		"ctr-worker-6"), "1, 2 and 4 of the 100")
}
