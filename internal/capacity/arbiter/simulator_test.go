package arbiter

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

const gpus corev1.ResourceName = "nvidia.com/gpu"

// mostWoken is more than the jobs that one evaluation wakes.
const mostWoken = 1000

// simulator plays the API server, Volcano's scheduler and the kubelets for a few gangs on a few nodes. The arbiter and the
// planner of trainings are the real ones. Its clock goes only when it is told to.
type simulator struct {
	// now is what has passed: nobody sets it. Kubelets go by it, and laws. skew is how far the clock by which the API server and the
	// operator tell the time is ahead of it, and mostSkew more than it ever was, either way. It was set last at stepped.
	now, stepped   time.Time
	skew, mostSkew time.Duration

	arbiter *Arbiter
	config  *config.Configuration
	pacer   *kube.Pacer

	nodes     []*corev1.Node
	queues    []*queue
	pods      []*corev1.Pod
	groups    []client.Object
	trainings []*trainee
	// hindered says of gangs, by the names of their PodGroups, what keeps them from their places.
	hindered map[string]*hindrance
	// named counts names and UIDs that were given, and changes what happened to pods and statuses.
	named, changes int
	// next is when time alone changes something.
	next time.Time
	// patience is how long nobody looks while nothing changes, whatever time does.
	patience time.Duration
	// stopped is true while the scheduler places nothing.
	stopped bool
	// placedAt is when gangs were last placed, by the names of their PodGroups.
	placedAt map[string]time.Time
	// lastPod is when a pod was last created or deleted, and leaving until when pods may take that leave.
	lastPod time.Time
	leaving map[types.UID]time.Time

	laws *laws
	tell func(string, ...any)
}

type queue struct {
	name string
	shut bool
	// capability limits the GPUs of the queue; 0 for no limit.
	capability int64
}

// trainee is an ElasticTrainingJob, and what its reconciler remembers.
type trainee struct {
	job        *v1beta1.ElasticTrainingJob
	queue      string
	service    types.UID
	departures []podstate.Departure
	// grace is how long its pods take to leave.
	grace time.Duration
}

// hindrance is what keeps a gang from its place.
type hindrance struct {
	// gated has scheduling gates on its pods, and refused has the API server refuse them.
	gated, refused bool
	// nowhere is true for pods that no node takes.
	nowhere bool
	// hidden keeps the scheduler from placing the gang for a reason that the model does not know, such as a volume.
	hidden bool
	// short has the gang end as soon as it is placed, before anybody looks.
	short bool
	// lifted is true once that was mended, of which the operator cannot know: a claim that has ended stays so.
	lifted bool
}

func (h *hindrance) String() string {
	words := "nothing hinders it"
	for _, one := range []struct {
		is   bool
		word string
	}{
		{h.gated, "gated"}, {h.refused, "refused"}, {h.nowhere, "fits no node"}, {h.hidden, "never placed"}, {h.short, "ends at once"},
	} {
		if one.is {
			words = one.word
		}
	}
	return words
}

func newSimulator(tell func(string, ...any)) *simulator {
	w := &simulator{
		now: now, patience: time.Second, config: config.DefaultConfiguration(), pacer: kube.NewPacer(),
		hindered: map[string]*hindrance{}, leaving: map[types.UID]time.Time{},
		placedAt: map[string]time.Time{}, laws: newLaws(), tell: tell,
		queues: []*queue{{name: "default"}, {name: "other"}},
	}
	w.config.Tiers = config.Tiers{
		{Name: "low", Priority: 1000, SurplusPriority: -300, QoS: config.QoSBurstable, Default: true},
		{Name: "mid", Priority: 5000, SurplusPriority: -200, QoS: config.QoSBurstable, Preempts: []string{"low"}},
		{Name: "high", Priority: 9000, SurplusPriority: -100, QoS: config.QoSBurstable, Preempts: []string{"low", "mid"}},
	}
	w.restart()
	return w
}

// clock is what time it is by the clock that the API server and the operator go by.
func (w *simulator) clock() time.Time { return w.now.Add(w.skew) }

// stepClock puts that clock forward or back, as the API server's is when it is set.
func (w *simulator) stepClock(by time.Duration) string {
	w.skew, w.stepped = w.skew+by, w.now
	for i := range w.laws.owed { // What is said later is said by the clock as it is then.
		w.laws.owed[i].at = w.laws.owed[i].at.Add(min(by, 0))
	}
	w.mostSkew = max(w.mostSkew, w.skew.Abs()+time.Hour)
	return fmt.Sprintf("clocks are %s ahead", w.skew)
}

// leavesByAnotherClock tells whether a pod leaves that was told to before the clock was set. Until when it may take is a time by
// the clock of before, so that it counts as one that should be gone, or as one that takes an hour.
func (w *simulator) leavesByAnotherClock() bool {
	return slices.ContainsFunc(w.pods, func(p *corev1.Pod) bool {
		grace := time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, 0)) * time.Second
		return p.DeletionTimestamp != nil && !w.leaving[p.UID].Add(-grace).After(w.stepped)
	})
}

// restart starts the operator anew, which forgets what it had in memory.
func (w *simulator) restart() {
	w.arbiter = New(w, w.config, func() bool { return false },
		func(string, time.Duration) (admission.Spending, error) {
			return admission.Spending{}, errors.New("there is no ledger")
		}, logr.Discard())
	w.arbiter.began, w.arbiter.wake = w.clock(), make(chan event.GenericEvent, mostWoken)
	for _, t := range w.trainings {
		t.departures = nil
	}
}

// Get is for namespaces and single Queues, which the arbiter does not ask for here.
func (w *simulator) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(v1beta1.GroupVersion.WithResource(fmt.Sprintf("%T", o)).GroupResource(), key.Name)
}

// List reads what is simulated as the caches have it.
func (w *simulator) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	var items []runtime.Object
	switch list.(type) {
	case *v1beta1.ElasticTrainingJobList:
		for _, t := range w.trainings {
			items = append(items, t.job)
		}
	case *corev1.PodList:
		items = objects(w.pods)
	case *corev1.NodeList:
		items = objects(w.nodes)
	case *nodev1.RuntimeClassList, *corev1.PersistentVolumeList, *corev1.PersistentVolumeClaimList, *v1beta1.MergeJobList,
		*v1beta1.ResourceQuotaProfileList:
	default:
		switch reflect.TypeOf(list) {
		case reflect.TypeOf(gang.NewPodGroupList()):
			items = objects(w.groups)
		case reflect.TypeOf(gang.NewQueueList()):
			for _, q := range w.queues {
				items = append(items, q.object())
			}
		default:
			return fmt.Errorf("the world has no %T", list)
		}
	}
	return meta.SetList(list, items)
}

func objects[T client.Object](of []T) []runtime.Object {
	all := make([]runtime.Object, len(of))
	for i, o := range of {
		all[i] = o
	}
	return all
}

// object is the Queue as an object, of a type that only package gang knows.
func (q *queue) object() client.Object {
	content := map[string]any{"metadata": map[string]any{"name": q.name}, "status": map[string]any{"state": q.state()}}
	if q.capability > 0 {
		content["spec"] = map[string]any{"capability": map[string]any{string(gpus): strconv.FormatInt(q.capability, 10)}}
	}
	o := gang.NewQueue()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, o); err != nil {
		panic(err)
	}
	return o
}

func (q *queue) state() string {
	if q.shut {
		return "Closed"
	}
	return gang.QueueOpen
}

func (w *simulator) queue(name string) *queue {
	return w.queues[slices.IndexFunc(w.queues, func(q *queue) bool { return q.name == name })]
}

// uid is one that no object has had.
func (w *simulator) uid(of string) types.UID {
	w.named++
	return types.UID(fmt.Sprintf("%s.%d", of, w.named))
}

// addNode adds a node of so many GPUs.
func (w *simulator) addNode(has int64) *corev1.Node {
	w.named++
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node%d", w.named)}}
	node.Status.Allocatable = corev1.ResourceList{
		gpus: *resource.NewQuantity(has, resource.DecimalSI), "cpu": resource.MustParse("64"), "pods": resource.MustParse("110"),
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.nodes = append(w.nodes, node)
	return node
}

// requests are those of a container of so many GPUs; one without any asks for a core.
func requests(n int64) corev1.ResourceRequirements {
	list := corev1.ResourceList{"cpu": resource.MustParse("1")}
	if n > 0 {
		list = corev1.ResourceList{gpus: *resource.NewQuantity(n, resource.DecimalSI)}
	}
	return corev1.ResourceRequirements{Requests: list, Limits: list}
}

// gpusOf counts what a pod asks for.
func gpusOf(p *corev1.Pod) int64 {
	amount := p.Spec.Containers[0].Resources.Requests[gpus]
	return amount.Value()
}

// addTraining adds a job of minimum to maximum workers with each so many GPUs.
func (w *simulator) addTraining(tier, queue string, minimum, maximum int32, each int64, h hindrance) *trainee {
	w.named++
	name := fmt.Sprintf("%s%d", tier, w.named)
	job := &v1beta1.ElasticTrainingJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(w.clock()),
		},
		Spec: v1beta1.ElasticTrainingJobSpec{
			Tier: tier, MinReplicas: minimum, MaxReplicas: maximum,
			Elasticity: v1beta1.Elasticity{
				Growth: v1beta1.Growth{Mode: v1beta1.GrowthAlways, CooldownSeconds: ptr.To[int32](300)},
				Shrink: v1beta1.Shrink{
					Initiator: v1beta1.ShrinkAuto, StarvationSeconds: ptr.To[int32](60), MinRunSeconds: ptr.To[int32](0),
				},
			},
			Framework: v1beta1.Framework{Torchrun: &v1beta1.Torchrun{
				JoinTimeoutSeconds: ptr.To[int32](600), LastCallTimeoutSeconds: ptr.To[int32](30), ReadTimeoutSeconds: ptr.To[int32](300),
			}},
			FailurePolicy: &v1beta1.FailurePolicy{Rules: []v1beta1.FailureRule{{
				Action: v1beta1.ActionRestartJob, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodFailed},
			}}},
			Cleanup:       v1beta1.Cleanup{PodPolicy: v1beta1.CleanPodPolicyAll},
			SuccessPolicy: v1beta1.SuccessPolicy{CompletionGraceSeconds: ptr.To[int32](30)},
		},
	}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "trainer", Image: "trainer", Resources: requests(each)}}
	if h.nowhere {
		job.Spec.Template.Spec.NodeSelector = map[string]string{"nowhere": "yes"}
	}
	t := &trainee{job: job, queue: queue, grace: 5 * time.Second}
	w.trainings, w.hindered[name] = append(w.trainings, t), &h
	return t
}

// addForeign adds a gang that is nobody's training: a launcher and so many workers, which wait from now on.
func (w *simulator) addForeign(queue string, launcher int64, workers int, each int64, priority int32, h hindrance) string {
	w.named++
	name := fmt.Sprintf("foreign%d", w.named)
	group := gang.Group{Namespace: "ads", Name: name, Queue: queue, MinMember: int32(1 + workers)}.PodGroup()
	group.SetUID(w.uid(name))
	group.SetCreationTimestamp(metav1.NewTime(w.clock()))
	w.groups, w.hindered[name] = append(w.groups, group), &h
	if h.refused {
		return name
	}
	for i := range 1 + workers {
		asks := each
		if i == 0 {
			asks = launcher
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: fmt.Sprintf("%s-%d", name, i)}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: requests(asks)}}
		gang.Member{Group: name, Index: int32(i)}.JoinGang(pod)
		pod.Spec.Priority = ptr.To(priority)
		w.admit(pod)
	}
	return name
}

// admit creates a pod.
func (w *simulator) admit(pod *corev1.Pod) {
	h := w.hindered[gang.GroupOf(pod)]
	pod.UID, pod.CreationTimestamp, pod.Status.Phase = w.uid(pod.Name), metav1.NewTime(w.clock()), corev1.PodPending
	if h != nil && h.gated {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
	}
	if h != nil && h.nowhere {
		pod.Spec.NodeSelector = map[string]string{"nowhere": "yes"}
	}
	w.pods, w.lastPod = append(w.pods, pod), w.now
	w.changes++
}

// leave has a pod go: at once if no kubelet has it, else after its grace.
func (w *simulator) leave(pod *corev1.Pod, grace time.Duration) {
	w.changes++
	w.lastPod = w.now
	if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || hasEnded(pod) {
		w.gone(pod)
		return
	}
	w.leaving[pod.UID] = w.now.Add(grace)
	pod.DeletionTimestamp = ptr.To(metav1.NewTime(w.clock().Add(grace)))
	pod.DeletionGracePeriodSeconds = ptr.To(int64(grace.Seconds()))
}

// gone takes a pod away; its training remembers how it was last seen.
func (w *simulator) gone(pod *corev1.Pod) {
	w.pods = slices.DeleteFunc(w.pods, func(p *corev1.Pod) bool { return p.UID == pod.UID })
	w.changes++
	if t := w.trainingOf(pod); t != nil {
		worker, _ := jobstate.WorkerOf(pod)
		t.departures = append(t.departures, worker.AsDeparture(worker.HasSucceeded()))
	}
}

func (w *simulator) trainingOf(o client.Object) *trainee {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return nil
	}
	at := slices.IndexFunc(w.trainings, func(t *trainee) bool { return t.job.UID == owner.UID })
	if at < 0 {
		return nil
	}
	return w.trainings[at]
}

// podsOf are the pods of a PodGroup, in the order in which the scheduler takes them.
func (w *simulator) podsOf(group string) []*corev1.Pod {
	var all []*corev1.Pod
	for _, p := range w.pods {
		if gang.GroupOf(p) == group {
			all = append(all, p)
		}
	}
	return all
}

// remove takes a gang out of the simulator: its job, its PodGroups and its pods.
func (w *simulator) remove(name string) {
	w.trainings = slices.DeleteFunc(w.trainings, func(t *trainee) bool { return t.job.Name == name })
	for _, group := range []string{name, gang.SurplusName(name)} {
		w.groups = slices.DeleteFunc(w.groups, func(o client.Object) bool { return o.GetName() == group })
		for _, p := range w.podsOf(group) {
			w.leave(p, 5*time.Second)
		}
	}
	w.changes++
}
