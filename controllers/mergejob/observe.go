package mergejob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/volcano"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
)

// observe reads what Plan needs, from caches and from what stores were last seen to have.
func (r *Reconciler) observe(ctx context.Context, pool string) (merging.Observed, error) {
	o := merging.Observed{
		Pool: pool, Config: r.config, WebhooksOff: !r.config.Webhooks.Enabled, VolcanoMissing: r.Volcano.MissingKinds(),
		Changes: r.changes.forPool(pool),
	}
	var err error
	if o.SchedulerObstacles, err = r.Scheduler.ListObstacles(ctx); err != nil {
		return o, err
	}
	if err := r.observeQueue(ctx, &o); err != nil {
		return o, err
	}
	jobs := &v1beta1.MergeJobList{}
	// Not copied: a caller that changes an object copies it first.
	if err := r.client.List(ctx, jobs, client.MatchingFields{jobsByPool: pool}, client.UnsafeDisableDeepCopy); err != nil {
		return o, fmt.Errorf("list the MergeJobs of pool %s: %w", pool, err)
	}
	profiles, err := profilecache.ReadProfiles(ctx, r.client)
	if err != nil {
		return o, err
	}
	of, placesRead := map[string]*v1beta1.ResourceQuotaProfile{}, places{}
	for i := range jobs.Items {
		if jobs.Items[i].DeletionTimestamp != nil {
			continue // What it has goes with it.
		}
		profile, found := of[jobs.Items[i].Namespace]
		if !found {
			_, profile, err = profiles.ProfileOf(ctx, jobs.Items[i].Namespace)
			if apierrors.IsNotFound(err) {
				continue // One cache is ahead of the other: the namespace comes, or the job goes.
			}
			if err != nil {
				return o, err
			}
			of[jobs.Items[i].Namespace] = profile
		}
		job, err := r.observeJob(ctx, &jobs.Items[i], profile, placesRead, o.VolcanoMissing != "")
		if err != nil {
			return o, err
		}
		o.Jobs = append(o.Jobs, job)
	}
	return o, r.observeLeaving(ctx, &o)
}

func (r *Reconciler) observeQueue(ctx context.Context, o *merging.Observed) error {
	if o.VolcanoMissing != "" {
		return nil
	}
	queue := gang.NewQueue()
	switch err := r.client.Get(ctx, client.ObjectKey{Name: o.Pool}, queue); {
	case apierrors.IsNotFound(err):
		o.QueueMissing = true
	case err != nil:
		return fmt.Errorf("read Queue %s: %w", o.Pool, err)
	default:
		o.QueueState = gang.QueueState(queue)
	}
	return nil
}

func (r *Reconciler) observeJob(
	ctx context.Context, object *v1beta1.MergeJob, profile *v1beta1.ResourceQuotaProfile, read places, withoutVolcano bool,
) (*merging.Job, error) {
	key := client.ObjectKeyFromObject(object)
	job := &merging.Job{
		Object: object, Profile: profile, Store: r.stores.lastSighting(object), Verdict: r.Arbiter.MergeVerdict(key),
		Turn: r.Arbiter.MergeTurn(key), Problem: r.memory.currentProblem(object), Past: merging.PastIn(object.Status.History),
		ClaimsChanged: r.changes.claimsOf(object.Namespace),
	}
	if usage := r.Usage; usage.IsCollecting() {
		known := usage.TaskHistory(object.Namespace, v1beta1.MergeJobKind, object.Name)
		job.History = &known
	}
	var err error
	if job.Invalid, err = r.memory.checkSpec(ctx, r.guard, object); err != nil {
		return nil, err
	}
	if job.Pods, err = podsOf(ctx, r.client, object); err != nil {
		return nil, err
	}
	if object.Status.Run != nil {
		if err := r.observeRun(ctx, job, withoutVolcano); err != nil {
			return nil, err
		}
	}
	return job, r.observeRivals(ctx, job, read)
}

// observeRun reads what only a job with a run has.
func (r *Reconciler) observeRun(ctx context.Context, job *merging.Job, withoutVolcano bool) error {
	list := &corev1.ConfigMap{}
	found, err := kube.IsOwned(ctx, r.client, job.Object, mergepod.IncrementsName(job.Object.Name), list)
	if err != nil {
		return err
	}
	if found && list.DeletionTimestamp == nil {
		job.List = &merging.List{UID: list.UID, Run: list.Labels[v1beta1.LabelRun]}
	}
	if withoutVolcano {
		return nil
	}
	if job.Core, err = volcano.ReadGroup(ctx, r.client, job.Object, mergepod.CoreName(job.Object.Name)); err != nil {
		return err
	}
	job.Surplus, err = volcano.ReadGroup(ctx, r.client, job.Object, mergepod.SurplusName(job.Object.Name))
	return err
}

// places are the MergeJobs of each place that was asked for in one observation of a pool.
type places map[string]merging.Contenders

// observeRivals finds other MergeJobs of the model.
func (r *Reconciler) observeRivals(ctx context.Context, job *merging.Job, read places) error {
	var in []merging.Contenders
	for _, place := range mergepod.PlaceHashes(job.Object) {
		contenders, found := read[place]
		if !found {
			all := &v1beta1.MergeJobList{}
			err := r.client.List(ctx, all, client.MatchingFields{jobsByModel: place}, client.UnsafeDisableDeepCopy)
			if err != nil {
				return fmt.Errorf("list the MergeJobs of the model: %w", err)
			}
			contenders = merging.ContendersOf(all.Items)
			read[place] = contenders
		}
		in = append(in, contenders)
	}
	job.Rivals = merging.RivalsIn(job.Key(), in...)
	return r.observeStrangers(ctx, job)
}

func podsOf(ctx context.Context, reader client.Reader, job *v1beta1.MergeJob) ([]podstate.Worker, error) {
	pods := &corev1.PodList{}
	err := reader.List(ctx, pods, client.InNamespace(job.Namespace),
		client.MatchingFields{kube.PodsByOwner: string(job.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the pods of the merge: %w", err)
	}
	workers := make([]podstate.Worker, 0, len(pods.Items))
	for i := range pods.Items {
		if index, ok := mergepod.PodIndex(job.Name, pods.Items[i].Name); ok {
			workers = append(workers, podstate.ReadWorker(&pods.Items[i], index))
		}
	}
	return workers, nil
}
