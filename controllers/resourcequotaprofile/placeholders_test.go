package resourcequotaprofile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota"
)

// training is one of the name that the reservation of the test is for, with its gang.
func training(namespace string, change func(*v1beta1.ElasticTrainingJob, *gang.Group)) []client.Object {
	job := &v1beta1.ElasticTrainingJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "launch", UID: types.UID(namespace), CreationTimestamp: metav1.NewTime(now),
		},
		Spec: v1beta1.ElasticTrainingJobSpec{Owner: "alice"},
		Status: v1beta1.ElasticTrainingJobStatus{
			Reason: v1beta1.ReasonQueued, Message: "Place 1 of 1.",
		},
	}
	group := gang.Group{Namespace: namespace, Name: gang.CoreName("launch"), MinMember: 2}
	change(job, &group)
	pg := group.PodGroup()
	owner := new(v1beta1.ControllerReference(job, v1beta1.ElasticTrainingJobKind))
	pg.SetOwnerReferences([]metav1.OwnerReference{*owner})
	if group.MinMember == 0 {
		return []client.Object{job}
	}
	return []client.Object{job, pg}
}

func TestTasksAreReadWithOwnerAndClaim(t *testing.T) {
	g := NewWithT(t)
	var objects []client.Object
	add := func(namespace string, change func(*v1beta1.ElasticTrainingJob, *gang.Group)) {
		objects = append(objects, training(namespace, change)...)
	}
	add("asks", func(_ *v1beta1.ElasticTrainingJob, group *gang.Group) { group.PriorityClass = config.HandoverClass })
	add("claims", func(*v1beta1.ElasticTrainingJob, *gang.Group) {})
	add("claims-without-gang", func(_ *v1beta1.ElasticTrainingJob, group *gang.Group) { group.MinMember = 0 })
	add("ended", func(job *v1beta1.ElasticTrainingJob, _ *gang.Group) {
		job.Status.CompletionTime = &job.CreationTimestamp
	})
	add("idle", func(job *v1beta1.ElasticTrainingJob, _ *gang.Group) {
		job.Spec.Owner, job.Status.Reason, job.Status.Message = "bob", v1beta1.ReasonSchedulingGated, "Worker 0 carries a gate."
	})
	add("new", func(*v1beta1.ElasticTrainingJob, *gang.Group) {})
	add("other", func(job *v1beta1.ElasticTrainingJob, _ *gang.Group) { job.Name = "other" })
	add("started", func(job *v1beta1.ElasticTrainingJob, _ *gang.Group) { job.Status.StartTime = &job.CreationTimestamp })
	claims := map[string]bool{
		"asks": true, "claims": true, "claims-without-gang": true, "ended": true, "idle": false, "other": true, "started": false,
	}
	scheme := runtime.NewScheme()
	g.Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
	g.Expect(gang.AddToScheme(scheme)).To(Succeed())
	r := &Reconciler{
		Dependencies: Dependencies{Arbiter: &claimsOfNamespaces{claims: claims}},
		client:       fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
	}
	profile := &v1beta1.ResourceQuotaProfile{}
	profile.Spec.Reservations = []v1beta1.ProfileReservation{{Name: "room", JobRef: v1beta1.ObjectRef{Name: "launch"},
		Owner: "alice"}}
	o := quota.Observed{Profiles: []quota.Profile{{Object: profile}}}
	g.Expect(r.observeTasks(t.Context(), &o)).To(Succeed())
	task := func(namespace string, change func(*quota.Task)) quota.Task {
		t := quota.Task{
			Namespace: namespace, Name: "launch", Owner: "alice", Created: now, Reason: v1beta1.ReasonQueued, Message: "Place 1 of 1.",
		}
		change(&t)
		return t
	}
	for i := range o.Tasks {
		o.Tasks[i].Created = o.Tasks[i].Created.In(time.UTC)
	}
	g.Expect(o.Tasks).To(ConsistOf(
		task("asks", func(t *quota.Task) { t.Claims, t.Asks = true, true }),
		task("claims", func(t *quota.Task) { t.Claims = true }),
		task("claims-without-gang", func(*quota.Task) {}),
		task("idle", func(t *quota.Task) {
			t.Owner, t.Reason, t.Message = "bob", v1beta1.ReasonSchedulingGated, "Worker 0 carries a gate."
		}),
		task("new", func(t *quota.Task) { t.Unjudged = true }),
		task("started", func(t *quota.Task) { t.Placed = true }),
	))
}

// claimsOfNamespaces is an arbiter that knows of claims only, by namespace.
type claimsOfNamespaces struct {
	Arbiter

	claims map[string]bool
}

func (a *claimsOfNamespaces) IsClaiming(training types.NamespacedName) (claims, judged bool) {
	claims, judged = a.claims[training.Namespace]
	return claims, judged
}
