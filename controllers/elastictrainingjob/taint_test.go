package elastictrainingjob

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/suspicion"
)

func TestANodeIsTaintedOnlyIfTheConfigurationSaysSo(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n0", nil)
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n0", nil)
	for name, c := range map[string]struct {
		configured bool
		nodes      int
		tainted    []int
		refuse     error
		sets, done bool
		says       string
	}{
		"it does not":              {configured: false, nodes: 40, done: true, says: "kubectl taint node n0"},
		"it does":                  {configured: true, nodes: 40, sets: true, done: true, says: "The operator has set it"},
		"one of few nodes":         {configured: true, nodes: 2, sets: true, done: true, says: "The operator has set it"},
		"enough have it":           {configured: true, nodes: 40, tainted: []int{1, 2}, done: true, says: "2 of 40 nodes have it"},
		"it has it":                {configured: true, nodes: 40, tainted: []int{0}, sets: true, done: true, says: "It has this taint"},
		"without the component":    {configured: true, nodes: 40, refuse: forbidden, done: true, says: "components/node-taints"},
		"another changes the node": {configured: true, nodes: 40, refuse: conflict},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
			build := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, to client.WithWatch, o client.Object, p client.Patch, with ...client.PatchOption) error {
					if c.refuse != nil {
						return c.refuse
					}
					return to.Patch(ctx, o, p, with...)
				},
			})
			for i := range c.nodes {
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
				node.Spec.Taints = []corev1.Taint{{Key: "of-others", Effect: corev1.TaintEffectNoExecute}}
				for _, has := range c.tainted {
					if has == i {
						node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taintKey, Effect: corev1.TaintEffectNoSchedule})
					}
				}
				build = build.WithObjects(node)
			}
			told := events.NewFakeRecorder(10)
			cfg := config.DefaultConfiguration()
			cfg.Nodes.TaintSuspects = c.configured
			r := &Reconciler{client: build.Build(), recorder: told, config: cfg}
			g.Expect(r.accuse(t.Context(), suspicion.Suspect{Node: "n0", Level: suspicion.Accused, Owners: 2, Tasks: 2})).To(Equal(c.done))
			node := &corev1.Node{}
			g.Expect(r.client.Get(t.Context(), client.ObjectKey{Name: "n0"}, node)).To(Succeed())
			g.Expect(isTainted(node)).To(Equal(c.sets))
			g.Expect(node.Spec.Taints).To(ContainElement(HaveField("Key", "of-others")), "what others set stays")
			if c.says == "" {
				g.Expect(told.Events).To(BeEmpty(), "it is tried again")
				return
			}
			g.Expect(<-told.Events).To(ContainSubstring(c.says))
		})
	}
}
