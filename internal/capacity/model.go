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

// Model answers questions about one snapshot. It remembers which nodes take which workers, and is not for concurrent use.
type Model struct {
	inventory
	queues map[string]Queue
	// pending is surplus that waits for a node.
	pending []Pod
	running []Running
	// workers are the bound pods of each job, but for those that leave.
	workers map[types.NamespacedName][]*Pod
	// holding counts the pods of each job on nodes, also those that leave.
	holding map[types.NamespacedName]int
	// placed is all surplus on nodes, also that which leaves.
	placed map[types.UID]*Surplus
	// outgoing is what pods that leave hold in the books of each queue; nil when nobody leaves.
	outgoing map[string]Amounts
	// claimed is surplus that leaves for some queue already.
	claimed map[types.UID]bool
	// held lists whose surplus gangs may take: see holders.
	held map[string][]Holder
	// ceilings answer what would fit if nothing else ran; nil until that is asked.
	ceilings *ceilings
	// total is what all nodes have, and guaranteed what queues have reserved of it.
	total, guaranteed Amounts
}

// inventory is what there is, whoever it belongs to: the nodes, as vectors over the resources that any of them has.
type inventory struct {
	names []corev1.ResourceName
	index map[corev1.ResourceName]int
	nodes []node
	// number is where each node stands among the nodes, by name.
	number map[string]int
	// allowed lists, for each set of constraints asked so far, the nodes that meet it.
	allowed map[string][]*node
	// summed has the sum of the hashes of these nodes, and hashes that of each node, by number; 0 until it is asked.
	summed map[string]uint64
	hashes []uint64
}

// node is a node as vectors over the model's resources.
type node struct {
	Node
	number int
	// all is what the node has, free what is free of it now, and soon what will be once those who leave have gone.
	all, free, soon []int64
	// surplus is in the order of victims, but for what leaves already.
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
	for _, n := range s.Nodes {
		for name, amount := range n.Allocatable {
			m.name(name)
			m.total[name] += amount
		}
	}
	for i, n := range s.Nodes {
		m.number[n.Name] = i
		all := m.vector(n.Allocatable)
		m.nodes = append(m.nodes, node{Node: n, number: i, all: all, free: slices.Clone(all), soon: slices.Clone(all)})
	}
	for i := range s.Pods {
		m.add(&s.Pods[i])
	}
	for i := range m.nodes {
		slices.SortFunc(m.nodes[i].surplus, func(a, b *Pod) int { return a.Surplus.compare(b.Surplus) })
	}
	for _, q := range s.Queues {
		m.queues[q.Name] = q
		for name, amount := range q.Guarantee {
			m.guaranteed[name] += amount
		}
	}
	return m
}

// add books a pod to its node, its job and, if it leaves, to what is on its way.
func (m *Model) add(p *Pod) {
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
		return
	}
	n := &m.nodes[i]
	for name, amount := range p.held() {
		if at, known := m.index[name]; known {
			n.free[at] -= amount
			if !p.Leaving {
				n.soon[at] -= amount
			}
		}
	}
	if p.Surplus == nil {
		return
	}
	p.Surplus.queue = p.Queue
	m.placed[p.Surplus.UID] = p.Surplus
	if !p.Leaving {
		n.surplus = append(n.surplus, p)
	}
}

// held is what the pod takes of its node: its requests, and its place among the node's pods.
func (p *Pod) held() Amounts {
	held := maps.Clone(p.Requests)
	if held == nil {
		held = Amounts{}
	}
	held[corev1.ResourcePods] = 1
	return held
}

func (m *inventory) name(n corev1.ResourceName) {
	if _, ok := m.index[n]; !ok {
		m.index[n] = len(m.names)
		m.names = append(m.names, n)
	}
}

// vector writes amounts in the order of the model's resources; those that no node has are left out.
func (m *inventory) vector(a Amounts) []int64 {
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

// ask is one worker's requests, compiled: only what is asked.
type ask struct {
	shape  *Shape
	at     []int
	amount []int64
	// selectors are the required node affinity and the nodes of volumes.
	selectors []*nodeaffinity.NodeSelector
	// constraints is the key of the set of nodes.
	constraints string
	// nodes are those that take the worker, room apart; none if no node has one of the resources.
	nodes []*node
}

func (m *inventory) compile(s *Shape) ask {
	a, possible := ask{shape: s, constraints: constraints(s)}, true
	worker := Pod{Requests: s.Requests}
	for name, amount := range worker.held() {
		if amount <= 0 {
			continue
		}
		i, ok := m.index[name]
		if !ok {
			// A cluster whose nodes state no pod count does not limit it.
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

// nodesFor lists the nodes that take the worker. Gangs ask for many different amounts on few different sets of nodes.
func (m *inventory) nodesFor(a *ask) []*node {
	nodes, known := m.allowed[a.constraints]
	if !known {
		for i := range m.nodes {
			if a.allows(&m.nodes[i]) {
				nodes = append(nodes, &m.nodes[i])
			}
		}
		m.allowed[a.constraints] = nodes
	}
	return nodes
}

// constraints writes down what decides which nodes take the worker.
func constraints(s *Shape) string {
	key, err := json.Marshal([]any{s.NodeSelector, s.Affinity, s.Volumes, s.Tolerations})
	if err != nil {
		return "" // Types of the API can always be written.
	}
	return string(key)
}

// allows tells whether the node takes the worker at all, room apart.
func (a *ask) allows(n *node) bool {
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
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !a.tolerates(&t)
	})
}

func (a *ask) tolerates(t *corev1.Taint) bool {
	return slices.ContainsFunc(a.shape.Tolerations, func(toleration corev1.Toleration) bool {
		return toleration.ToleratesTaint(logr.Discard(), t, false)
	})
}

// count is how many workers fit into the free vector, at most limit.
func (a *ask) count(free []int64, limit int32) int32 {
	n := int64(limit)
	for i, at := range a.at {
		if free[at] < a.amount[i] {
			return 0 // Most nodes of a cluster in which somebody waits are full, and a division is slow.
		}
		n = min(n, free[at]/a.amount[i])
	}
	return int32(n)
}
