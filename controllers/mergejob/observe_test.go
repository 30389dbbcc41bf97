package mergejob

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
)

// Whoever names one model in hundreds of MergeJobs must not have the operator compare each with each.
func TestMergeJobsOfAModelAreListedOncePerPlace(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
	listed, objects := 0, []client.Object{}
	for i := range 20 {
		job := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: fmt.Sprint("m", i)}}
		job.Spec.Store = v1beta1.ModelStore{
			Type: v1beta1.StoreS3, S3: &v1beta1.S3Store{Bucket: "models"}, Increments: "inc/", Full: "full/",
		}
		objects = append(objects, job)
	}
	r := &Reconciler{departed: newDeparted(time.Now)}
	r.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, jobsByModel, modelsOfPod).
		WithIndex(&v1beta1.MergeJob{}, jobsByModel, func(o client.Object) []string {
			job, _ := o.(*v1beta1.MergeJob)
			return mergepod.PlaceHashes(job)
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*v1beta1.MergeJobList); ok {
					listed++
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
	read := places{}
	for _, o := range objects {
		object, _ := o.(*v1beta1.MergeJob)
		job := &merging.Job{Object: object}
		g.Expect(r.observeRivals(t.Context(), job, read)).To(Succeed())
		g.Expect(job.Rivals).To(Or(HaveLen(1), HaveLen(2)))
	}
	g.Expect(listed).To(Equal(2), "once for the full models, and once for the increments")
}
