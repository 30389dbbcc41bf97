package mergejob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/elastic"
	"github.com/tideline-io/tideline/internal/gang"
	"github.com/tideline-io/tideline/internal/kube"
	"github.com/tideline-io/tideline/internal/merge"
	"github.com/tideline-io/tideline/internal/mergepod"
)

// fieldManager owns the fields that Tideline patches.
const fieldManager = "tideline"

// problem is the first step of a decision that could not be carried out.
type problem struct {
	kube.Diagnosis
	err error
}

func failed(err error, doing string) *problem {
	if err == nil {
		return nil
	}
	return &problem{Diagnosis: kube.Diagnose(err, doing), err: err}
}

// step is one write for a job of a pool.
type step struct {
	doing string
	do    func(context.Context) error
}

// apply carries out what is decided for one job, in its order, and stops at the first problem.
func (r *Reconciler) apply(ctx context.Context, pool types.NamespacedName, d *merge.JobDecision) *problem {
	for _, s := range r.steps(pool, d) {
		if err := s.do(ctx); err != nil {
			return failed(err, s.doing)
		}
	}
	return nil
}

func (r *Reconciler) steps(pool types.NamespacedName, d *merge.JobDecision) []step {
	name, namespace := d.Job.Object.Name, d.Job.Object.Namespace
	var steps []step
	add := func(doing string, do func(context.Context) error) { steps = append(steps, step{doing, do}) }
	deleted := func(kind string, o client.Object, name string, uid types.UID, options ...client.DeleteOption) {
		o.SetNamespace(namespace)
		o.SetName(name)
		o.SetUID(uid)
		add("delete "+kind+" "+name, func(ctx context.Context) error { return r.delete(ctx, pool, o, options...) })
	}
	created := func(kind string, o client.Object) {
		add("create "+kind+" "+o.GetName(), func(ctx context.Context) error { return r.create(ctx, pool, o) })
	}
	for i := range d.DeletePods {
		w := &d.DeletePods[i]
		deleted("pod", &corev1.Pod{}, mergepod.PodName(name, w.Index), w.UID, client.GracePeriodSeconds(merge.StopGraceSeconds))
	}
	for _, g := range d.DeleteGroups {
		deleted("PodGroup", gang.NewPodGroup(), g.Name, g.UID)
	}
	if d.DeleteList != "" {
		deleted("ConfigMap", &corev1.ConfigMap{}, mergepod.IncrementsName(name), d.DeleteList)
	}
	if d.CreateList != nil {
		created("ConfigMap", d.Blueprint.IncrementsMap(d.CreateList))
	}
	for _, g := range d.CreateGroups {
		created("PodGroup", g.PodGroup())
	}
	for _, restore := range d.RestoreGroups {
		add("restore PodGroup "+restore.Group.Name, func(ctx context.Context) error { return r.restore(ctx, pool, restore) })
	}
	for _, i := range d.CreatePods {
		created("pod", d.Blueprint.Pod(i))
	}
	if d.CreateLast != nil {
		created("PodGroup", d.CreateLast.PodGroup())
	}
	return steps
}

func (r *Reconciler) create(ctx context.Context, pool types.NamespacedName, child client.Object) error {
	if err := r.creator.Create(ctx, child); err != nil {
		return err
	}
	return r.writes.Wrote(pool, child)
}

// delete deletes exactly the object that was observed. One that is gone is no error.
func (r *Reconciler) delete(
	ctx context.Context, pool types.NamespacedName, child client.Object, options ...client.DeleteOption,
) error {
	options = append(options, client.Preconditions{UID: ptr.To(child.GetUID())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	err := r.client.Delete(ctx, child, options...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.writes.Deleted(pool, child)
	return nil
}

// restore applies what Tideline says in a PodGroup that somebody changed.
func (r *Reconciler) restore(ctx context.Context, pool types.NamespacedName, restore elastic.Restore) error {
	content, err := restore.Group.Restore(restore.UID)
	if err != nil {
		return err
	}
	patch := &unstructured.Unstructured{Object: content}
	err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(fieldManager),
		client.ForceOwnership)
	if err != nil {
		return err
	}
	written := gang.NewPodGroup()
	written.SetResourceVersion(patch.GetResourceVersion())
	return r.writes.Wrote(pool, written)
}
