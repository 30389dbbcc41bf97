package elastictrainingjob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/elastic"
	"github.com/tideline-io/tideline/internal/gang"
	"github.com/tideline-io/tideline/internal/kube"
	"github.com/tideline-io/tideline/internal/rendezvous"
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

// apply carries out a decision in its order and stops at the first problem.
func (r *Reconciler) apply(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	for _, step := range []func(context.Context, elastic.Observed, elastic.Decision) *problem{
		r.requestCheckpoint, r.deletePods, r.createService, r.writeHosts, r.createSSHKeys, r.createNetworkPolicy,
		r.createGroups, r.restoreGroups, r.createWorkers, r.deleteGroups, r.deleteService, r.deleteJob,
	} {
		if p := step(ctx, o, d); p != nil {
			return p
		}
	}
	return nil
}

func (r *Reconciler) deletePods(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	for _, w := range d.DeletePods {
		name := rendezvous.WorkerName(o.Job.Name, w.Index)
		if err := r.delete(ctx, o, &corev1.Pod{}, name, w.UID); err != nil {
			return failed(err, "delete pod "+name)
		}
	}
	return nil
}

// requestCheckpoint writes on worker 0's pod, by server-side apply with its UID, what the training is to read.
func (r *Reconciler) requestCheckpoint(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	if d.RequestCheckpoint == nil {
		return nil
	}
	name := rendezvous.WorkerName(o.Job.Name, 0)
	patch := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"namespace": o.Job.Namespace, "name": name, "uid": string(d.RequestCheckpoint.UID),
			"annotations": map[string]any{v1alpha1.AnnotationCheckpointRequested: d.RequestCheckpoint.Value},
		},
	}}
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(fieldManager),
		client.ForceOwnership)
	if err == nil {
		written := &corev1.Pod{}
		written.SetResourceVersion(patch.GetResourceVersion())
		err = r.writes.Wrote(client.ObjectKeyFromObject(o.Job), written)
	}
	return failed(err, "patch pod "+name)
}

func (r *Reconciler) createService(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	if !d.CreateService {
		return nil
	}
	service := d.Blueprint.Service()
	return failed(r.create(ctx, o, service), "create Service "+service.Name)
}

func (r *Reconciler) createGroups(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	for _, g := range d.CreateGroups {
		if err := r.create(ctx, o, g.PodGroup()); err != nil {
			return failed(err, "create PodGroup "+g.Name)
		}
	}
	return nil
}

func (r *Reconciler) restoreGroups(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	for _, restore := range d.RestoreGroups {
		if err := r.restore(ctx, o, restore); err != nil {
			return failed(err, "restore PodGroup "+restore.Group.Name)
		}
	}
	return nil
}

func (r *Reconciler) restore(ctx context.Context, o elastic.Observed, restore elastic.Restore) error {
	content, err := restore.Group.Restore(restore.UID)
	if err != nil {
		return err
	}
	return r.serverSideApply(ctx, o, content, gang.NewPodGroup())
}

// serverSideApply applies fields of an object of the job, with its UID, which the API server refuses for an object created anew
// meanwhile. Written is an empty object of the kind.
func (r *Reconciler) serverSideApply(
	ctx context.Context, o elastic.Observed, content map[string]any, written client.Object,
) error {
	patch := &unstructured.Unstructured{Object: content}
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(fieldManager),
		client.ForceOwnership)
	if err != nil {
		return err
	}
	written.SetResourceVersion(patch.GetResourceVersion())
	return r.writes.Wrote(client.ObjectKeyFromObject(o.Job), written)
}

func (r *Reconciler) createWorkers(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	for _, i := range d.CreateWorkers {
		pod := d.Blueprint.Pod(i)
		if err := r.create(ctx, o, pod); err != nil {
			return failed(err, "create pod "+pod.Name)
		}
	}
	return nil
}

func (r *Reconciler) deleteGroups(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	for _, g := range d.DeleteGroups {
		if err := r.delete(ctx, o, gang.NewPodGroup(), g.Name, g.UID); err != nil {
			return failed(err, "delete PodGroup "+g.Name)
		}
	}
	return nil
}

func (r *Reconciler) deleteService(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	if d.DeleteService == "" {
		return nil
	}
	name := rendezvous.ServiceName(o.Job.Name)
	return failed(r.delete(ctx, o, &corev1.Service{}, name, d.DeleteService), "delete Service "+name)
}

func (r *Reconciler) deleteJob(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	if !d.DeleteJob {
		return nil
	}
	return failed(r.delete(ctx, o, &v1alpha1.ElasticTrainingJob{}, o.Job.Name, o.Job.UID), "delete the job after its time")
}

func (r *Reconciler) create(ctx context.Context, o elastic.Observed, child client.Object) error {
	if err := r.creator.Create(ctx, child); err != nil {
		return err
	}
	return r.writes.Wrote(client.ObjectKeyFromObject(o.Job), child)
}

// delete deletes exactly the object that was observed. One that is gone is no error.
func (r *Reconciler) delete(ctx context.Context, o elastic.Observed, child client.Object, name string, uid types.UID) error {
	child.SetNamespace(o.Job.Namespace)
	child.SetName(name)
	child.SetUID(uid)
	err := r.client.Delete(ctx, child, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.writes.Deleted(client.ObjectKeyFromObject(o.Job), child)
	return nil
}
