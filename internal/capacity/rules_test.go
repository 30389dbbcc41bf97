package capacity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const zone = "zone"

// inZone is a node with a hostname and a zone; no zone for "".
func inZone(name, of string, gpus int64) Node {
	n := nodeOf(name, gpus)
	n.Labels = map[string]string{corev1.LabelHostname: name}
	if of != "" {
		n.Labels[zone] = of
	}
	return n
}

func selecting(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func termOf(app, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{LabelSelector: selecting(app), TopologyKey: key}
}

func apartFrom(app, key string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		if s.Affinity == nil {
			s.Affinity = &corev1.Affinity{}
		}
		s.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{termOf(app, key)},
		}
	}
}

func besides(app, key string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		if s.Affinity == nil {
			s.Affinity = &corev1.Affinity{}
		}
		s.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{termOf(app, key)},
		}
	}
}

func spreadOver(app, key string, skew int32) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selecting(app),
		})
	}
}

func takesPort(port int32) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}}}
	}
}

func kin(app string, rules ...func(*corev1.PodSpec)) *Kin {
	spec := &corev1.PodSpec{}
	for _, rule := range rules {
		rule(spec)
	}
	k, _ := KinOf("ads", map[string]string{"app": app}, spec)
	return k
}

func beside(p Pod, k *Kin) Pod {
	p.Kin = k
	return p
}

func ruledGang(workers int32, app string, rules ...func(*corev1.PodSpec)) *Gang {
	g := gangOf(workers, 1)
	g.Shape.Kin = kin(app, rules...)
	return g
}

func TestRulesAboutOtherPods(t *testing.T) {
	nodes := []Node{inZone("a1", "a", 4), inZone("a2", "a", 4), inZone("b1", "b", 4), inZone("x", "", 4)}
	with := func(node string, k *Kin) []Pod { return []Pod{beside(used(node, 1), k)} }
	for name, c := range map[string]struct {
		gang    *Gang
		pods    []Pod
		largest int32
	}{
		"a node takes one pod with a host port":         {ruledGang(9, "w", takesPort(80)), nil, 4},
		"a host port that is taken":                     {ruledGang(9, "w", takesPort(80)), with("a1", kin("o", takesPort(80))), 3},
		"another host port":                             {ruledGang(9, "w", takesPort(80)), with("a1", kin("o", takesPort(81))), 4},
		"one to a node":                                 {ruledGang(9, "w", apartFrom("w", corev1.LabelHostname)), nil, 4},
		"one to a zone, and any where there is no":      {ruledGang(9, "w", apartFrom("w", zone)), nil, 2 + 4},
		"apart from others' zone":                       {ruledGang(99, "w", apartFrom("o", zone)), with("a1", kin("o")), 8},
		"others want to be apart":                       {ruledGang(99, "w"), with("a1", kin("o", apartFrom("w", zone))), 8},
		"others want to be apart from others":           {ruledGang(99, "w"), with("a1", kin("o", apartFrom("z", zone))), 15},
		"beside others":                                 {ruledGang(99, "w", besides("o", zone)), with("b1", kin("o")), 3},
		"beside others that are nowhere":                {ruledGang(99, "w", besides("o", zone)), nil, 0},
		"together: the smallest that it could begin in": {ruledGang(9, "w", besides("w", zone)), nil, 4},
		"together with those that are there":            {ruledGang(99, "w", besides("w", zone)), with("a1", kin("w")), 7},
		"spread over zones":                             {ruledGang(99, "w", spreadOver("w", zone, 1)), nil, 4 + 5},
		"spread over zones, one of which has some": {ruledGang(99, "w", spreadOver("w", zone, 1)), []Pod{
			beside(used("a1", 2), kin("w")),
		}, 4 + 4},
		"others' spread": {ruledGang(99, "w", spreadOver("o", zone, 1)), []Pod{
			beside(used("a1", 1), kin("o")), beside(used("a2", 1), kin("o")),
		}, 4},
		"in one zone, one to a node": {ruledGang(9, "w", besides("w", zone), apartFrom("w", corev1.LabelHostname)), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			answer := cluster(nodes, c.pods...).Ask(c.gang)
			g.Expect(answer.Largest).To(Equal(c.largest))
		})
	}
}

func TestAGangThatMayBeginWhereItDoesNotFitIsUnknown(t *testing.T) {
	g := NewWithT(t)
	nodes := []Node{inZone("a", "a", 4), inZone("b", "b", 8)}
	g.Expect(cluster(nodes).Ask(ruledGang(6, "w", besides("w", zone))).Unknown).To(Equal(OneDomain))
	g.Expect(cluster(nodes, used("a", 4)).Ask(ruledGang(6, "w", besides("w", zone))).Fits).To(BeTrue(), "it can begin in one only")
	g.Expect(cluster(nodes).Ask(ruledGang(9, "w", besides("w", zone)))).To(And(HaveField("Unknown", ""), HaveField("Fits", false)))
}

func TestSurplusLeavesForAGangWithRules(t *testing.T) {
	g := NewWithT(t)
	holder := func(node string, index int32, k *Kin) Pod { return beside(surplus(node, "holder", index, 1), k) }
	port := kin("o", takesPort(80))
	two := []Node{inZone("a", "a", 8), inZone("b", "b", 8)}
	m := cluster(two, holder("a", 1, kin("o")), holder("a", 2, port), holder("b", 3, kin("o")))
	g.Expect(uids(m.FindVictims(ruledGang(2, "w", takesPort(80)), anybody))).To(Equal([]string{"holder-2"}), "who has the port")
	m = cluster(two, holder("a", 1, kin("o")), holder("b", 2, kin("w")))
	g.Expect(uids(m.FindVictims(ruledGang(2, "w", apartFrom("w", zone)), anybody))).To(Equal([]string{"holder-2"}), "who is like it")
	rest := m.clone()
	rest.removeSurplus(rest.inQueue["default"])
	g.Expect(rest.Ask(ruledGang(2, "w", apartFrom("w", zone))).Fits).To(BeTrue())
}

func TestGangsPlacedInThoughtKeepOthersOut(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{inZone("a", "a", 8), inZone("b", "b", 8)}).clone()
	first := ruledGang(2, "w", takesPort(80))
	m.placeWorkers(first, 1, m.freeView())
	g.Expect(m.Ask(ruledGang(2, "o", takesPort(80))).Largest).To(Equal(int32(1)))
	g.Expect(m.Ask(ruledGang(2, "o", takesPort(81))).Largest).To(Equal(int32(2)))
	g.Expect(m.Ask(ruledGang(8, "o", apartFrom("w", zone))).Largest).To(Equal(int32(8)))
	g.Expect(m.CeilingFor(ruledGang(2, "o", takesPort(80)))).To(BeNil(), "with nothing running it fits")
}

func TestTheFirstOfSeveralShapesTakesThePort(t *testing.T) {
	g := NewWithT(t)
	m := cluster([]Node{inZone("a", "a", 2), inZone("b", "b", 2)}, beside(used("b", 1), kin("o", takesPort(80))))
	gang := ruledGang(3, "w")
	gang.Apart = []Shape{{Requests: Amounts{gpu: 1}, Kin: kin("w", takesPort(80))}}
	g.Expect(m.Ask(gang).Fits).To(BeTrue())
	gang.Apart[0].Kin = kin("w", besides("w", zone))
	g.Expect(m.Ask(gang).Unknown).To(Equal(RulesOfShapes))
}

func TestWhatIsBeyondTheRules(t *testing.T) {
	for want, rules := range map[string][]func(*corev1.PodSpec){
		"":        {takesPort(80), apartFrom("w", corev1.LabelHostname), besides("w", zone)},
		ManyRules: {spreadOver("w", zone, 1), spreadOver("w", corev1.LabelHostname, 1)},
		OwnLabels: {func(s *corev1.PodSpec) {
			apartFrom("w", zone)(s)
			s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.
				MatchLabels["tideline.io/worker-index"] = "0"
		}},
		LabelKeys: {func(s *corev1.PodSpec) {
			spreadOver("w", zone, 1)(s)
			s.TopologySpreadConstraints[0].MatchLabelKeys = []string{"rev"}
		}},
		SelectedNamespaces: {func(s *corev1.PodSpec) {
			apartFrom("w", zone)(s)
			s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = selecting("x")
		}},
		SpreadPolicies: {func(s *corev1.PodSpec) {
			spreadOver("w", zone, 1)(s)
			honor := corev1.NodeInclusionPolicyHonor
			s.TopologySpreadConstraints[0].NodeTaintsPolicy = &honor
		}},
	} {
		spec := &corev1.PodSpec{}
		for _, rule := range rules {
			rule(spec)
		}
		_, beyond := KinOf("ads", map[string]string{"app": "w"}, spec)
		NewWithT(t).Expect(beyond).To(Equal(want))
	}
}

// naive places pods one after another, in any order of nodes, by the rules as Kubernetes states them.
type naive struct {
	nodes []Node
	free  map[string]int64
	pods  []Pod
}

func (n *naive) takes(node *Node, k *Kin) bool {
	if n.free[node.Name] < 1 {
		return false
	}
	together, some, here := len(k.Beside) > 0, false, false
	for _, t := range k.Beside {
		together = together && t.meets(k)
	}
	least, mine := map[int]int32{}, map[int]int32{}
	for i := range k.Spread {
		value, has := node.Labels[k.Spread[i].Key]
		if !has {
			return false
		}
		count := map[string]int32{}
		for _, o := range n.nodes {
			if v := o.Labels[k.Spread[i].Key]; counts(o.Labels, k) {
				count[v] += 0
			}
		}
		for _, p := range n.pods {
			if v := n.labelsOf(p)[k.Spread[i].Key]; counts(n.labelsOf(p), k) && k.Spread[i].meets(p.Kin) {
				count[v]++
			}
		}
		least[i], mine[i] = 1<<30, count[value]
		for _, c := range count {
			least[i] = min(least[i], c)
		}
		if k.Spread[i].meets(k) {
			mine[i]++
		}
		if mine[i]-least[i] > k.Spread[i].MaxSkew {
			return false
		}
	}
	for _, p := range n.pods {
		there := n.labelsOf(p)
		same := func(key string) bool {
			a, hasA := node.Labels[key]
			b, hasB := there[key]
			return hasA && hasB && a == b
		}
		for _, t := range k.Apart {
			if t.meets(p.Kin) && same(t.Key) {
				return false
			}
		}
		for _, t := range p.Kin.Apart {
			if t.meets(k) && same(t.Key) {
				return false
			}
		}
		if p.Node == node.Name && slices.ContainsFunc(k.Ports, func(port HostPort) bool {
			return slices.ContainsFunc(p.Kin.Ports, port.conflicts)
		}) {
			return false
		}
		if len(k.Beside) > 0 && !slices.ContainsFunc(k.Beside, func(t Term) bool { return !t.meets(p.Kin) }) {
			some, here = true, here || same(k.Beside[0].Key)
		}
	}
	if len(k.Beside) == 0 || here {
		return true
	}
	_, labelled := node.Labels[k.Beside[0].Key]
	return !some && together && labelled
}

// counts is true for a node in a domain of each of the pod's spreads.
func counts(labels map[string]string, k *Kin) bool {
	return !slices.ContainsFunc(k.Spread, func(s Spread) bool { _, has := labels[s.Key]; return !has })
}

func (n *naive) labelsOf(p Pod) map[string]string {
	return n.nodes[slices.IndexFunc(n.nodes, func(o Node) bool { return o.Name == p.Node })].Labels
}

// fill places as many as fit, in a random order.
func (n *naive) fill(r *rand.Rand, k *Kin) (placed int32) {
	for {
		at := -1
		for _, i := range r.Perm(len(n.nodes)) {
			if n.takes(&n.nodes[i], k) {
				at = i
				break
			}
		}
		if at < 0 {
			return placed
		}
		n.free[n.nodes[at].Name]--
		n.pods = append(n.pods, Pod{Node: n.nodes[at].Name, Kin: k})
		placed++
	}
}

// Whatever rules there are, and in whatever order a scheduler looks at nodes, the model knows how many it places. A gang that
// must be together is the exception: the model knows the least.
func TestRulesEndWhereAnyOrderEnds(t *testing.T) {
	kinds := []func(*rand.Rand, string) func(*corev1.PodSpec){
		func(r *rand.Rand, _ string) func(*corev1.PodSpec) { return takesPort(80 + r.Int32N(2)) },
		func(r *rand.Rand, key string) func(*corev1.PodSpec) {
			return apartFrom([]string{"w", "o"}[r.IntN(2)], key)
		},
		func(r *rand.Rand, key string) func(*corev1.PodSpec) {
			return besides([]string{"w", "o"}[r.IntN(2)], key)
		},
		func(r *rand.Rand, key string) func(*corev1.PodSpec) {
			return spreadOver([]string{"w", "o"}[r.IntN(2)], key, 1+r.Int32N(3))
		},
	}
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 7))
		draw := func(app string) *Kin {
			var rules []func(*corev1.PodSpec)
			for range r.IntN(3) {
				rules = append(rules, kinds[r.IntN(len(kinds))](r, []string{zone, corev1.LabelHostname}[r.IntN(2)]))
			}
			return kin(app, rules...)
		}
		var nodes []Node
		for i := range 1 + r.IntN(6) {
			nodes = append(nodes, inZone(fmt.Sprintf("n%d", i), []string{"a", "b", "c", ""}[r.IntN(4)], r.Int64N(5)))
		}
		start := &naive{free: map[string]int64{}}
		for _, n := range nodes {
			start.free[n.Name] = n.Allocatable[gpu]
			for start.free[n.Name] > 0 && r.IntN(3) == 0 {
				start.free[n.Name]--
				start.pods = append(start.pods, beside(used(n.Name, 1), draw([]string{"w", "o"}[r.IntN(2)])))
			}
		}
		worker := draw("w")
		if worker.grouping() > 1 {
			continue
		}
		gang := gangOf(99, 1)
		gang.Shape.Kin = worker
		answer := cluster(nodes, slices.Clone(start.pods)...).Ask(gang)
		least, most := int32(1<<30), int32(0)
		for range 12 {
			other := &naive{nodes: nodes, free: map[string]int64{}, pods: slices.Clone(start.pods)}
			for name, free := range start.free {
				other.free[name] = free
			}
			placed := other.fill(r, worker)
			least, most = min(least, placed), max(most, placed)
		}
		if answer.Largest > least || len(worker.Beside) == 0 && (least != most || answer.Largest != least) {
			t.Fatalf("seed %d: the model says %d, orders place %d to %d: %+v", seed, answer.Largest, least, most, worker)
		}
	}
}

func TestPodsOfOneGangLookAlikeButForTheirIndex(t *testing.T) {
	g := NewWithT(t)
	g.Expect(LookAlike(map[string]string{"a": "b", "tideline.io/worker-index": "1"},
		map[string]string{"a": "b", "tideline.io/worker-index": "2"})).To(BeTrue())
	g.Expect(LookAlike(map[string]string{"a": "b"}, map[string]string{"a": "c"})).To(BeFalse())
	g.Expect(LookAlike(map[string]string{"a": "b"}, nil)).To(BeFalse())
	g.Expect(LookAlike(nil, map[string]string{"a": "b"})).To(BeFalse())
}
