package capacity

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "volcano.sh/apis/pkg/apis/topology/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
	capacitymodel "github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/test/testutil"
)

// question is a small cluster, which is a pool of nodes with a queue of its own, and a gang that asks for a place in it.
type question struct {
	number int
	name   string // of pool, queue and asked gang
	random *rand.Rand

	nodes []*corev1.Node
	queue *schedulingv1beta1.Queue
	held  *schedulingv1beta1.PodGroup // of the bound pods that stand in the queue's books
	bound []*corev1.Pod
	group *schedulingv1beta1.PodGroup
	asks  []*corev1.Pod
	// apart is how many of its pods have a shape of their own.
	apart int32
	// holder is a job whose surplus some of the bound pods are, in the eyes of the model alone.
	holder  *v1beta1.ElasticTrainingJob
	surplus []*corev1.Pod
	// volume and claim are those that some gangs use. ruled is how many rules about other pods, or claims, the gang has.
	volume *corev1.PersistentVolume
	claim  *corev1.PersistentVolumeClaim
	ruled  int
	// hyperNodes are those of its nodes, or none.
	hyperNodes []*topologyv1alpha1.HyperNode
	// hindered says what keeps every scheduler from placing the gang, however much room there is; empty for nothing.
	hindered string
	// asksRoom is true for a hindered gang that claims room all the same: only nodes tell that it gets none.
	asksRoom bool

	// What the model and Volcano say.
	answer capacitymodel.Answer
	claims bool
	placed int
	said   string
	// unaided is true for a gang that Volcano placed before others left for it.
	unaided bool
	// victims are the pods that the model has leave for the gang.
	victims []*corev1.Pod
}

// newQuestion draws question number n of a seed.
func newQuestion(seed uint64, n int, namespace string) *question {
	q := &question{
		number: n, name: fmt.Sprintf("q%d", n),
		random: rand.New(rand.NewPCG(seed, uint64(n))),
	}
	q.queue = &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + q.name}}
	q.queue.Spec.Weight = 1
	if q.chance(25) {
		q.queue.Spec.Capability = gpus(1 + q.random.Int64N(16))
	}
	if q.chance(10) {
		q.queue.Spec.Capability = corev1.ResourceList{corev1.ResourceCPU: *q.cores(4, 60)}
	}
	for i := range 1 + q.random.IntN(4) {
		q.drawNode(namespace, i)
	}
	for _, n := range q.nodes {
		q.fillNode(namespace, n)
	}
	q.drawGang(namespace)
	q.drawRules(namespace)
	q.drawHyperNodes(namespace)
	q.hinder()
	return q
}

// drawHyperNodes puts most nodes of some questions into racks, and some racks under a spine. Most of their gangs must be in one
// HyperNode.
func (q *question) drawHyperNodes(namespace string) {
	if !q.chance(35) {
		return
	}
	in := make([][]string, 1+q.random.IntN(2))
	for _, n := range q.nodes {
		if i := q.random.IntN(len(in)); q.chance(90) {
			in[i] = append(in[i], n.Name)
		}
	}
	var racks []string
	for i, nodes := range in {
		if len(nodes) > 0 {
			racks = append(racks, fmt.Sprintf("%s-%s-rack-%d", namespace, q.name, i))
			q.hyperNodes = append(q.hyperNodes, testutil.NewHyperNode(racks[len(racks)-1], 1, topologyv1alpha1.MemberTypeNode, nodes...))
		}
	}
	if len(racks) > 0 && q.chance(60) {
		q.hyperNodes = append(q.hyperNodes, testutil.NewHyperNode(fmt.Sprintf("%s-%s-spine", namespace, q.name), 2,
			topologyv1alpha1.MemberTypeHyperNode, racks...))
	}
	if q.chance(80) {
		highest := 1 + q.random.IntN(2)
		q.group.Spec.NetworkTopology = &schedulingv1beta1.NetworkTopologySpec{
			Mode: schedulingv1beta1.HardNetworkTopologyMode, HighestTierAllowed: &highest,
		}
	}
}

// hinder draws what keeps the gang of some questions from being placed.
func (q *question) hinder() {
	gate := []corev1.PodSchedulingGate{{Name: "example.com/later"}}
	switch {
	case !q.chance(20):
	case q.chance(35):
		q.hindered = "every pod is gated"
		for _, p := range q.asks {
			p.Spec.SchedulingGates = gate
		}
	case q.chance(33):
		q.hindered = "one pod is gated"
		q.asks[q.random.IntN(len(q.asks))].Spec.SchedulingGates = gate
	case q.chance(50):
		q.hindered, q.asksRoom = "no node takes one of its pods", true
		q.asks[q.random.IntN(len(q.asks))].Spec.NodeSelector = map[string]string{"example.com/nowhere": "yes"}
	default:
		q.hindered = "one pod is missing"
		q.group.Spec.MinMember++
	}
}

func (q *question) chance(percent int) bool { return q.random.IntN(100) < percent }

func (q *question) cores(from, to int64) *resource.Quantity {
	return resource.NewMilliQuantity(500*(2*from+q.random.Int64N(2*(to-from)+1)), resource.DecimalSI)
}

func pick[T any](q *question, from ...T) T { return from[q.random.IntN(len(from))] }

func (q *question) drawNode(namespace string, i int) {
	n := testutil.NewNode(fmt.Sprintf("%s-%s-%d", namespace, q.name, i), namespace+"-"+q.name, 1+q.random.Int64N(8))
	n.Labels["zone"] = pick(q, "1", "2", "3")
	n.Labels["generation"] = strconv.Itoa(q.random.IntN(5))
	if q.chance(60) {
		n.Labels["model"] = pick(q, "a100", "h100")
	}
	n.Status.Allocatable[corev1.ResourceCPU] = *q.cores(4, 48)
	n.Status.Allocatable[corev1.ResourceMemory] = *resource.NewQuantity((8+q.random.Int64N(120))<<30, resource.BinarySI)
	if q.chance(30) {
		n.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(1+q.random.Int64N(6), resource.DecimalSI)
	}
	n.Status.Capacity = n.Status.Allocatable.DeepCopy()
	if q.chance(25) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
			Key: pick(q, "team", "reserved"), Value: pick(q, "x", "y"),
			Effect: pick(q, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule),
		})
	}
	n.Spec.Unschedulable = q.chance(4)
	q.nodes = append(q.nodes, n)
}

// fillNode binds pods to the node, within what it has: some of the queue, some of nobody whom Volcano knows.
func (q *question) fillNode(namespace string, n *corev1.Node) {
	free := n.Status.Allocatable.DeepCopy()
	for i := 0; q.chance(45); i++ {
		requests := gpus(q.random.Int64N(4))
		requests[corev1.ResourceCPU] = *q.cores(0, 6)
		requests[corev1.ResourcePods] = resource.MustParse("1")
		if !subtract(free, requests) {
			return
		}
		delete(requests, corev1.ResourcePods)
		p := newPod(namespace, fmt.Sprintf("%s-on-%s-%d", q.name, n.Name[len(namespace)+1:], i), requests)
		p.Spec.NodeName, p.Spec.SchedulerName = n.Name, "somebody-else"
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		if q.chance(70) {
			if q.held == nil {
				q.held = q.newGroup(namespace, q.name+"-held")
			}
			q.held.Spec.MinMember++
			join(p, q.held)
			if q.chance(80) {
				q.lend(p)
			}
		}
		q.bound = append(q.bound, p)
	}
}

// lend makes a bound pod surplus in the eyes of the model.
func (q *question) lend(p *corev1.Pod) {
	if q.holder == nil {
		q.holder = testutil.Job(q.name+"-s").In(p.Namespace).Range(1, 100).ShrinkBy(v1beta1.ShrinkByOperator).Obj()
		q.holder.UID = types.UID(q.holder.Name)
		q.holder.Status.Queue = q.queue.Name
		q.holder.Status.Attempt = &v1beta1.AttemptStatus{Number: 1, MinReplicas: 1, MaxReplicas: 100}
	}
	q.surplus = append(q.surplus, p)
	p.Name = testutil.WorkerName(q.holder.Name, len(q.surplus))
}

// subtract takes requests off what is free, if they are there.
func subtract(free, requests corev1.ResourceList) bool {
	for name, amount := range requests {
		if have := free[name]; have.Cmp(amount) < 0 {
			return false
		}
	}
	for name, amount := range requests {
		have := free[name]
		have.Sub(amount)
		free[name] = have
	}
	return true
}

func (q *question) drawGang(namespace string) {
	q.group = q.newGroup(namespace, q.name)
	q.group.Spec.MinMember = 1 + q.random.Int32N(6)
	worker := newPod(namespace, q.name, q.drawRequests())
	worker.Spec.NodeSelector = map[string]string{testutil.PoolLabel: namespace + "-" + q.name}
	if q.chance(15) {
		worker.Spec.NodeSelector["model"] = pick(q, "a100", "h100")
	}
	if q.chance(25) {
		worker.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: q.drawAffinity(),
		}}
	}
	if q.chance(35) {
		worker.Spec.Tolerations = []corev1.Toleration{q.drawToleration()}
	}
	join(worker, q.group)
	// Some gangs have pods of a shape of their own, as a launcher or parameter servers.
	launcher := corev1.ResourceList{corev1.ResourceCPU: *q.cores(1, 8)}
	if q.chance(25) {
		q.apart = min(1+q.random.Int32N(2), q.group.Spec.MinMember-1)
	}
	total := corev1.ResourceList{}
	for i := range q.group.Spec.MinMember {
		p := worker.DeepCopy()
		p.Name = fmt.Sprintf("%s-%d", q.name, i)
		if i < q.apart {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: launcher}
			p.Annotations[batchv1alpha1.TaskSpecKey] = "launcher"
		}
		q.asks = append(q.asks, p)
		for name, amount := range p.Spec.Containers[0].Resources.Requests {
			sum := total[name]
			sum.Add(amount)
			total[name] = sum
		}
	}
	if q.chance(50) {
		q.group.Spec.MinResources = &total
	}
}

// drawRequests asks for something always: pods that ask for nothing are no gang to Volcano, which places them one by one.
func (q *question) drawRequests() corev1.ResourceList {
	requests := corev1.ResourceList{corev1.ResourceCPU: *q.cores(1, 12)}
	if q.chance(85) {
		requests = gpus(pick(q, int64(1), 1, 1, 1, 2, 2, 4))
		if q.chance(50) {
			requests[corev1.ResourceCPU] = *q.cores(0, 8)
		}
	}
	if q.chance(20) {
		requests[corev1.ResourceMemory] = *resource.NewQuantity((1+q.random.Int64N(40))<<30, resource.BinarySI)
	}
	return requests
}

// drawAffinity has one term or two, of which one must hold.
func (q *question) drawAffinity() *corev1.NodeSelector {
	selector := &corev1.NodeSelector{}
	for range 1 + q.random.IntN(2) {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{pick(q,
				corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"1", "2"}},
				corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"1"}},
				corev1.NodeSelectorRequirement{Key: "model", Operator: corev1.NodeSelectorOpExists},
				corev1.NodeSelectorRequirement{Key: "model", Operator: corev1.NodeSelectorOpDoesNotExist},
				corev1.NodeSelectorRequirement{Key: "generation", Operator: corev1.NodeSelectorOpGt, Values: []string{"1"}},
				corev1.NodeSelectorRequirement{Key: "generation", Operator: corev1.NodeSelectorOpLt, Values: []string{"3"}},
			)},
		})
	}
	if q.chance(10) {
		selector.NodeSelectorTerms[0].MatchFields = []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{q.nodes[0].Name},
		}}
	}
	return selector
}

func (q *question) drawToleration() corev1.Toleration {
	return pick(q,
		corev1.Toleration{Operator: corev1.TolerationOpExists},
		corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		corev1.Toleration{Key: "team", Operator: corev1.TolerationOpExists},
		corev1.Toleration{Key: "team", Operator: corev1.TolerationOpEqual, Value: "x"},
		corev1.Toleration{Key: "reserved", Operator: corev1.TolerationOpEqual, Value: "y", Effect: corev1.TaintEffectNoExecute},
	)
}

func (q *question) newGroup(namespace, name string) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       schedulingv1beta1.PodGroupSpec{Queue: q.queue.Name},
	}
}

func newPod(namespace, name string, requests corev1.ResourceList) *corev1.Pod {
	// Of extended resources the limit must be the request.
	limits := corev1.ResourceList{}
	if amount, ok := requests[testutil.GPUResource]; ok {
		limits[testutil.GPUResource] = amount
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "example.com/c", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
		}}},
	}
}

func join(p *corev1.Pod, g *schedulingv1beta1.PodGroup) {
	p.Spec.SchedulerName = "volcano"
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, schedulingv1beta1.KubeGroupNameAnnotationKey, g.Name)
}

func (q *question) key() types.NamespacedName { return client.ObjectKeyFromObject(q.group) }

// fits is what the model says, and isPlaced what Volcano did.
func (q *question) fits() bool { return q.claims && q.answer.Fits }

func (q *question) isPlaced() bool { return q.placed == len(q.asks) }

// close tells whether one worker more or less would change the model's answer.
func (q *question) close() bool {
	return q.answer.Largest == q.group.Spec.MinMember || q.answer.Largest+1 == q.group.Spec.MinMember
}

// explanation says why model and Volcano may differ on this question, as far as that is known; empty for what is not.
func (q *question) explanation() string {
	for _, n := range q.nodes {
		for _, t := range q.asks[0].Spec.Tolerations {
			if n.Spec.Unschedulable && t.Key == "" && t.Operator == corev1.TolerationOpExists && q.unaided {
				return "it tolerates everything, a cordon too; the model leaves cordoned nodes out"
			}
		}
	}
	return ""
}

// String is the question and both answers in a few lines.
func (q *question) String() string {
	var b strings.Builder
	spec := q.asks[0].Spec
	fmt.Fprintf(&b, "question %d: %d workers of %s, selector %v, tolerations %v, limit %s\n", q.number, len(q.asks),
		amounts(spec.Containers[0].Resources.Requests), spec.NodeSelector, spec.Tolerations, amounts(q.queue.Spec.Capability))
	if spec.Affinity != nil {
		fmt.Fprintf(&b, "  affinity %v\n", spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
	}
	for _, n := range q.nodes {
		fmt.Fprintf(&b, "  node %s: %s, labels %v, taints %v, cordoned %t\n", n.Name, amounts(n.Status.Allocatable), n.Labels,
			n.Spec.Taints, n.Spec.Unschedulable)
	}
	for _, h := range q.hyperNodes {
		fmt.Fprintf(&b, "  HyperNode %s of tier %d:", h.Name, h.Spec.Tier)
		for _, m := range h.Spec.Members {
			fmt.Fprintf(&b, " %s", m.Selector.ExactMatch.Name)
		}
		b.WriteString("\n")
	}
	if t := q.group.Spec.NetworkTopology; t != nil {
		fmt.Fprintf(&b, "  must be in one HyperNode of tier %d or lower\n", *t.HighestTierAllowed)
	}
	for _, p := range q.bound {
		fmt.Fprintf(&b, "  pod %s: %s, of %s,%s\n", p.Name, amounts(p.Spec.Containers[0].Resources.Requests),
			p.Spec.SchedulerName, rulesOf(p))
	}
	if q.hindered != "" {
		fmt.Fprintf(&b, "  hindered: %s; the model says that it claims room: %t\n", q.hindered, q.claims)
	}
	fmt.Fprintf(&b, "  rules:%s\n", rulesOf(q.asks[0]))
	if q.claim != nil && q.volume.Spec.NodeAffinity != nil {
		fmt.Fprintf(&b, "  the claim's volume is in zones 1 and 2\n")
	}
	if q.answer.Unknown != "" {
		fmt.Fprintf(&b, "  unknown: %s\n", q.answer.Unknown)
	}
	fmt.Fprintf(&b, "  the model has %d of %d surplus pods leave\n", len(q.victims), len(q.surplus))
	fmt.Fprintf(&b, "  the model: fits %t, largest %d, free %v, limited by the queue %t\n", q.answer.Fits, q.answer.Largest,
		q.answer.Free, q.answer.QueueLimit)
	fmt.Fprintf(&b, "  Volcano: placed %d of %d: %s\n", q.placed, len(q.asks), q.said)
	return b.String()
}

func amounts(list corev1.ResourceList) string {
	var all []string
	for _, name := range []corev1.ResourceName{
		testutil.GPUResource, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods,
	} {
		if amount, ok := list[name]; ok {
			all = append(all, amount.String()+" "+string(name))
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}
