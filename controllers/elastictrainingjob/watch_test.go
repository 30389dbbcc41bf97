package elastictrainingjob

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/fairqueue"
)

// At a start all jobs of a namespace are listed; those come first that changed while no operator reconciled.
func TestWhatChangedBeforeAStartComesFirst(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.ElasticTrainingJob){
		"a new job": func(job *v1beta1.ElasticTrainingJob) { job.Status.ObservedGeneration = 0 },
		"a change":  func(job *v1beta1.ElasticTrainingJob) { job.Generation++ },
		"a deletion": func(job *v1beta1.ElasticTrainingJob) {
			job.DeletionTimestamp = &metav1.Time{Time: newClock().now}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			q := fairqueue.NewQueue("", 8, workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			list := func(job *v1beta1.ElasticTrainingJob) {
				listed := event.CreateEvent{Object: job, IsInInitialList: true}
				for _, h := range []handler.EventHandler{&handler.EnqueueRequestForObject{}, changedBeforeStart()} {
					h.Create(t.Context(), listed, q)
				}
			}
			for _, name := range []string{"a", "b", "c"} {
				job := jobNamed(name)
				job.Generation, job.Status.ObservedGeneration = 2, 2
				list(job)
			}
			changed := jobNamed("changed")
			changed.Generation, changed.Status.ObservedGeneration = 2, 2
			change(changed)
			list(changed)
			g.Expect(q.Len()).To(Equal(4), "each once")
			first, _ := q.Get()
			g.Expect(first.NamespacedName).To(Equal(client.ObjectKeyFromObject(changed)))
			q.Done(first)
			second, _ := q.Get()
			g.Expect(second.Name).To(Equal("a"))
		})
	}
}
