package elastictrainingjob

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training"
)

func TestPodsAreDeletedWithTheGraceThatIsDecided(t *testing.T) {
	g := NewWithT(t)
	graces := map[string]int64{}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			asked := (&client.DeleteOptions{}).ApplyOptions(options)
			g.Expect(asked.Preconditions.UID).To(HaveValue(Equal(o.GetUID())))
			graces[o.GetName()] = *asked.GracePeriodSeconds
			return nil
		},
	}).Build()
	r := &Reconciler{applier: kube.Applier{Creator: kube.Creator{Client: c}, Writes: kube.NewWrites(nil, clientgoscheme.Scheme)}}
	job := &v1alpha1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr"}}
	p := r.deletePods(t.Context(), training.Observed{Job: job}, training.Decision{DeletePods: []podstate.Worker{
		{Index: 1, UID: "u-1", GraceSeconds: 120, Phase: corev1.PodRunning}, {Index: 0, UID: "u-0"},
	}})
	g.Expect(p).To(BeNil())
	g.Expect(graces).To(Equal(map[string]int64{"ctr-worker-1": 120, "ctr-worker-0": 0}))
}
