package mergejob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

// observeLeaving finds core gangs in the pool whose MergeJobs are deleted or being deleted.
func (r *Reconciler) observeLeaving(ctx context.Context, o *merging.Observed) error {
	if o.VolcanoMissing != "" {
		return nil
	}
	groups := gang.NewPodGroupList()
	if err := r.client.List(ctx, groups, client.MatchingFields{coreByPool: o.Pool}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the gangs of pool %s: %w", o.Pool, err)
	}
	for _, g := range gang.AllMemberships(groups) {
		owner := types.NamespacedName{Namespace: g.Key.Namespace, Name: g.Owner.Name}
		left, counts, err := r.asLeftover(ctx, owner, g.Owner.UID, func(job departure) bool {
			return job.pool == o.Pool && g.Key.Name == mergepod.CoreName(job.Name)
		})
		if err != nil {
			return err
		}
		if counts {
			// This process never knew the owner, so only the gang's Queue tells that it is in the pool.
			_, known := r.departed.departureOf(g.Owner.UID)
			left.Claimed = !known
			left.Key, left.Deletion = g.Key, g.Deletion
			o.Leaving = append(o.Leaving, left)
		}
	}
	return nil
}

// observeStrangers finds pods of deleted MergeJobs that may still merge the model, or have the names of the job's pods.
func (r *Reconciler) observeStrangers(ctx context.Context, job *merging.Job) error {
	own, places := job.Object, mergepod.PlaceHashes(job.Object)
	known := map[types.UID]bool{}
	for uid, gone := range r.departed.departedFrom(places) {
		if uid == own.UID {
			continue
		}
		pods, err := r.listPods(ctx, client.InNamespace(gone.Namespace), client.MatchingFields{kube.PodsByOwner: string(uid)})
		if err != nil {
			return err
		}
		for i := range pods {
			if _, named := mergepod.PodIndex(gone.Name, pods[i].Name); named && !readPod(&pods[i]).HasEnded() {
				known[pods[i].UID] = true
				job.Strangers = append(job.Strangers, leftoverPod(&pods[i], merging.Leftover{Gone: gone.since}))
			}
		}
	}
	// This process did not see the deletion of their MergeJob, so only the pods themselves tell where they merge.
	pods, err := r.listPods(ctx, client.MatchingFields{jobsByModel: mergepod.ModelHash(own)})
	if err != nil {
		return err
	}
	for i := range pods {
		pod := &pods[i]
		key, uid, _ := ownerOf(pod)
		if known[pod.UID] || uid == own.UID || readPod(pod).HasEnded() {
			continue
		}
		left, counts, err := r.asLeftover(ctx, key, uid, func(departure) bool { return false })
		if err != nil {
			return err
		}
		if counts {
			left.Claimed = pod.Namespace != own.Namespace
			job.Strangers = append(job.Strangers, leftoverPod(pod, left))
		}
	}
	return r.observeNamesakes(ctx, job)
}

// observeNamesakes finds pods of earlier MergeJobs of this name that block the names of the job's pods.
func (r *Reconciler) observeNamesakes(ctx context.Context, job *merging.Job) error {
	pods, err := r.listPods(ctx, client.MatchingFields{jobsByModel: nameIndex(job.Key())})
	if err != nil {
		return err
	}
	for i := range pods {
		_, uid, _ := ownerOf(&pods[i])
		if _, named := mergepod.PodIndex(job.Object.Name, pods[i].Name); !named || uid == job.Object.UID {
			continue
		}
		left := merging.Leftover{Gone: r.departed.started}
		if gone, known := r.departed.departureOf(uid); known {
			left.Gone = gone.since
		}
		job.Namesakes = append(job.Namesakes, leftoverPod(&pods[i], left))
	}
	return nil
}

func (r *Reconciler) listPods(ctx context.Context, of ...client.ListOption) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, append(of, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list the pods of the model: %w", err)
	}
	return pods.Items, nil
}

// asLeftover tells whether an object may be left over from a deleted MergeJob, which it names as its controller. If this
// process saw the deletion, it knows the MergeJob. If the MergeJob exists, the object is not left over. Otherwise the
// MergeJob may have been deleted before this process started.
func (r *Reconciler) asLeftover(
	ctx context.Context, owner types.NamespacedName, uid types.UID, fits func(departure) bool,
) (left merging.Leftover, counts bool, err error) {
	if gone, known := r.departed.departureOf(uid); known {
		return merging.Leftover{Gone: gone.since}, gone.NamespacedName == owner && fits(gone), nil
	}
	job := &v1beta1.MergeJob{}
	switch err := r.client.Get(ctx, owner, job); {
	case err != nil && !apierrors.IsNotFound(err):
		return left, false, fmt.Errorf("read MergeJob %s: %w", owner, err)
	case err == nil && job.UID == uid:
		return left, false, nil
	}
	return merging.Leftover{Gone: r.departed.started}, true, nil
}

func leftoverPod(pod *corev1.Pod, l merging.Leftover) merging.Leftover {
	l.Key, l.Deletion = client.ObjectKeyFromObject(pod), time.Time{}
	if pod.DeletionTimestamp != nil {
		l.Deletion = pod.DeletionTimestamp.Time
	}
	return l
}
