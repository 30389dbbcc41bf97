package arbiter

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/devices"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// WatchCluster has the caches report changes to the arbiter. Call it once Volcano's kinds are served.
func (a *Arbiter) WatchCluster(ctx context.Context, c cache.Cache) error {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	var watching []func() bool
	inputs := []struct {
		object client.Object
		// reads selects what the arbiter reads of an object, so that other changes, such as heartbeats, cause no evaluation.
		reads func(any) any
		// put tells the mirror; nil for a kind that it does not keep.
		put func(*mirror, types.NamespacedName, client.Object)
	}{
		{&corev1.Node{}, readNode, (*mirror).putNode},
		{&corev1.Pod{}, readPod, (*mirror).putPod},
		{&corev1.PersistentVolumeClaim{}, readClaim, (*mirror).putVolumeClaim},
		{&corev1.PersistentVolume{}, readVolume, (*mirror).putVolume},
		{&nodev1.RuntimeClass{}, readWhole, (*mirror).putClass},
		{gang.NewPodGroup(), readMembership, (*mirror).putGroup},
		{gang.NewQueue(), readQueue, (*mirror).putQueue},
		{&v1beta1.ElasticTrainingJob{}, readJob, (*mirror).putJob},
		{&v1beta1.MergeJob{}, readMerge, (*mirror).putMerge},
		{&v1beta1.ResourceQuotaProfile{}, readProfile, nil},
		{namespace, readNamespace, nil},
		{gang.NewHyperNode(), readHyperNode, nil},
	}
	if a.hyperNodes == nil {
		inputs = inputs[:len(inputs)-1] // The API server has none.
	}
	for _, input := range inputs {
		// Not waited for here: mirrored does.
		informer, err := c.GetInformer(ctx, input.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", input.object, err)
		}
		look := func(any) {}
		if input.put != nil {
			holds, can := informer.(interface{ GetStore() toolscache.Store })
			if !can {
				return fmt.Errorf("watch %T: the cache does not say what it holds", input.object)
			}
			look = func(event any) { a.mirror.look(holds.GetStore(), event, input.put) }
		}
		handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(added any) {
				// The mirror first: decide reads bindings before it, so that no gang is missed.
				look(added)
				a.noteBinding(nil, added)
				a.NoteChange()
			},
			DeleteFunc: func(deleted any) {
				look(deleted)
				a.NoteChange()
			},
			UpdateFunc: func(before, after any) {
				look(after)
				if reflect.DeepEqual(input.reads(before), input.reads(after)) {
					return
				}
				a.noteBinding(before, after)
				a.NoteChange()
			},
		})
		if err != nil {
			return fmt.Errorf("watch %T: %w", input.object, err)
		}
		watching = append(watching, handler.HasSynced)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watching = watching
	return nil
}

// look reads what a cache holds of the object that an event names. The event itself may be old: another may have come before it.
func (m *mirror) look(
	holds interface {
		GetByKey(key string) (any, bool, error)
	}, event any, put func(*mirror, types.NamespacedName, client.Object),
) {
	name, err := toolscache.DeletionHandlingObjectToName(event)
	if err != nil {
		return // No cache sends events that name nothing.
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	held, there, err := holds.GetByKey(name.String())
	o, _ := held.(client.Object)
	if err != nil || !there {
		o = nil
	}
	put(m, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, o)
}

// noteBinding notes that a pod was bound, if others leave for its gang. Such a gang may be placed and end between two
// evaluations, and then none would see that it had the room. before is nil for a new pod.
func (a *Arbiter) noteBinding(before, after any) {
	is, isPod := after.(*corev1.Pod)
	if was, known := before.(*corev1.Pod); !isPod || is.Spec.NodeName == "" || known && was.Spec.NodeName != "" {
		return
	}
	group := types.NamespacedName{Namespace: is.Namespace, Name: gang.GroupOf(is)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, promised := a.bound[group]; promised {
		a.bound[group] = true
	}
}

// boundSince lists the gangs that had a pod bound since others leave for them.
func (a *Arbiter) boundSince() map[types.NamespacedName]bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	bound := maps.Clone(a.bound)
	maps.DeleteFunc(bound, func(_ types.NamespacedName, is bool) bool { return !is })
	return bound
}

// watchPromised has noteBinding watch the gangs for which others leave now, and no others.
func (a *Arbiter) watchPromised() {
	bound := map[types.NamespacedName]bool{}
	for _, promises := range a.promises {
		for _, gang := range promises.MadeFor() {
			bound[gang] = a.bound[gang]
		}
	}
	a.bound = bound
}

func readNode(o any) any {
	n, ok := o.(*corev1.Node)
	if !ok {
		return nil
	}
	ready := corev1.ConditionUnknown
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			ready = c.Status
		}
	}
	return []any{n.Labels, n.Spec, n.Status.Allocatable, ready, n.Annotations[devices.Registered]}
}

func readPod(o any) any {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	return []any{p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, len(p.Spec.SchedulingGates)}
}

func readClaim(o any) any {
	c, ok := o.(*corev1.PersistentVolumeClaim)
	if !ok || c == nil {
		return nil
	}
	return []any{c.Spec.VolumeName, c.Spec.AccessModes, c.Status.Phase, c.DeletionTimestamp != nil}
}

func readVolume(o any) any {
	v, ok := o.(*corev1.PersistentVolume)
	if !ok || v == nil {
		return nil
	}
	return []any{v.Spec.NodeAffinity, v.Labels}
}

// readWhole is for kinds with few objects that rarely change.
func readWhole(o any) any { return o }

func readMembership(o any) any {
	pg, ok := o.(client.Object)
	if !ok {
		return nil
	}
	return gang.MembershipOf(pg)
}

func readQueue(o any) any {
	q, ok := o.(client.Object)
	if !ok {
		return nil
	}
	return gang.QueueLimitsOf(q)
}

func readJob(o any) any {
	j, ok := o.(*v1beta1.ElasticTrainingJob)
	if !ok {
		return nil
	}
	st := &j.Status
	return []any{
		j.Generation, j.DeletionTimestamp != nil, st.Attempt, st.RunningSince, st.Preemption, len(st.Members), st.MasterCompletionTime,
		st.CompletionTime, st.Conditions,
	}
}

// readMerge reads of the weight only whether it reaches the threshold, because it grows all the time.
func readMerge(o any) any {
	j, ok := o.(*v1beta1.MergeJob)
	if !ok {
		return nil
	}
	st := &j.Status
	return []any{
		j.Generation, j.DeletionTimestamp != nil, st.Phase, st.Pool, st.Run, st.Reason == v1beta1.ReasonNeverFits, isDue(j),
		st.Position != nil && *st.Position <= mostBehind,
	}
}

func readProfile(o any) any {
	if p, ok := o.(*v1beta1.ResourceQuotaProfile); ok {
		return p.Generation
	}
	return nil
}

// readHyperNode reads all but the status, in which Volcano counts nodes.
func readHyperNode(o any) any {
	if h, ok := o.(client.Object); ok {
		return h.GetGeneration()
	}
	return nil
}

func readNamespace(o any) any {
	if n, ok := o.(*metav1.PartialObjectMetadata); ok {
		return n.Labels
	}
	return nil
}
