package capacity

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Model answers questions about one snapshot; the package comment draws what it keeps for each node. It caches which nodes take
// which workers, so it is not for concurrent use.
type Model struct {
	inventory
	queues map[string]Queue
	// pending is surplus that waits for a node.
	pending []Pod
	running []Running
	// workers are the bound pods of each job that are not leaving.
	workers map[types.NamespacedName][]*Pod
	// holding counts the pods of each job on nodes, leaving ones included.
	holding map[types.NamespacedName]int
	// steps are the jobs that change their size by several workers at once; nil if none does.
	steps map[types.NamespacedName]stepping
	// placed is all surplus on nodes, leaving included.
	placed map[types.UID]*Surplus
	// outgoing is what leaving pods hold of each queue's limit; nil if no pod is leaving.
	outgoing map[string]Amounts
	// claimed is surplus that leaves for some gang already, so that it is not chosen again.
	claimed map[types.UID]bool
	// held caches the answers of listHolders.
	held map[string][]Holder
	// ceilings caches the answers of CeilingFor; nil until the first.
	ceilings *ceilings
	// total is what all nodes have. guaranteed is what queues have reserved of it.
	total, guaranteed Amounts
}

// inventory is the nodes, as vectors over all resources that any node has.
type inventory struct {
	// names are the resources in the order of the vectors, and index is where each stands.
	names []corev1.ResourceName
	index map[corev1.ResourceName]int
	nodes []node
	// number is the index of each node in nodes, by name.
	number map[string]int
	// allowed caches, for each set of constraints, the nodes that meet it.
	allowed map[string][]*node
	// summed caches the sum of the hashes of these nodes. hashes caches the hash of each node; 0 until it is computed.
	summed map[string]uint64
	hashes []uint64
}

// node is a node as vectors over the model's resources.
type node struct {
	Node
	number int
	// all is what the node has, free what is free now, and soon what will be free once leaving pods are gone.
	all, free, soon []int64
	// surplus is what may still be taken from the node, in the order of victims. Leaving surplus is not in it.
	surplus []*Pod
}

// New compiles a snapshot.
func New(s Snapshot) *Model {
	m := &Model{
		inventory: inventory{
			index: map[corev1.ResourceName]int{}, number: make(map[string]int, len(s.Nodes)), allowed: map[string][]*node{},
			summed: map[string]uint64{},
		},
		queues: make(map[string]Queue, len(s.Queues)), total: Amounts{}, guaranteed: Amounts{},
		held: map[string][]Holder{}, pending: s.Pending, claimed: map[types.UID]bool{},
		running: s.Running, workers: map[types.NamespacedName][]*Pod{}, holding: map[types.NamespacedName]int{},
		placed: map[types.UID]*Surplus{},
	}
	// All resources must be known before the first vector is made, so that all vectors have the same length.
	for _, n := range s.Nodes {
		for name, amount := range n.Allocatable {
			m.addResource(name)
			m.total[name] += amount
		}
	}
	for i, n := range s.Nodes {
		m.number[n.Name] = i
		all := m.vectorOf(n.Allocatable)
		m.nodes = append(m.nodes, node{Node: n, number: i, all: all, free: slices.Clone(all), soon: slices.Clone(all)})
	}
	for i := range s.Pods {
		m.addPod(&s.Pods[i])
	}
	for i := range m.nodes {
		slices.SortFunc(m.nodes[i].surplus, comparePods)
	}
	for _, q := range s.Queues {
		m.queues[q.Name] = q
		for name, amount := range q.Guarantee {
			m.guaranteed[name] += amount
		}
	}
	return m
}

// addPod subtracts a pod from its node, and counts it for its job or, if it is leaving, as outgoing for its queue.
func (m *Model) addPod(p *Pod) {
	switch {
	case p.Leaving:
		if m.outgoing == nil {
			m.outgoing = map[string]Amounts{}
		}
		if m.outgoing[p.Queue] == nil {
			m.outgoing[p.Queue] = Amounts{}
		}
		for name, amount := range p.Requests {
			m.outgoing[p.Queue][name] += amount
		}
	case p.Job.Name != "":
		m.workers[p.Job] = append(m.workers[p.Job], p)
	}
	if p.Job.Name != "" {
		m.holding[p.Job]++
	}
	i, ok := m.number[p.Node]
	if !ok {
		return // Its node is not ready, so its room is of no use to others.
	}
	n := &m.nodes[i]
	for name, amount := range p.heldByPod() {
		if at, known := m.index[name]; known {
			n.free[at] -= amount
			if !p.Leaving {
				n.soon[at] -= amount
			}
		}
	}
	if p.Surplus != nil && !p.Leaving {
		m.countStep(p.Surplus)
	}
	if p.Surplus == nil || p.Kept {
		return
	}
	p.Surplus.queue = p.Queue
	m.placed[p.Surplus.UID] = p.Surplus
	if !p.Leaving {
		n.surplus = append(n.surplus, p)
	}
}

// heldByPod is what the pod takes of its node: its requests, and one of the node's pods.
func (p *Pod) heldByPod() Amounts {
	held := maps.Clone(p.Requests)
	if held == nil {
		held = Amounts{}
	}
	held[corev1.ResourcePods] = 1
	return held
}

// addResource gives a resource its place in the vectors.
func (m *inventory) addResource(n corev1.ResourceName) {
	if _, ok := m.index[n]; !ok {
		m.index[n] = len(m.names)
		m.names = append(m.names, n)
	}
}

// vectorOf writes amounts in the order of the model's resources. Resources that no node has are left out.
func (m *inventory) vectorOf(a Amounts) []int64 {
	v := make([]int64, len(m.names))
	for name, amount := range a {
		if i, ok := m.index[name]; ok {
			v[i] = amount
		}
	}
	return v
}

// impossible is the set of constraints that no node meets.
const impossible = "impossible"

// ask is one worker's requests, compiled for speed: a verdict asks about thousands of nodes.
type ask struct {
	shape *Shape
	// at are the places in the vectors of the resources that the worker asks for, and amount how much of each.
	at     []int
	amount []int64
	// selectors are the required node affinity and the nodes of volumes.
	selectors []*nodeaffinity.NodeSelector
	// constraints is the key of the set of nodes.
	constraints string
	// nodes are those that take the worker, however full they are. It is empty if no node has one of the resources.
	nodes []*node
}

// compile looks up a worker's resources and the nodes that take it.
func (m *inventory) compile(s *Shape) ask {
	a, possible := ask{shape: s, constraints: constraintsKey(s)}, true
	worker := Pod{Requests: s.Requests}
	for name, amount := range worker.heldByPod() {
		if amount <= 0 {
			continue
		}
		i, ok := m.index[name]
		if !ok {
			// No node has the resource, so no node takes the worker. Only the number of pods may be missing: such nodes do not limit it.
			possible = possible && name == corev1.ResourcePods
			continue
		}
		a.at, a.amount = append(a.at, i), append(a.amount, amount)
	}
	for _, required := range append(slices.Clone(s.Volumes), s.Affinity) {
		if required != nil {
			selector, err := nodeaffinity.NewNodeSelector(required)
			a.selectors, possible = append(a.selectors, selector), possible && err == nil
		}
	}
	if !possible {
		a.constraints = impossible
		return a
	}
	a.nodes = m.nodesFor(&a)
	return a
}

// nodesFor lists the nodes that take the worker.
func (m *inventory) nodesFor(a *ask) []*node {
	// Gangs ask for many different amounts, but on few different sets of nodes, so the sets are worth caching.
	nodes, known := m.allowed[a.constraints]
	if !known {
		for i := range m.nodes {
			if a.allowsNode(&m.nodes[i]) {
				nodes = append(nodes, &m.nodes[i])
			}
		}
		m.allowed[a.constraints] = nodes
	}
	return nodes
}

// constraintsKey is a key of everything that decides which nodes take the worker.
func constraintsKey(s *Shape) string {
	key, err := json.Marshal([]any{s.NodeSelector, s.Affinity, s.Volumes, s.Tolerations})
	if err != nil {
		return "" // Marshalling types of the API never fails.
	}
	return string(key)
}

// allowsNode is true if the node takes the worker, however full it is.
func (a *ask) allowsNode(n *node) bool {
	for key, value := range a.shape.NodeSelector {
		if have, ok := n.Labels[key]; !ok || have != value {
			return false
		}
	}
	for _, selector := range a.selectors {
		if !selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}) {
			return false
		}
	}
	return !slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !a.toleratesTaint(&t)
	})
}

// toleratesTaint is true if the worker tolerates the taint.
func (a *ask) toleratesTaint(t *corev1.Taint) bool {
	return slices.ContainsFunc(a.shape.Tolerations, func(toleration corev1.Toleration) bool {
		return toleration.ToleratesTaint(logr.Discard(), t, false)
	})
}

// countFitting is how many workers fit into the free vector, at most limit.
func (a *ask) countFitting(free []int64, limit int32) int32 {
	n := int64(limit)
	for i, at := range a.at {
		if free[at] < a.amount[i] {
			return 0 // Most nodes are full when a gang waits, and this saves a division for each.
		}
		n = min(n, free[at]/a.amount[i])
	}
	return int32(n)
}
