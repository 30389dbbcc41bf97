package elastictrainingjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/elastic"
	"github.com/tideline-io/tideline/internal/gang"
	"github.com/tideline-io/tideline/internal/rendezvous"
)

// observe reads what Plan needs, from caches only.
func (r *Reconciler) observe(ctx context.Context, job *v1alpha1.ElasticTrainingJob) (elastic.Observed, error) {
	key := client.ObjectKeyFromObject(job)
	o := elastic.Observed{
		Job: job, Tiers: r.tiers, VolcanoMissing: r.volcano.Missing(), Departures: r.memory.departures(key, job.UID),
	}
	var err error
	if o.Invalid, err = r.memory.check(ctx, r.guard, job); err != nil {
		return o, err
	}
	if o.Workers, err = r.workers(ctx, job); err != nil {
		return o, err
	}
	service := &corev1.Service{}
	found, err := r.owned(ctx, job, rendezvous.ServiceName(job.Name), service)
	if err != nil {
		return o, err
	}
	if found && service.DeletionTimestamp == nil {
		o.Service = service.UID
	}
	if o.Queue.Name, err = r.queueName(ctx, job); err != nil || o.VolcanoMissing != "" {
		return o, err
	}
	if o.Core, err = r.group(ctx, job, gang.CoreName(job.Name)); err != nil {
		return o, err
	}
	if o.Surplus, err = r.group(ctx, job, gang.SurplusName(job.Name)); err != nil {
		return o, err
	}
	queue := gang.NewQueue()
	switch err = r.client.Get(ctx, client.ObjectKey{Name: o.Queue.Name}, queue); {
	case apierrors.IsNotFound(err):
		o.Queue.Missing = true
	case err != nil:
		return o, fmt.Errorf("read Queue %s: %w", o.Queue.Name, err)
	default:
		o.Queue.State = gang.QueueState(queue)
	}
	return o, nil
}

func (r *Reconciler) workers(ctx context.Context, job *v1alpha1.ElasticTrainingJob) ([]elastic.Worker, error) {
	pods := &corev1.PodList{}
	err := r.client.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingFields{podsByOwner: string(job.UID)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the worker pods: %w", err)
	}
	workers := make([]elastic.Worker, 0, len(pods.Items))
	for i := range pods.Items {
		if w, ok := elastic.WorkerOf(&pods.Items[i]); ok {
			workers = append(workers, w)
		}
	}
	return workers, nil
}

// owned reads a child by its name, and is false for an object that is not there or belongs to somebody else.
func (r *Reconciler) owned(
	ctx context.Context, job *v1alpha1.ElasticTrainingJob, name string, child client.Object,
) (bool, error) {
	err := r.client.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, child)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", child, name, err)
	}
	return metav1.IsControlledBy(child, job), nil
}

func (r *Reconciler) group(ctx context.Context, job *v1alpha1.ElasticTrainingJob, name string) (*gang.State, error) {
	podGroup := gang.NewPodGroup()
	found, err := r.owned(ctx, job, name, podGroup)
	if !found || err != nil || podGroup.GetDeletionTimestamp() != nil {
		return nil, err
	}
	state := gang.StateOf(podGroup)
	return &state, nil
}

// queueName is the queue that a new gang joins: the one that the namespace names by Volcano's own annotation, or default.
func (r *Reconciler) queueName(ctx context.Context, job *v1alpha1.ElasticTrainingJob) (string, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.client.Get(ctx, client.ObjectKey{Name: job.Namespace}, namespace); err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("read namespace %s: %w", job.Namespace, err)
	}
	if name := namespace.Annotations[gang.QueueAnnotation]; name != "" {
		return name, nil
	}
	return gang.DefaultQueue, nil
}
