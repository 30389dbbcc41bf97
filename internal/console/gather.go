package console

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

// modelLasts is how long readers share what was gathered.
const modelLasts = time.Second

// gatherer gathers what pages show from the manager's caches, without copies, at most once a second.
type gatherer struct {
	cache cache.Cache
	cfg   *config.Configuration
	// counted is what a pod holds, devices that it claims included.
	counted func(context.Context, *corev1.Pod) corev1.ResourceList

	mutex sync.Mutex
	model *view.Model
	at    time.Time
}

// now is the cluster as it is, or was a second ago.
func (g *gatherer) now(ctx context.Context) (*view.Model, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.model != nil && time.Since(g.at) < modelLasts {
		return g.model, nil
	}
	m := &view.Model{}
	var pods []*corev1.Pod
	var nodes []*corev1.Node
	for _, read := range []func() error{
		func() (err error) {
			m.Jobs, err = listed[*v1beta1.ElasticTrainingJob](ctx, g.cache, &v1beta1.ElasticTrainingJob{})
			return
		},
		func() (err error) {
			m.Merges, err = listed[*v1beta1.MergeJob](ctx, g.cache, &v1beta1.MergeJob{})
			return
		},
		func() (err error) {
			m.Profiles, err = listed[*v1beta1.ResourceQuotaProfile](ctx, g.cache, &v1beta1.ResourceQuotaProfile{})
			return
		},
		func() (err error) { pods, err = listed[*corev1.Pod](ctx, g.cache, &corev1.Pod{}); return },
		func() (err error) { nodes, err = listed[*corev1.Node](ctx, g.cache, &corev1.Node{}); return },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	m.Nodes = g.nodesOf(ctx, nodes, pods)
	g.model, g.at = m, time.Now()
	return m, nil
}

// listed are the objects of a kind in a cache, themselves: they must not be changed.
func listed[T client.Object](ctx context.Context, c cache.Cache, kind client.Object) ([]T, error) {
	store, err := kube.StoreOf(ctx, c, kind)
	if err != nil {
		return nil, err
	}
	all := store.List()
	list := make([]T, 0, len(all))
	for _, o := range all {
		if one, ok := o.(T); ok {
			list = append(list, one)
		}
	}
	return list, nil
}

// nodesOf are the nodes that have accelerators, in order of name, with what pods hold there.
func (g *gatherer) nodesOf(ctx context.Context, nodes []*corev1.Node, pods []*corev1.Pod) []view.Node {
	held := map[string]map[types.NamespacedName]int64{}
	for _, p := range pods {
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		n := g.cfg.AcceleratorsAmong(g.cfg.Sharing.CountedWith(p, g.counted(ctx, p)))
		if n == 0 {
			continue
		}
		if held[p.Spec.NodeName] == nil {
			held[p.Spec.NodeName] = map[types.NamespacedName]int64{}
		}
		_, job := kube.OurController(p)
		held[p.Spec.NodeName][types.NamespacedName{Namespace: p.Namespace, Name: job}] += n
	}
	var list []view.Node
	for _, n := range nodes {
		node := view.Node{Name: n.Name, Out: n.Spec.Unschedulable || !slices.ContainsFunc(n.Status.Conditions,
			func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})}
		node.Total = g.cfg.AcceleratorsIn(func(resource string) int64 {
			q := n.Status.Allocatable[corev1.ResourceName(resource)]
			return q.Value()
		})
		if node.Total == 0 {
			continue
		}
		for _, label := range slices.Sorted(maps.Values(g.cfg.Accelerators)) {
			node.Device = cmp.Or(node.Device, n.Labels[label])
		}
		for job, amount := range held[n.Name] {
			node.Held = append(node.Held, view.Holding{Job: job, Accelerators: amount})
		}
		list = append(list, node)
	}
	slices.SortFunc(list, func(a, b view.Node) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
