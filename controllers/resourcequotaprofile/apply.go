package resourcequotaprofile

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/internal/gang"
	"github.com/tideline-io/tideline/internal/kube"
	"github.com/tideline-io/tideline/internal/quota"
)

// apply writes the Queue of one profile, if that is decided.
func (r *Reconciler) apply(ctx context.Context, d *quota.ProfileDecision) *kube.Problem {
	switch {
	case d.Create != nil:
		return kube.ProblemOf(r.create(ctx, d.Create), "create Queue "+d.Create.Name)
	case d.Apply != nil:
		content, err := d.Apply.Apply(d.UID)
		if err == nil {
			err = r.applier.Apply(ctx, all, content, gang.NewQueue())
		}
		return kube.ProblemOf(err, "patch Queue "+d.Apply.Name)
	}
	return nil
}

// create creates a Queue. It has no owner: a profile that is deleted must take no Queue with it that still holds jobs.
func (r *Reconciler) create(ctx context.Context, share *gang.Share) error {
	queue := share.Queue()
	if err := r.client.Create(ctx, queue, client.FieldOwner(kube.FieldManager)); err != nil {
		return err
	}
	return r.applier.Writes.Wrote(all, queue)
}

// deleteQueues deletes Queues that hold nothing any more, of profiles that are gone.
func (r *Reconciler) deleteQueues(ctx context.Context, queues []quota.QueueRef) error {
	for _, q := range queues {
		queue := gang.NewQueue()
		queue.SetName(q.Name)
		queue.SetUID(q.UID)
		if err := r.applier.Delete(ctx, all, queue); err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete Queue %s, whose profile is gone: %w", q.Name, err)
		}
		log.FromContext(ctx).Info("Deleted a Queue that holds nothing, and whose profile is gone", "queue", q.Name)
	}
	return nil
}
