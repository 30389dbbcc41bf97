package arbiter

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/devices"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/intern"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// mirror is what the caches hold, and the sums over it that an evaluation would otherwise take from all pods. An object changes
// what depends on it and nothing else:
//
//	an event names an object -> put: what the cache holds of it now -> its node, its PodGroup, its job
//
// Only the name of an event counts. Whatever order events come in, and however often, the mirror is the one that is built from
// the caches' lists (TestMirrorIsWhatTheCachesHold).
type mirror struct {
	mu sync.RWMutex
	// config says which resources are accelerators.
	config *config.Configuration

	jobs         map[types.NamespacedName]*v1beta1.ElasticTrainingJob
	merges       map[types.NamespacedName]*v1beta1.MergeJob
	groups       map[types.NamespacedName]gang.Membership
	queues       map[string]gang.QueueLimits
	nodes        map[string]*knownNode
	volumes      map[string]*corev1.PersistentVolume
	volumeClaims map[types.NamespacedName]*corev1.PersistentVolumeClaim
	classes      map[string]*nodev1.RuntimeClass
	pods         map[types.NamespacedName]*knownPod

	// controlled are the pods that have not ended, by who controls them.
	controlled map[controller][]*knownPod
	// held is what pods hold of each node, and of its number of pods.
	held map[string]capacity.Amounts
	// booked is what bound pods hold of each Queue's limit.
	booked map[string]capacity.Amounts
	// rolls are the pods of each PodGroup.
	rolls map[types.NamespacedName]*roll
	// unbound are the pods that may still get a node.
	unbound map[types.NamespacedName]*knownPod
	// short are the PodGroups that may lack members. asking are the trainings that may need an answer though their PodGroups lack
	// none. Both may name some that need none, and are few where nothing waits. growing are those that run and may grow.
	short, asking, growing map[types.NamespacedName]bool
	// begun counts how often a job came to be growing.
	begun int
	// avoiding counts the pods on nodes that keep others out by their labels.
	avoiding int
	// ready are the names of the nodes that are ready, in order.
	ready []string

	shapes shapeCache
	// amounts are what pods request.
	amounts intern.Table[capacity.Amounts]
}

// knownNode is a node. It is never changed.
type knownNode struct {
	labels map[string]string
	// ready is nil for a node that is not ready.
	ready *capacity.Node
}

// knownPod is a pod, and what its spec and metadata say. It is never changed.
type knownPod struct {
	pod      *corev1.Pod
	key      types.NamespacedName
	group    types.NamespacedName
	requests capacity.Amounts
	// kin is who the pod is to other pods; nil for one that has ended.
	kin *capacity.Kin
	// parts are what it has of its node's devices; nil for nothing.
	parts *devices.Held
	// node that it is bound to. ended is true for one that will not run again. standing is its state in its PodGroup.
	node     string
	ended    bool
	standing standing
	// owner controls the pod. role and index are those of a worker, if its name is one's.
	owner    controller
	role     string
	index    int32
	isWorker bool
	// thousandths are of the accelerators that it asks for, without those that it claims. saved is when it last saved a checkpoint,
	// in seconds since 1970; 0 for never.
	thousandths, saved int64
}

// controller is who controls a pod, as the pod says; zero for a pod without a controller. Users may write it, so only the UID
// tells whether an object of that name is meant.
type controller struct {
	types.NamespacedName
	uid types.UID
}

func newMirror(cfg *config.Configuration) *mirror {
	return &mirror{
		config:       cfg,
		jobs:         map[types.NamespacedName]*v1beta1.ElasticTrainingJob{},
		merges:       map[types.NamespacedName]*v1beta1.MergeJob{},
		groups:       map[types.NamespacedName]gang.Membership{},
		queues:       map[string]gang.QueueLimits{},
		nodes:        map[string]*knownNode{},
		volumes:      map[string]*corev1.PersistentVolume{},
		volumeClaims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{},
		classes:      map[string]*nodev1.RuntimeClass{},
		pods:         map[types.NamespacedName]*knownPod{},
		controlled:   map[controller][]*knownPod{},
		held:         map[string]capacity.Amounts{},
		booked:       map[string]capacity.Amounts{},
		rolls:        map[types.NamespacedName]*roll{},
		unbound:      map[types.NamespacedName]*knownPod{},
		short:        map[types.NamespacedName]bool{},
		asking:       map[types.NamespacedName]bool{},
		growing:      map[types.NamespacedName]bool{},
		shapes:       shapeCache{of: map[types.UID]*jobShapes{}},
	}
}

// kinds are what the mirror keeps. put takes what a cache holds under a name; nil for nothing.
func kinds() []struct {
	list client.ObjectList
	put  func(*mirror, types.NamespacedName, client.Object)
} {
	return []struct {
		list client.ObjectList
		put  func(*mirror, types.NamespacedName, client.Object)
	}{
		{&v1beta1.ElasticTrainingJobList{}, (*mirror).putJob},
		{&v1beta1.MergeJobList{}, (*mirror).putMerge},
		{gang.NewPodGroupList(), (*mirror).putGroup},
		{gang.NewQueueList(), (*mirror).putQueue},
		{&corev1.NodeList{}, (*mirror).putNode},
		{&corev1.PodList{}, (*mirror).putPod},
		{&corev1.PersistentVolumeList{}, (*mirror).putVolume},
		{&corev1.PersistentVolumeClaimList{}, (*mirror).putVolumeClaim},
		{&nodev1.RuntimeClassList{}, (*mirror).putClass},
	}
}

// readMirror builds a mirror from nothing.
func readMirror(ctx context.Context, reader client.Reader, cfg *config.Configuration) (*mirror, error) {
	m := newMirror(cfg)
	for _, kind := range kinds() {
		if err := reader.List(ctx, kind.list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", kind.list, err)
		}
		err := meta.EachListItem(kind.list, func(item runtime.Object) error {
			if o, ok := item.(client.Object); ok {
				kind.put(m, client.ObjectKeyFromObject(o), o)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read %T: %w", kind.list, err)
		}
	}
	return m, nil
}

// keep keeps an object under its name, or nothing if the cache has none or one of another type.
func keep[K comparable, T client.Object](in map[K]T, key K, o client.Object) (was, is T) {
	was = in[key]
	if of, ok := o.(T); ok {
		in[key] = of
		return was, of
	}
	delete(in, key)
	return was, is
}

func (m *mirror) putJob(key types.NamespacedName, o client.Object) {
	was, is := keep(m.jobs, key, o)
	if was != nil && (is == nil || is.UID != was.UID) {
		m.shapes.drop(was.UID)
	}
	asks, grows := is != nil && mayAsk(is), is != nil && mayGrow(is)
	if grows && !asks && !m.growing[key] {
		// mustAnswer sees by this that a job has just begun to run, and lets it grow at once.
		m.begun++
	}
	mark(m.asking, key, asks)
	mark(m.growing, key, grows && !asks)
	m.countShort(key)
}

func (m *mirror) putMerge(key types.NamespacedName, o client.Object) { keep(m.merges, key, o) }

func (m *mirror) putGroup(key types.NamespacedName, o client.Object) {
	// Out of the old Queue and into the new one: a PodGroup may have moved.
	m.book(key, m.rollOf(key).holds, -1)
	if o == nil {
		delete(m.groups, key)
	} else {
		m.groups[key] = gang.MembershipOf(o)
	}
	m.book(key, m.rollOf(key).holds, 1)
	m.countShort(key)
}

func (m *mirror) putQueue(key types.NamespacedName, o client.Object) {
	if o == nil {
		delete(m.queues, key.Name)
		return
	}
	m.queues[key.Name] = gang.QueueLimitsOf(o)
}

func (m *mirror) putVolume(key types.NamespacedName, o client.Object) {
	if was, is := keep(m.volumes, key.Name, o); !reflect.DeepEqual(readVolume(was), readVolume(is)) {
		m.shapes.forget()
	}
}

func (m *mirror) putVolumeClaim(key types.NamespacedName, o client.Object) {
	if was, is := keep(m.volumeClaims, key, o); !reflect.DeepEqual(readClaim(was), readClaim(is)) {
		m.shapes.forget()
	}
}

func (m *mirror) putClass(key types.NamespacedName, o client.Object) {
	if was, is := keep(m.classes, key.Name, o); was != is {
		m.shapes.forget()
	}
}

func (m *mirror) putNode(key types.NamespacedName, o client.Object) {
	var ready *capacity.Node
	if n, ok := o.(*corev1.Node); ok {
		ready = readyNode(n)
		m.nodes[key.Name] = &knownNode{labels: n.Labels, ready: ready}
	} else {
		delete(m.nodes, key.Name)
	}
	at, listed := slices.BinarySearch(m.ready, key.Name)
	switch {
	case ready != nil && !listed:
		m.ready = slices.Insert(m.ready, at, key.Name)
	case ready == nil && listed:
		m.ready = slices.Delete(m.ready, at, at+1)
	}
}

// readyNode is a node as the model sees it; nil for one that is not ready. A cordoned node takes pods that tolerate it, as for
// kube-scheduler and Volcano.
func readyNode(n *corev1.Node) *capacity.Node {
	ready := slices.ContainsFunc(n.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
	if !ready {
		return nil
	}
	taints := n.Spec.Taints
	if n.Spec.Unschedulable {
		taints = append(slices.Clone(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return &capacity.Node{
		Name: n.Name, Labels: n.Labels, Taints: taints, Allocatable: capacity.AmountsOf(n.Status.Allocatable),
		Devices: devices.ReadNode(n.Annotations, n.Status.Allocatable),
	}
}

// putPod takes the pod that was known out of all sums, and adds the one that is.
func (m *mirror) putPod(key types.NamespacedName, o client.Object) {
	p, there := o.(*corev1.Pod)
	was := m.pods[key]
	if was != nil && was.pod == p {
		return // Caches repeat what they hold from time to time.
	}
	if was != nil {
		delete(m.pods, key)
		m.count(was, -1)
	}
	if there {
		is := m.readPodSpec(key, p)
		m.pods[key] = is
		m.count(is, 1)
	}
}

// readPodSpec reads of a pod what does not depend on any other object.
func (m *mirror) readPodSpec(key types.NamespacedName, p *corev1.Pod) *knownPod {
	is := &knownPod{
		pod: p, key: key, group: types.NamespacedName{Namespace: p.Namespace, Name: gang.GroupOf(p)}, node: p.Spec.NodeName,
		ended: hasEnded(p), standing: standingOf(p), saved: podstate.CheckpointDone(p),
	}
	if !is.ended {
		is.thousandths = m.config.AcceleratorsAmong(m.config.Sharing.CountedRequests(p))
		is.kin, _ = capacity.KinOf(p.Namespace, p.Labels, &p.Spec)
		is.parts = devices.ReadPod(p)
		is.requests = m.shareAmounts(capacity.AmountsOf(resource.PodRequests(p, resource.PodResourcesOptions{})))
	}
	if owner := metav1.GetControllerOf(p); owner != nil {
		is.owner = controller{types.NamespacedName{Namespace: p.Namespace, Name: owner.Name}, owner.UID}
		is.role, is.index, is.isWorker = rendezvous.ReadName(owner.Name, p.Name)
	}
	return is
}

// shareAmounts returns amounts that are equal to these: pods mostly ask for what others ask for. Neither must be changed any
// more.
func (m *mirror) shareAmounts(own capacity.Amounts) capacity.Amounts {
	var key []byte
	for _, name := range slices.Sorted(maps.Keys(own)) {
		key = append(append(key, name...), 0) // No name of a resource has that.
		key = binary.AppendVarint(key, own[name])
	}
	return m.amounts.Intern(string(key), func() capacity.Amounts { return own })
}

// count adds a pod to the sums, times 1 or -1.
func (m *mirror) count(p *knownPod, times int64) {
	switch {
	case p.ended:
	case p.node != "":
		addTo(m.held, p.node, p.requests, times)
		m.countAvoiding(p, int(times))
		addTo(m.held, p.node, capacity.Amounts{corev1.ResourcePods: 1}, times)
	case times > 0:
		m.unbound[p.key] = p
	default:
		delete(m.unbound, p.key)
	}
	m.assign(p, times)
	m.enroll(p, times)
}

// countAvoiding counts the pods that keep others out by their labels, times 1 or -1. Only while there are any do the labels of
// others matter, so what was read without them is read again.
func (m *mirror) countAvoiding(p *knownPod, times int) {
	if len(p.kin.Apart) == 0 {
		return
	}
	before := m.avoiding
	if m.avoiding += times; (before == 0) != (m.avoiding == 0) {
		m.shapes.forget()
	}
}

// assign counts a pod among those of its controller, times 1 or -1.
func (m *mirror) assign(p *knownPod, times int64) {
	if p.ended {
		return
	}
	if pods := withOrWithout(m.controlled[p.owner], p, times); len(pods) > 0 {
		m.controlled[p.owner] = pods
	} else {
		delete(m.controlled, p.owner)
	}
}

// withOrWithout is a list of pods with one more, for times 1, or without one of them, for -1.
func withOrWithout(pods []*knownPod, p *knownPod, times int64) []*knownPod {
	if times > 0 {
		return append(pods, p)
	}
	last := len(pods) - 1
	pods[slices.Index(pods, p)], pods[last] = pods[last], nil
	return pods[:last]
}

// book adds what pods of a PodGroup hold to its Queue, times 1 or -1.
func (m *mirror) book(group types.NamespacedName, amounts capacity.Amounts, times int64) {
	if queue := m.groups[group].Queue; queue != "" {
		addTo(m.booked, queue, amounts, times)
	}
}

// addTo adds amounts, times 1 or -1, and keeps no entry that holds nothing.
func addTo[K comparable](sums map[K]capacity.Amounts, key K, amounts capacity.Amounts, times int64) {
	sum := sums[key]
	if sum == nil {
		sum = capacity.Amounts{}
		sums[key] = sum
	}
	for name, amount := range amounts {
		if sum[name] += times * amount; sum[name] == 0 {
			delete(sum, name)
		}
	}
	if len(sum) == 0 {
		delete(sums, key)
	}
}

// mark puts a name into a set, or takes it out.
func mark(set map[types.NamespacedName]bool, key types.NamespacedName, in bool) {
	if in {
		set[key] = true
	} else {
		delete(set, key)
	}
}

// countShort tells whether a PodGroup may lack members.
func (m *mirror) countShort(key types.NamespacedName) {
	g, there := m.groups[key]
	r := m.rollOf(key)
	placed, wanted := r.bound+r.completed, g.MinMember
	if job := m.jobs[key]; there && job != nil && isCoreOf(g, job) {
		// Which of its completed workers count is for claimOurs to say.
		placed, wanted = r.bound, 0
		if wantsCore(job) {
			wanted = job.Status.Attempt.MinReplicas
		}
	}
	mark(m.short, key, there && wanted > placed)
}

// mayAsk is true for a training that may need an answer though it has all its places: it may go on again, or is about to create
// its pods.
func mayAsk(job *v1beta1.ElasticTrainingJob) bool {
	st := &job.Status
	return isUnderWay(job) && (st.Preemption != nil || st.RunningSince == nil)
}

// mayGrow is true for a training that creates only surplus that fits.
func mayGrow(job *v1beta1.ElasticTrainingJob) bool { return isUnderWay(job) && growsIfFits(job) }

func isUnderWay(job *v1beta1.ElasticTrainingJob) bool {
	st := &job.Status
	return st.CompletionTime == nil && job.DeletionTimestamp == nil && st.Attempt != nil && !job.Spec.Suspend
}

// mirrored returns the mirror, locked for reading, and a function that unlocks it, once the watches have seen all there is. To
// read the caches meanwhile would have everything in memory twice, just when an operator that starts needs most. Without watches
// it reads them.
func (a *Arbiter) mirrored(ctx context.Context) (*mirror, func(), error) {
	if !a.isWatching() {
		m, err := readMirror(ctx, a.reader, a.config)
		return m, func() {}, err
	}
	if !a.hasSynced() && !toolscache.WaitForCacheSync(ctx.Done(), a.hasSynced) {
		return nil, nil, fmt.Errorf("wait for what the caches hold: %w", ctx.Err())
	}
	a.mirror.mu.RLock()
	return a.mirror, a.mirror.mu.RUnlock, nil
}

// isWatching is true once [Arbiter.WatchCluster] was called.
func (a *Arbiter) isWatching() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.watching) > 0
}

// hasSynced tells whether the watches have seen all there is.
func (a *Arbiter) hasSynced() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.watching) > 0 && !slices.ContainsFunc(a.watching, func(synced func() bool) bool { return !synced() })
}
