package elastictrainingjob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/volcano"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// observe reads what Plan needs, from caches only. It returns false if a pod is gone and it is not known yet how it ended.
func (r *Reconciler) observe(ctx context.Context, job *v1beta1.ElasticTrainingJob) (jobstate.Observed, bool, error) {
	o := jobstate.Observed{
		Job: job, Config: r.config, WebhooksOff: !r.config.Webhooks.Enabled, VolcanoMissing: r.Volcano.MissingKinds(),
		Verdict: r.Arbiter.VerdictFor(client.ObjectKeyFromObject(job)), Turn: r.Arbiter.TurnOf(client.ObjectKeyFromObject(job)),
	}
	if r.Usage.IsCollecting() {
		known := r.Usage.TaskHistory(job.Namespace, v1beta1.ElasticTrainingJobKind, trainingpod.TaskOf(job))
		o.History = &known
	}
	var err error
	if o.Invalid, err = r.memory.validateSpec(ctx, r.guard, job); err != nil {
		return o, false, err
	}
	if o.SchedulerObstacles, err = r.Scheduler.ListObstacles(ctx); err != nil {
		return o, false, err
	}
	if o.Claims, err = r.Claims.ClaimsOf(ctx, job.Namespace, &job.Spec.Template.Spec); err != nil {
		return o, false, err
	}
	var listed map[types.UID]bool
	if o.Workers, listed, err = r.readWorkers(ctx, job); err != nil {
		return o, false, err
	}
	var complete bool
	// After the list: whatever it lacks is then known to be gone, or not known yet.
	if o.Departures, complete = r.memory.unsettled(job, listed); !complete {
		return o, false, nil
	}
	o.PutBack = r.memory.putBackOn(job)
	if o.Near, err = r.observeTopology(ctx, job, o.Workers); err != nil {
		return o, false, err
	}
	if err := r.observeStepHosts(ctx, &o); err != nil {
		return o, false, err
	}
	if o.Unreachable, err = r.readSilentNodes(ctx, o.Workers); err != nil {
		return o, false, err
	}
	service := &corev1.Service{}
	found, err := kube.IsOwned(ctx, r.client, job, rendezvous.ServiceName(job.Name), service)
	if err != nil {
		return o, false, err
	}
	if found && service.DeletionTimestamp == nil {
		o.Service = service.UID
	}
	if err := r.observeHosts(ctx, &o); err != nil {
		return o, false, err
	}
	if err := r.pages.observe(ctx, &o); err != nil {
		return o, false, err
	}
	if err := r.observeGang(ctx, &o); err != nil {
		return o, false, err
	}
	if o.LackingClaims, err = lackingClaims(ctx, r.client, &o); err != nil {
		return o, false, err
	}
	// From here on the job's queue is known.
	r.observeGrowth(&o)
	core, surplus := describe.HeldGPUs(job, &job.Status, o.Claims.Count().Devices)
	o.Doubted, o.Shunned = r.suspects.observe(job, o.Workers, o.WebhooksOff)
	o.Trained = r.trainings.observe(job, o.Queue.Name, o.Workers, core+surplus)
	return o, true, nil
}

// observeGrowth reads what decides whether it pays to grow.
func (r *Reconciler) observeGrowth(o *jobstate.Observed) {
	o.MeasuredOutage, o.Measurements = r.outages.read(o.Job)
	if canGrow(o.Job) {
		o.Stay = r.Journal.StayIn(o.Queue.Name)
		task := trainingpod.TaskOf(o.Job)
		o.TaskOutage, _ = r.Journal.OutageOf(o.Job.Namespace, task)
		o.TaskSpeeds = r.Journal.SpeedsOf(o.Job.Namespace, task)
	}
}

// observeGang reads the job's PodGroups and its Queue, if the API server serves Volcano's kinds.
func (r *Reconciler) observeGang(ctx context.Context, o *jobstate.Observed) error {
	var err error
	if err = r.observeProfile(ctx, o); err != nil || o.VolcanoMissing != "" {
		return err
	}
	if o.Core, err = volcano.ReadGroup(ctx, r.client, o.Job, gang.CoreName(o.Job.Name)); err != nil {
		return err
	}
	if o.Surplus, err = volcano.ReadGroup(ctx, r.client, o.Job, gang.SurplusName(o.Job.Name)); err != nil {
		return err
	}
	if o.Core != nil {
		o.Queue.Name = o.Core.Queue // A gang stays in the queue it joined.
	}
	queue := gang.NewQueue()
	switch err = r.client.Get(ctx, client.ObjectKey{Name: o.Queue.Name}, queue, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		o.Queue.Missing = true
	case err != nil:
		return fmt.Errorf("read Queue %s: %w", o.Queue.Name, err)
	default:
		o.Queue.State = gang.QueueState(queue)
	}
	return nil
}

// readWorkers reads the job's worker pods, and lists the UIDs of all pods that the job controls, workers or not.
func (r *Reconciler) readWorkers(
	ctx context.Context, job *v1beta1.ElasticTrainingJob,
) ([]podstate.Worker, map[types.UID]bool, error) {
	pods := &corev1.PodList{}
	err := r.client.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingFields{kube.PodsByOwner: string(job.UID)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, nil, fmt.Errorf("list the worker pods: %w", err)
	}
	workers, listed := make([]podstate.Worker, 0, len(pods.Items)), make(map[types.UID]bool, len(pods.Items))
	for i := range pods.Items {
		listed[pods.Items[i].UID] = true
		if w, ok := jobstate.WorkerOf(&pods.Items[i]); ok {
			w.Attempt = jobstate.AttemptOf(&job.Status, w.Index, w.UID, w.Attempt)
			// A pod of another role than the worker of its index is of no attempt that goes on: it was made before the roles were
			// changed, or by others.
			if w.Misnamed = w.Name != rendezvous.WorkerName(job, w.Index); w.Misnamed {
				w.Attempt = ""
			}
			workers = append(workers, w)
		}
	}
	return workers, listed, nil
}

// readSilentNodes returns since when nodes of workers have not answered. It reads no node while all workers are ready.
func (r *Reconciler) readSilentNodes(ctx context.Context, workers []podstate.Worker) (map[string]time.Time, error) {
	silent := map[string]time.Time{}
	for _, name := range podstate.SilentNodes(workers) {
		node := &corev1.Node{}
		switch err := r.client.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read node %s: %w", name, err)
		default:
			if since, is := podstate.UnreachableSince(node); is {
				silent[name] = since
			}
		}
	}
	return silent, nil
}

// observeProfile reads the profile of the job's namespace, and which queue a new gang joins.
func (r *Reconciler) observeProfile(ctx context.Context, o *jobstate.Observed) error {
	// A missing namespace is an error and not "default": the cache lags, and a gang stays in the queue that it joins.
	namespace, profile, err := profilecache.ProfileOf(ctx, r.client, o.Job.Namespace)
	if err != nil {
		return err
	}
	o.Profile, o.Queue.Name = profile, profilecache.QueueOf(namespace, profile)
	return nil
}
