package resourcequotaprofile

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/quota"
)

// applied is what became of a decision about a profile.
type applied struct {
	// queue is why its Queue could not be written; nil if it could, or was not to be.
	queue *kube.Problem
	// known is false for a problem that was not known when it was decided.
	known bool
	// placeholders is why the reservations are not as decided. After a problem with the Queue they are not touched.
	placeholders error
	// guard is why the guard is not as decided.
	guard error
	// notebooks is why Notebooks were not stopped that a new try may stop.
	notebooks error
	// again is when to look at the profile again for them; zero for never.
	again time.Duration
}

// apply carries out what is decided about one profile, and stops at the first problem. What keeps other workloads out, and what
// stops Notebooks, waits for no Queue.
func (r *Reconciler) apply(ctx context.Context, d *quota.ProfileDecision, now time.Time) applied {
	a := applied{guard: r.applyGuard(ctx, d)}
	a.again, a.notebooks = r.stopNotebooks(ctx, d, now)
	switch p := r.applyQueue(ctx, d); {
	case p == nil:
		if d.Agrees || d.Create != nil || d.Apply != nil {
			r.memory.forgetRefusal(d.Profile)
		}
		a.placeholders = r.applyPlaceholders(ctx, d.Profile, d.Placeholders)
	case isStale(p):
		a.queue = p
	default:
		a.queue, a.known = p, !r.memory.noteRefusal(d.Profile, p.Err.Error(), now)
	}
	return a
}

// isStale tells whether a problem may be due to an old cache, so that a new evaluation may solve it.
func isStale(p *kube.Problem) bool { return p.Class == kube.Retry || apierrors.IsConflict(p.Err) }

func (r *Reconciler) applyQueue(ctx context.Context, d *quota.ProfileDecision) *kube.Problem {
	switch {
	case d.Create != nil:
		return kube.ProblemOf(r.createQueue(ctx, d.Create), "create Queue "+d.Create.Name)
	case d.Apply != nil:
		return kube.ProblemOf(r.patchQueue(ctx, d), "patch Queue "+d.Apply.Name)
	}
	return nil
}

func (r *Reconciler) patchQueue(ctx context.Context, d *quota.ProfileDecision) error {
	content, err := d.Apply.QueuePatch(d.Have)
	if err != nil {
		return err
	}
	queue := gang.NewQueue()
	queue.SetName(d.Apply.Name)
	err = r.client.Patch(ctx, queue, client.RawPatch(types.JSONPatchType, content), client.FieldOwner(kube.FieldManager))
	if err != nil {
		return err
	}
	return r.applier.Writes.NoteWrite(all, queue)
}

// createQueue creates a Queue without an owner reference: deleting a profile must not delete a Queue that still holds jobs.
func (r *Reconciler) createQueue(ctx context.Context, share *gang.Share) error {
	queue := share.NewQueue()
	if err := r.client.Create(ctx, queue, client.FieldOwner(kube.FieldManager)); err != nil {
		return err
	}
	return r.applier.Writes.NoteWrite(all, queue)
}

// applyForGone gives back what profiles that are gone have left, and returns when to look again; zero for never.
func (r *Reconciler) applyForGone(ctx context.Context, d *quota.Decision) (time.Duration, error) {
	again, err := r.deleteQueues(ctx, d.DeleteQueues)
	return again, errors.Join(err, r.applyPlaceholders(ctx, nil, d.Abandoned))
}

// deleteQueues deletes Queues of deleted profiles, if the API server itself lists no PodGroup in them. A PodGroup that was
// just created is in no cache yet, and would be left in a Queue that does not exist. It returns when to try again; zero for
// never.
func (r *Reconciler) deleteQueues(ctx context.Context, queues []quota.QueueRef) (time.Duration, error) {
	if len(queues) == 0 {
		return 0, nil
	}
	groups := gang.NewPodGroupList()
	if err := r.live.List(ctx, groups); err != nil {
		return 0, fmt.Errorf("see whether Queues of profiles that are gone hold anything: %w", err)
	}
	again, errs, held := time.Duration(0), []error(nil), map[string]bool{}
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
			log.FromContext(ctx).Info("Deleted the empty Queue of a deleted profile", "queue", q.Name)
		case p.Class == kube.Retry:
			errs = append(errs, p.Err)
		default:
			log.FromContext(ctx).Error(p.Err, "Cannot delete the Queue of a deleted profile", "queue", q.Name)
			again = quota.RefusedInterval
		}
	}
	return again, errors.Join(errs...)
}
