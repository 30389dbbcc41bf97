package resourcequotaprofile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/quota"
)

// apply writes the Queue of one profile, if that is decided.
func (r *Reconciler) apply(ctx context.Context, d *quota.ProfileDecision) *kube.Problem {
	switch {
	case d.Create != nil:
		return kube.ProblemOf(r.create(ctx, d.Create), "create Queue "+d.Create.Name)
	case d.Apply != nil:
		return kube.ProblemOf(r.patch(ctx, d), "patch Queue "+d.Apply.Name)
	}
	return nil
}

func (r *Reconciler) patch(ctx context.Context, d *quota.ProfileDecision) error {
	content, err := d.Apply.Patch(d.Have)
	if err != nil {
		return err
	}
	queue := gang.NewQueue()
	queue.SetName(d.Apply.Name)
	err = r.client.Patch(ctx, queue, client.RawPatch(types.JSONPatchType, content), client.FieldOwner(kube.FieldManager))
	if err != nil {
		return err
	}
	return r.applier.Writes.Wrote(all, queue)
}

// create creates a Queue. It has no owner: a profile that is deleted must take no Queue with it that still holds jobs.
func (r *Reconciler) create(ctx context.Context, share *gang.Share) error {
	queue := share.Queue()
	if err := r.client.Create(ctx, queue, client.FieldOwner(kube.FieldManager)); err != nil {
		return err
	}
	return r.applier.Writes.Wrote(all, queue)
}

// deleteQueues deletes Queues of profiles that are gone, when they have held nothing for a while, and returns when to look again;
// zero for never. A PodGroup that was just created is in no cache yet, and would be in a Queue that does not exist.
func (r *Reconciler) deleteQueues(ctx context.Context, queues []quota.QueueRef, now time.Time) (time.Duration, error) {
	again, errs := r.memory.empty(queues, now), []error(nil)
	if again > 0 || len(queues) == 0 {
		return again, nil
	}
	groups := gang.NewPodGroupList()
	if err := r.live.List(ctx, groups); err != nil {
		return 0, fmt.Errorf("see whether Queues of profiles that are gone hold anything: %w", err)
	}
	held := map[string]bool{}
	for _, g := range gang.AllMemberships(groups) {
		held[g.Queue] = true
	}
	for _, q := range queues {
		if held[q.Name] {
			continue // Its PodGroup wakes the reconciler.
		}
		queue := gang.NewQueue()
		queue.SetName(q.Name)
		queue.SetUID(q.UID)
		switch p := kube.ProblemOf(r.applier.Delete(ctx, all, queue), "delete Queue "+q.Name); {
		case p == nil:
			log.FromContext(ctx).Info("Deleted a Queue that holds nothing, and whose profile is gone", "queue", q.Name)
		case p.Class == kube.Retry:
			errs = append(errs, p.Err)
		default:
			log.FromContext(ctx).Error(p.Err, "Cannot delete a Queue whose profile is gone", "queue", q.Name)
			again = refusedInterval
		}
	}
	return again, errors.Join(errs...)
}
