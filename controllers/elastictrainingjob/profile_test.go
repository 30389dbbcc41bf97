package elastictrainingjob

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestAProfileWakesTheJobsOfItsNamespaces(t *testing.T) {
	namespace := func(name, team string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
	}
	profile := func(selects map[string]string) *v1beta1.ResourceQuotaProfile {
		p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		p.Spec.NamespaceSelector.MatchLabels = selects
		return p
	}
	ads, search := map[string]string{"team": "ads"}, map[string]string{"team": "search"}
	for name, c := range map[string]struct {
		old, now map[string]string
		wakes    []string
	}{
		"one that stays":                {ads, ads, []string{"ads-a", "ads-b"}},
		"one that selects others":       {ads, search, []string{"ads-a", "ads-b", "search"}},
		"one that selects no namespace": {map[string]string{}, map[string]string{}, nil},
		"one that comes":                {nil, ads, []string{"ads-a", "ads-b"}},
		"one that goes":                 {search, nil, []string{"search"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
				namespace("ads-a", "ads"), namespace("ads-b", "ads"), namespace("search", "search"), namespace("other", "")).Build()
			// In each namespace there is a job of its name.
			asked := func(_ context.Context, of ...client.ListOption) []reconcile.Request {
				options := &client.ListOptions{}
				options.ApplyOptions(of)
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: options.Namespace, Name: "job"}}}
			}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			wakes := besideProfile(reader, asked)
			switch {
			case c.old == nil:
				wakes.Create(t.Context(), event.CreateEvent{Object: profile(c.now)}, queue)
			case c.now == nil:
				wakes.Delete(t.Context(), event.DeleteEvent{Object: profile(c.old)}, queue)
			default:
				wakes.Update(t.Context(), event.UpdateEvent{ObjectOld: profile(c.old), ObjectNew: profile(c.now)}, queue)
			}
			var woken []string
			for queue.Len() > 0 {
				request, _ := queue.Get()
				woken = append(woken, request.Namespace)
				queue.Done(request)
			}
			g.Expect(woken).To(ConsistOf(c.wakes))
		})
	}
}
