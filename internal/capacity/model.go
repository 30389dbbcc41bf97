package capacity

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/tideline-io/tideline/internal/capacity/devices"
)

// A snapshot is compiled once. Each question then reads vectors:
//
//	Snapshot --New--> inventory   nodes, who takes which constraints, compiled workers     clones share it
//	                  occupancy   free, soon, surplus of each node                         a clone that writes has its own
//	                  quotas      limits, shares and what is allocated of each queue       each clone has its own
//
//	Gang --compile--> ask {nodes, amounts, rules} --countFitting over the vectors of its nodes--> Answer
//
// What asks more than one question of the same holds it:
//
//	demand       model + gang           whether there is room now, soon, or once some are gone
//	selection    demand + surplus       which of the surplus gives way
//	bottleneck   demand + Answer        whose surplus holds what the gang lacks
//	seating      ask + rules + view     on which nodes workers with rules about other pods have room
//	survey       model + devices        how much free room waiting gangs cannot use
//	simulation   a copy of the model    workers are placed and leave in thought, and the model stays as it is

// Model answers questions about one snapshot; the package comment draws what it keeps for each node. It caches which nodes take
// which workers, so it is not for concurrent use.
type Model struct {
	inventory
	quotas
	// pending is surplus that waits for a node.
	pending []Pod
	running []Running
	// workers are the bound pods of each job that are not leaving.
	workers map[types.NamespacedName][]*Pod
	// holding counts the pods of each job on nodes, leaving ones included.
	holding map[types.NamespacedName]int
	// steps are the jobs that change their size by several workers at once; nil if none does.
	steps map[stepper]stepping
	// placed returns all surplus on nodes, leaving included; made when it is first asked for, because only promises ask.
	placed func() map[types.UID]*Surplus
	// departing are the bound pods whose end is known; leaving ones and surplus are not among them.
	departing []*Pod
	// claimed is surplus that leaves for some gang already, so that it is not chosen again.
	claimed map[types.UID]bool
	// held caches the holders of bottlenecks.
	held map[string][]Holder
	// ceilings caches the answers of CeilingFor; nil until the first.
	ceilings *ceilings
}

// inventory is the nodes, as vectors over all resources that any node has, and what is free on them.
type inventory struct {
	// names are the resources in the order of the vectors, and index is where each stands.
	names []corev1.ResourceName
	index map[corev1.ResourceName]int
	nodes []node
	// number is the index of each node in nodes, by name.
	number map[string]int
	// takers caches, for each set of constraints, the nodes that meet it, and asks what compile returns for each key of a worker.
	takers map[string][]*node
	asks   map[string]*ask
	// pods are all of the snapshot, and avoids what they keep out of their domains; nil if they keep nobody out. domains caches the
	// domains of nodes by the label that makes them.
	pods    []Pod
	avoids  *avoids
	domains map[string][]int
	// summed caches the sum of the hashes of these nodes. hashes caches the hash of each node; 0 until it is computed.
	summed map[string]uint64
	hashes []uint64
	// hyperNodes are in order, the lowest tier first. topTier is the tier from which on a gang may be anywhere.
	hyperNodes []*domain
	topTier    int
	occupancy
}

// node is a node, and what it has as a vector over the model's resources and its devices. Once New is done, it never changes.
type node struct {
	Node
	number int
	all    []int64
	// unclear is true for a node that does not tell what is free of each of its devices.
	unclear bool
}

// New compiles a snapshot.
func New(s Snapshot) *Model {
	m := &Model{
		inventory: inventory{
			index: map[corev1.ResourceName]int{}, number: make(map[string]int, len(s.Nodes)), nodes: make([]node, len(s.Nodes)),
			takers: map[string][]*node{}, asks: map[string]*ask{}, summed: map[string]uint64{}, pods: s.Pods,
			domains: map[string][]int{},
		},
		quotas: newQuotas(s.Queues), held: map[string][]Holder{}, pending: s.Pending, claimed: map[types.UID]bool{},
		running: s.Running, workers: make(map[types.NamespacedName][]*Pod, len(s.Running)),
		holding: make(map[types.NamespacedName]int, len(s.Running)),
		placed:  sync.OnceValue(func() map[types.UID]*Surplus { return surplusAmong(s.Pods) }),
	}
	// All resources must be known before the first vector is made, so that all vectors have the same length.
	for _, n := range s.Nodes {
		for name, amount := range n.Allocatable {
			m.addResource(name)
			m.total[name] += amount
		}
	}
	m.occupancy = newOccupancy(len(s.Nodes), len(m.names)+widthOfDevices(s.Nodes))
	for i, n := range s.Nodes {
		m.number[n.Name] = i
		m.nodes[i] = node{Node: n, number: i, all: m.vectorOf(n.Allocatable)}
		m.nodes[i].addDevices(len(m.names))
		free := m.freeOn(&m.nodes[i])
		copy(free, m.nodes[i].all)
		for name, amount := range n.Held {
			if at, known := m.index[name]; known {
				free[at] -= amount
			}
		}
		copy(m.soonOn(&m.nodes[i]), free)
	}
	m.newDomains(s.Domains)
	for i := 0; i < len(s.Pods); {
		i += m.addCrew(s.Pods[i:])
	}
	// Who takes victims goes through these lists in the order of victims.
	for i := range m.surplus {
		slices.SortFunc(m.surplus[i], comparePods)
	}
	for _, pods := range m.inQueue {
		slices.SortFunc(pods, comparePods)
	}
	return m
}

// addCrew adds those of the pods that are of the job of the first, as far as they follow it, and returns how many they are.
// Where the pods of each job stand together, a job is looked up once and not for each of its pods.
func (m *Model) addCrew(pods []Pod) int {
	job, count := pods[0].Job, 0
	workers := m.workers[job]
	var on *node
	for ; count < len(pods) && pods[count].Job == job; count++ {
		p := &pods[count]
		m.addPod(p, on)
		on = p.on
		if !p.Leaving {
			workers = append(workers, p)
		}
	}
	if job.Name != "" {
		m.workers[job] = workers
		m.holding[job] += count
	}
	return count
}

// surplusAmong is the surplus that is on nodes of the model, by UID.
func surplusAmong(pods []Pod) map[types.UID]*Surplus {
	all := map[types.UID]*Surplus{}
	for i := range pods {
		if p := &pods[i]; p.on != nil && p.Surplus != nil && !p.Kept {
			all[p.Surplus.UID] = p.Surplus
		}
	}
	return all
}

// nodeOf is the node of that name; nil if it is not ready. beside is where the pod before is, often the same.
func (m *inventory) nodeOf(name string, beside *node) *node {
	if beside != nil && beside.Name == name {
		return beside
	}
	if i, ready := m.number[name]; ready {
		return &m.nodes[i]
	}
	return nil
}

// addPod subtracts a pod from its node, and counts it as outgoing for its queue if it is leaving. beside is where the pod before
// is.
func (m *Model) addPod(p *Pod, beside *node) {
	// Before its node is looked at: on a node that is not ready the pod still counts in its queue's allocation.
	if p.Leaving {
		m.addOutgoing(p)
	}
	if p.on = m.nodeOf(p.Node, beside); p.on == nil {
		return // Its node is not ready, so its room is of no use to others.
	}
	n, i := p.on, p.on.number
	n.unclear = n.unclear || p.isUnclear()
	m.addAvoids(p)
	if p.departs() {
		m.departing = append(m.departing, p)
	}
	// Held adds up requests only. Which devices pods have is known of each pod alone.
	if n.Held == nil {
		m.subtract(m.freeOn(n), p)
		m.subtract(m.soonOn(n), p)
	} else {
		p.shiftParts(m.freeOn(n), len(m.names), -1)
		p.shiftParts(m.soonOn(n), len(m.names), -1)
	}
	if p.Leaving {
		m.release(m.soonOn(n), p)
	}
	if p.Surplus != nil && !p.Leaving {
		// Kept surplus counts too: only with it is the size of the job a multiple of its step.
		m.countStep(p.Surplus)
	}
	if p.Surplus == nil || p.Kept {
		return
	}
	p.Surplus.queue = p.Queue
	if !p.Leaving {
		m.surplus[i] = append(m.surplus[i], p)
		m.inQueue[p.Queue] = append(m.inQueue[p.Queue], p)
	}
}

// departs tells whether a pod is expected to leave by itself.
func (p *Pod) departs() bool { return !p.Leaving && p.Surplus == nil && !p.Until.IsZero() }

// subtract takes what a pod holds from a vector.
func (m *inventory) subtract(from []int64, p *Pod) {
	for name, amount := range p.Requests {
		if at, ok := m.index[name]; ok {
			from[at] -= amount
		}
	}
	if at, ok := m.index[corev1.ResourcePods]; ok {
		from[at]--
	}
	p.shiftParts(from, len(m.names), -1)
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
	v := make([]int64, m.width)
	for name, amount := range a {
		if i, ok := m.index[name]; ok {
			v[i] = amount
		}
	}
	return v
}

// impossible is the set of constraints that no node meets.
const impossible = "impossible"

// ask is one worker's requests, compiled for speed: a verdict asks about thousands of nodes. All clones of a model share it.
type ask struct {
	// at are the places in the vectors of the resources that the worker asks for, and amount how much of each.
	at     []int
	amount []int64
	// constraints and worker are the keys under which the model caches answers: which nodes take the worker, and how many fit there.
	constraints, worker string
	// nodes are those that take the worker, however full they are. It is empty if no node has one of the resources.
	nodes []*node
	// rules about other pods that the worker is bound to; nil for none.
	rules *rules
	// wishes are what the worker asks of devices, which begin at place devicesAt of a vector; nil for a worker that asks for none.
	wishes    devices.Wishes
	devicesAt int
}

// compile looks up a worker's resources and the nodes that take it. Many gangs ask for the same.
func (m *inventory) compile(s *Shape) *ask {
	constraints, worker := s.keys()
	if s.Unmodelled != "" {
		// Its rules are not compiled, so it must not share the ask of a worker that is alike and judged.
		worker += "\nunjudged"
	} else if avoided := m.avoids.keyFor(s.Kin); avoided != "" {
		// Pods placed before it have rules about it, so that it has some without asking for any.
		worker += "\navoided " + avoided
	}
	known := m.asks[worker]
	if known == nil {
		known = m.newAsk(s, constraints, worker)
		m.asks[worker] = known
	}
	return known
}

func (m *inventory) newAsk(s *Shape, constraints, key string) *ask {
	a, worker := &ask{constraints: constraints, worker: key, devicesAt: len(m.names)}, Pod{Requests: s.Requests}
	for name, amount := range worker.heldByPod() {
		if amount <= 0 {
			continue
		}
		i, ok := m.index[name]
		if ok {
			a.at, a.amount = append(a.at, i), append(a.amount, amount)
		} else if name != corev1.ResourcePods {
			// No node has the resource, so no node takes the worker, and all such workers share one answer. Only the number of
			// pods may be missing: such nodes do not limit it.
			return &ask{constraints: impossible}
		}
	}
	a.nodes = m.nodesFor(s, constraints)
	if s.Unmodelled == "" {
		a.rules = m.rulesOf(s) // They cost much, and of a worker that is not judged only the nodes are asked for.
		a.wishes = s.Wishes
	}
	return a
}

// nodesFor lists the nodes that take the worker.
func (m *inventory) nodesFor(s *Shape, constraints string) []*node {
	// Gangs ask for many different amounts, but on few different sets of nodes, so the sets are worth caching.
	nodes, known := m.takers[constraints]
	if known {
		return nodes
	}
	var selectors []*nodeaffinity.NodeSelector
	possible := true
	for _, required := range append(slices.Clone(s.Volumes), s.Affinity) {
		if required != nil {
			selector, err := nodeaffinity.NewNodeSelector(required)
			selectors, possible = append(selectors, selector), possible && err == nil
		}
	}
	for i := range m.nodes {
		if possible && (s.domain == nil || s.domain.has[i]) && s.allowsNode(&m.nodes[i], selectors) {
			nodes = append(nodes, &m.nodes[i])
		}
	}
	m.takers[constraints] = nodes
	return nodes
}

// keys returns two keys for caches. Workers with the same constraints may run on the same nodes; those with the same worker also
// ask for the same amounts.
func (s *Shape) keys() (constraints, worker string) {
	if s.worker == "" {
		constraints = constraintsKey(s)
		return constraints, constraints + requestsKey(s.Requests) + s.Wishes.CacheKey() + s.Kin.rulesKey()
	}
	return s.constraints, s.worker
}

// rememberKeys computes what keys returns once for the many times that it is asked for.
func (s *Shape) rememberKeys() { s.constraints, s.worker = s.keys() }

// WorkerKey is the same for workers that ask for the same amounts and may run on the same nodes.
func (s *Shape) WorkerKey() string {
	_, worker := s.keys()
	return worker
}

// constraintsKey is the same for workers that may run on the same nodes.
func constraintsKey(s *Shape) string {
	key, err := json.Marshal([]any{s.NodeSelector, s.Affinity, s.Volumes, s.Tolerations})
	if err != nil {
		return "" // Marshalling types of the API never fails.
	}
	return string(key)
}

// requestsKey is the same for workers that ask for the same amounts.
func requestsKey(requests Amounts) string {
	var key []byte
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		key = strconv.AppendInt(append(append(key, name...), ' '), requests[name], 10)
	}
	return string(key)
}

// allowsNode is true if the node takes the worker, however full it is. selectors are the required node affinity and the nodes of
// volumes.
func (s *Shape) allowsNode(n *node, selectors []*nodeaffinity.NodeSelector) bool {
	return s.selectsNode(n, selectors) && !slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !s.toleratesTaint(&t)
	})
}

// selectsNode is true if the node meets what the worker selects nodes by, whatever its taints.
func (s *Shape) selectsNode(n *node, selectors []*nodeaffinity.NodeSelector) bool {
	for key, value := range s.NodeSelector {
		if have, ok := n.Labels[key]; !ok || have != value {
			return false
		}
	}
	for _, selector := range selectors {
		if !selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}) {
			return false
		}
	}
	return true
}

// toleratesTaint is true if the worker tolerates the taint.
func (s *Shape) toleratesTaint(t *corev1.Taint) bool {
	return slices.ContainsFunc(s.Tolerations, func(toleration corev1.Toleration) bool {
		return toleration.ToleratesTaint(logr.Discard(), t, false)
	})
}

// countFitting is how many workers fit into the free vector of a node, at most limit.
func (a *ask) countFitting(on *node, free []int64, limit int32) int32 {
	n := a.countByTotals(free, limit)
	if a.wishes == nil || n == 0 {
		return n
	}
	return a.countByDevices(on, free, n)
}

// countByTotals is countFitting, whatever is free of each device.
func (a *ask) countByTotals(free []int64, limit int32) int32 {
	n := int64(limit)
	for i, at := range a.at {
		if free[at] < a.amount[i] {
			return 0 // Most nodes are full when a gang waits, and this saves a division for each.
		}
		n = min(n, free[at]/a.amount[i])
	}
	return int32(n)
}
