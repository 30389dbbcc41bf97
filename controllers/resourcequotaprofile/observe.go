package resourcequotaprofile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/quota/datasets"
	"github.com/tideline-io/tideline/internal/usage/recorder"
)

// observe reads what Plan needs, from caches only.
func (r *Reconciler) observe(ctx context.Context) (quota.Observed, error) {
	o := quota.Observed{
		LedgerVolatile: r.LedgerVolatile,
		Config:         r.config,
		VolcanoMissing: r.Volcano.MissingKinds(), Nodes: capacity.Amounts{}, Used: map[string]capacity.Amounts{},
		Jobs: map[string]quota.Jobs{}, Gangs: map[string]int{}, Namespace: r.Namespace, Reserved: map[string]capacity.Amounts{},
		Placeholders: map[quota.ReservationKey]quota.Placeholders{}, Waits: r.memory.waits,
	}
	reads := []func(context.Context, *quota.Observed) error{
		r.observeProfiles, r.observeGangs, r.observeNamespaces, r.observeNodes, r.observePods, r.observeJobs, r.observeTasks,
		r.observeBudgets, r.observeOffers, r.observeGuards, r.observeStopping, r.observeData,
	}
	for i, read := range reads {
		if i > 1 && len(o.Profiles) == 0 && len(o.Placeholders) == 0 {
			break // Only the Queues of profiles that are gone are left to decide about, and those are known by now.
		}
		if err := read(ctx, &o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// listAll reads all objects of a kind as they are in the cache.
func (r *Reconciler) listAll(ctx context.Context, into client.ObjectList) error {
	if err := r.client.List(ctx, into, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list %T: %w", into, err)
	}
	return nil
}

func (r *Reconciler) observeProfiles(ctx context.Context, o *quota.Observed) error {
	profiles := &v1beta1.ResourceQuotaProfileList{}
	if err := r.listAll(ctx, profiles); err != nil {
		return err
	}
	r.memory.forgetGone(profiles.Items)
	for i := range profiles.Items {
		p := quota.Profile{Object: &profiles.Items[i]}
		var err error
		if p.Invalid, err = r.memory.checkSpec(ctx, r.guard, p.Object); err != nil {
			return err
		}
		p.Refused, p.RefusedAt = r.memory.lastRefusal(p.Object)
		p.GuardRefused, p.Stopped = r.memory.entryFor(p.Object).guardRefusal, r.memory.entryFor(p.Object).stopped
		for _, reservation := range p.Object.Spec.Reservations {
			if refused := r.memory.refusalOf(p.Object, reservation.Name); refused != nil {
				o.Placeholders[quota.ReservationKey{Profile: p.Object.Name, Name: reservation.Name}] = quota.Placeholders{Refused: refused}
			}
		}
		o.Profiles = append(o.Profiles, p)
	}
	return nil
}

func (r *Reconciler) observeNamespaces(ctx context.Context, o *quota.Observed) error {
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.listAll(ctx, namespaces); err != nil {
		return err
	}
	for i := range namespaces.Items {
		o.Namespaces = append(o.Namespaces, quota.Namespace{Name: namespaces.Items[i].Name, Labels: namespaces.Items[i].Labels})
	}
	return nil
}

func (r *Reconciler) observeNodes(ctx context.Context, o *quota.Observed) error {
	nodes := &corev1.NodeList{}
	if err := r.listAll(ctx, nodes); err != nil {
		return err
	}
	for i := range nodes.Items {
		if isReady(&nodes.Items[i]) {
			for name, amount := range capacity.AmountsOf(nodes.Items[i].Status.Allocatable) {
				o.Nodes[name] += amount
			}
		}
	}
	return nil
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (r *Reconciler) observePods(ctx context.Context, o *quota.Observed) error {
	pods := &corev1.PodList{}
	if err := r.listAll(ctx, pods); err != nil {
		return err
	}
	r.memory.forgetNotebooks(pods.Items, r.now())
	others := idleTasks{}
	for i := range pods.Items {
		p := &pods.Items[i]
		key, reserved := r.reservationOf(p)
		if reserved {
			room := o.Placeholders[key]
			room.Pods = append(room.Pods, placeholderOf(p))
			o.Placeholders[key] = room
		}
		if n := r.config.AcceleratorsAmong(r.config.Sharing.CountedWith(p, r.Claims.CountedOf(ctx, p))); n > 0 && holdsPlace(p) {
			o.Holdings = append(o.Holdings, quota.Holding{
				Namespace: p.Namespace, Profile: key.Profile, Tier: recorder.TierOf(p, r.config), User: recorder.UserOf(p, r.config),
				Accelerators: n,
			})
			if !reserved {
				r.noteIdle(others, p, n)
			}
		}
		switch {
		case !holdsPlace(p):
		case reserved:
			addHeld(o.Reserved, key.Profile, p)
		default:
			addHeld(o.Used, p.Namespace, p)
		}
	}
	for _, t := range others {
		o.Idle = append(o.Idle, *t)
	}
	if r.IdleAsOf != nil {
		o.IdleAsOf, o.IdleOld = r.IdleAsOf()
	}
	return nil
}

// observeOffers asks what there is for gangs of the profiles' Queues, where these are there.
func (r *Reconciler) observeOffers(ctx context.Context, o *quota.Observed) error {
	if o.VolcanoMissing != "" {
		return nil
	}
	names := make([]string, len(o.Profiles))
	for i, p := range o.Profiles {
		names[i] = p.Object.Name
	}
	byQueue, old, err := r.Arbiter.OffersFor(ctx, names)
	if err != nil {
		return err
	}
	o.Offers = map[string][]v1beta1.AvailableStatus{}
	for queue, offers := range byQueue {
		for _, offer := range offers {
			o.Offers[queue] = append(o.Offers[queue], v1beta1.AvailableStatus{
				Resource: offer.Resource, Model: offer.Model,
				Free: offer.Room.Free, LargestGang: int64(offer.Room.WholeNodes) * offer.PerNode,
				FreeWithSurplus:        offer.WithSurplus.Free,
				LargestGangWithSurplus: int64(offer.WithSurplus.WholeNodes) * offer.PerNode,
			})
		}
	}
	o.OffersOld = old > 0
	return nil
}

// addHeld adds what a pod holds to the amounts under a name.
func addHeld(to map[string]capacity.Amounts, name string, p *corev1.Pod) {
	if to[name] == nil {
		to[name] = capacity.Amounts{}
	}
	for of, amount := range capacity.AmountsOf(resource.PodRequests(p, resource.PodResourcesOptions{})) {
		to[name][of] += amount
	}
}

// holdsPlace tells whether a pod occupies a node.
func holdsPlace(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

func (r *Reconciler) observeJobs(ctx context.Context, o *quota.Observed) error {
	trainings, merges := &v1beta1.ElasticTrainingJobList{}, &v1beta1.MergeJobList{}
	if err := r.listAll(ctx, trainings); err != nil {
		return err
	}
	if err := r.listAll(ctx, merges); err != nil {
		return err
	}
	count := func(namespace string, stands standing) {
		n := o.Jobs[namespace]
		switch stands {
		case runs:
			n.Running++
		case waits:
			n.Waiting++
		case awaitsApproval:
			n.AwaitingApproval++
		}
		o.Jobs[namespace] = n
	}
	for i := range trainings.Items {
		count(trainings.Items[i].Namespace, standingOfTraining(&trainings.Items[i]))
	}
	for i := range merges.Items {
		count(merges.Items[i].Namespace, standingOfMerge(&merges.Items[i]))
	}
	return nil
}

// standing tells whether a job runs, waits for room or its turn, or waits for approval.
type standing string

const (
	runs           standing = "runs"
	waits          standing = "waits"
	awaitsApproval standing = "awaits approval"
)

func standingOfTraining(job *v1beta1.ElasticTrainingJob) standing {
	if job.Status.Reason == v1beta1.ReasonAwaitingApproval {
		return awaitsApproval
	}
	switch job.Status.Phase { //nolint:exhaustive // the other phases are those of jobs that neither run nor wait
	case v1beta1.PhaseRunning:
		return runs
	case v1beta1.PhasePending:
		return waits
	}
	return ""
}

func standingOfMerge(job *v1beta1.MergeJob) standing {
	if job.Status.Reason == v1beta1.ReasonAwaitingApproval {
		return awaitsApproval
	}
	switch job.Status.Phase { //nolint:exhaustive // the other phases are those of merges that neither run nor wait
	case v1beta1.MergeStarting, v1beta1.MergeRunning:
		return runs
	case v1beta1.MergeQueued:
		return waits
	}
	return ""
}

// observeGangs reads what Volcano's kinds say, if they are served.
func (r *Reconciler) observeGangs(ctx context.Context, o *quota.Observed) error {
	if o.VolcanoMissing != "" {
		return nil
	}
	queues, groups := gang.NewQueueList(), gang.NewPodGroupList()
	if err := r.listAll(ctx, queues); err != nil {
		return err
	}
	if err := r.listAll(ctx, groups); err != nil {
		return err
	}
	o.Queues = gang.AllQueues(queues)
	_ = meta.EachListItem(groups, func(item runtime.Object) error {
		group, ok := item.(client.Object)
		if !ok {
			return nil
		}
		o.Gangs[gang.MembershipOf(group).Queue]++
		if key, reserved := r.reservationOf(group); reserved && group.GetDeletionTimestamp() == nil {
			room := o.Placeholders[key]
			room.Group = &quota.PlaceholderGroup{
				Name: group.GetName(), UID: group.GetUID(), MinMember: gang.MembershipOf(group).MinMember,
			}
			o.Placeholders[key] = room
		}
		return nil
	})
	return nil
}

// onChangeOf passes on updates that change what read returns.
func onChangeOf(read func(client.Object) any) builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !reflect.DeepEqual(read(e.ObjectOld), read(e.ObjectNew))
	}})
}

func readNode(o client.Object) any {
	if n, ok := o.(*corev1.Node); ok {
		return []any{n.Status.Allocatable, isReady(n)}
	}
	return nil
}

func readPod(o client.Object) any {
	if p, ok := o.(*corev1.Pod); ok {
		return []any{holdsPlace(p), p.DeletionTimestamp != nil}
	}
	return nil
}

func readTraining(o client.Object) any {
	if job, ok := o.(*v1beta1.ElasticTrainingJob); ok {
		return []any{standingOfTraining(job), job.Status.StartTime != nil, job.Status.Reason, datasets.UsedBy(job)}
	}
	return nil
}

func readMerge(o client.Object) any {
	if job, ok := o.(*v1beta1.MergeJob); ok {
		return standingOfMerge(job)
	}
	return nil
}

// observeBudgets reads the use of each budget.
func (r *Reconciler) observeBudgets(_ context.Context, o *quota.Observed) error {
	o.Budgets = map[string][]quota.Budget{}
	for _, p := range o.Profiles {
		if p.Object.Spec.Caps == nil {
			continue
		}
		for _, h := range p.Object.Spec.Caps.AcceleratorHours {
			spent, err := r.Spent(p.Object.Name, h.Window.Duration)
			budget := quota.Budget{Known: err == nil, Unread: errors.Is(err, admission.ErrUnread), ByUser: spent.ByUser}
			if spent.Begun.After(r.now().Add(-h.Window.Duration)) {
				budget.Since = spent.Begun
			}
			o.Budgets[p.Object.Name] = append(o.Budgets[p.Object.Name], budget)
		}
	}
	return nil
}
