package resourcequotaprofile

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/quota"
)

// reservationOf is the reservation whose room an object holds; false for an object that Tideline did not create. Labels
// alone do not count, because any user who may create pods can write them.
func (r *Reconciler) reservationOf(o client.Object) (quota.ReservationKey, bool) {
	owner := metav1.GetControllerOf(o)
	name := o.GetLabels()[v1beta1.LabelReservation]
	if o.GetNamespace() != r.Namespace || owner == nil || owner.Kind != v1beta1.ResourceQuotaProfileKind || name == "" {
		return quota.ReservationKey{}, false
	}
	return quota.ReservationKey{Profile: owner.Name, Name: name}, true
}

func placeholderOf(p *corev1.Pod) quota.Placeholder {
	index, _ := strconv.ParseInt(p.Labels[v1beta1.LabelWorkerIndex], 10, 32)
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return quota.Placeholder{
		Name: p.Name, UID: p.UID, Index: int32(index), Placed: p.Spec.NodeName != "", Ended: ended, Leaving: p.DeletionTimestamp != nil,
	}
}

// observeTasks reads the trainings that have the names for which there are reservations.
func (r *Reconciler) observeTasks(ctx context.Context, o *quota.Observed) error {
	wanted := map[string]bool{}
	for _, p := range o.Profiles {
		for i := range p.Object.Spec.Reservations {
			wanted[p.Object.Spec.Reservations[i].JobRef.Name] = true
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	trainings, groups := &v1beta1.ElasticTrainingJobList{}, gang.NewPodGroupList()
	if err := r.listAll(ctx, trainings); err != nil {
		return err
	}
	gangs := map[types.NamespacedName]gang.Membership{}
	if o.VolcanoMissing == "" {
		if err := r.listAll(ctx, groups); err != nil {
			return err
		}
		for _, g := range gang.AllMemberships(groups) {
			gangs[g.Key] = g
		}
	}
	for i := range trainings.Items {
		job := &trainings.Items[i]
		if !wanted[job.Name] || job.Status.CompletionTime != nil || job.DeletionTimestamp != nil {
			continue
		}
		core := gangs[types.NamespacedName{Namespace: job.Namespace, Name: gang.CoreName(job.Name)}]
		there := core.Owner != nil && core.Owner.UID == job.UID
		claims, judged := r.Arbiter.IsClaiming(client.ObjectKeyFromObject(job))
		o.Tasks = append(o.Tasks, quota.Task{
			Namespace: job.Namespace, Name: job.Name, Owner: job.Spec.Owner, Created: job.CreationTimestamp.Time,
			Claims: there && claims, Unjudged: !judged, Asks: there && core.PriorityClass == config.HandoverClass,
			Placed: job.Status.StartTime != nil, Reason: job.Status.Reason, Message: job.Status.Message,
		})
	}
	return nil
}

// applyPlaceholders carries out the decisions about the reservations of a profile; nil for a deleted one. The next plan
// reports refusals.
func (r *Reconciler) applyPlaceholders(
	ctx context.Context, profile *v1beta1.ResourceQuotaProfile, decided []quota.PlaceholderDecision,
) error {
	var errs []error
	for i := range decided {
		err := r.applyPlaceholder(ctx, &decided[i])
		if profile != nil {
			r.memory.notePlaceholders(profile, decided[i].Name, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *Reconciler) applyPlaceholder(ctx context.Context, d *quota.PlaceholderDecision) error {
	for _, p := range d.DeletePods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: p.Name, UID: p.UID}}
		if err := r.applier.Delete(ctx, all, pod); err != nil {
			return fmt.Errorf("delete pod %s: %w", p.Name, err)
		}
	}
	if d.DeleteGroup != nil {
		group := gang.NewPodGroup()
		group.SetNamespace(r.Namespace)
		group.SetName(d.DeleteGroup.Name)
		group.SetUID(d.DeleteGroup.UID)
		if err := r.applier.Delete(ctx, all, group); err != nil {
			return fmt.Errorf("delete PodGroup %s: %w", d.DeleteGroup.Name, err)
		}
	}
	if d.CreateGroup != nil {
		if err := r.createPlaceholder(ctx, d.CreateGroup.PodGroup()); err != nil {
			return err
		}
	}
	if d.RestoreGroup != nil {
		content, err := d.RestoreGroup.RestorePatch(d.Restored)
		if err == nil {
			err = r.applier.Apply(ctx, all, content, gang.NewPodGroup())
		}
		if err != nil {
			return fmt.Errorf("restore PodGroup %s: %w", d.RestoreGroup.Name, err)
		}
	}
	for _, pod := range d.CreatePods {
		if err := r.createPlaceholder(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// createPlaceholder creates an object. It may exist already, if the cache has not seen it yet.
func (r *Reconciler) createPlaceholder(ctx context.Context, o client.Object) error {
	err := r.client.Create(ctx, o, client.FieldOwner(kube.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create a placeholder of a reservation: %w", err)
	}
	return r.applier.Writes.NoteWrite(all, o)
}
