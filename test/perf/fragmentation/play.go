package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/test/perf/scheduler"
)

const (
	// together is how many pods arrive before each session of Volcano.
	together  = 50
	namespace = "openb"
)

// moments are the parts of all GPUs that pods have asked for when a run is measured.
var moments = []float64{0.5, 0.7, 0.85, 0.95, 1, 1.1, 1.3}

// arrival is a pod that has come.
type arrival struct {
	shape

	pod *corev1.Pod
}

// filling is a cluster that fills with pods.
type filling struct {
	session *scheduler.Session
	nodes   []shape
	taken   []shape
	number  map[string]int
	serial  int
}

// play fills a cluster with pods that are drawn, and measures it at each moment. A pod without room goes away.
func play(
	ctx context.Context, p *scheduler.Program, configuration string, nodes, pods []shape, seed uint64,
) ([]figures, error) {
	session, err := p.Start(ctx, configuration)
	if err != nil {
		return nil, err
	}
	f := &filling{session: session, nodes: nodes, taken: make([]shape, len(nodes)), number: map[string]int{}}
	all, err := f.fill(newDrawer(pods, seed), mixOf(pods))
	if err != nil {
		session.Kill()
		return nil, err
	}
	return all, session.Stop()
}

func (f *filling) fill(from *drawer, mix []drawn) ([]figures, error) {
	q, all, err := f.begin()
	if err != nil {
		return nil, err
	}
	var measured []figures
	arrived := int64(0)
	for _, moment := range moments {
		for float64(arrived) < moment*float64(all) {
			coming := make([]arrival, together)
			for i := range coming {
				coming[i] = f.add(&q, from.next())
				arrived += coming[i].gpus
			}
			answer, err := f.session.Ask(&q)
			if err != nil {
				return nil, err
			}
			if q, err = f.settle(coming, answer); err != nil {
				return nil, err
			}
		}
		is := measure(f.nodes, f.taken, mix)
		is.Arrived = float64(arrived) / float64(all)
		measured = append(measured, is)
	}
	return measured, nil
}

// begin tells of the nodes and the Queue, and counts GPUs.
func (f *filling) begin() (q scheduler.Question, all int64, err error) {
	for i, n := range f.nodes {
		name := fmt.Sprintf("node-%04d", i)
		f.number[name] = i
		all += n.gpus
		has := list(n)
		has[corev1.ResourcePods] = resource.MustParse("500")
		q.Nodes = append(q.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Status: corev1.NodeStatus{
				Capacity: has, Allocatable: has,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	queue, err := scheduler.NewQueue(namespace, gpu, all)
	q.Queues = []client.Object{queue}
	return q, all, err
}

// add has a pod come, in a PodGroup of its own.
func (f *filling) add(q *scheduler.Question, s shape) arrival {
	f.serial++
	name := fmt.Sprintf("pod-%05d", f.serial)
	group := gang.Group{Namespace: namespace, Name: name, Queue: namespace, MinMember: 1, MinResources: list(s)}.PodGroup()
	group.SetUID(types.UID("group-" + name))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name),
			Annotations: map[string]string{"scheduling.k8s.io/group-name": name},
		},
		Spec: corev1.PodSpec{SchedulerName: "volcano", Priority: ptr.To[int32](0), Containers: []corev1.Container{{
			Name: "main", Image: "main", Resources: corev1.ResourceRequirements{Requests: list(s), Limits: list(s)},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	q.Groups, q.Pods = append(q.Groups, group), append(q.Pods, pod)
	return arrival{s, pod}
}

// settle carries an answer out, and has pods without a node go.
func (f *filling) settle(coming []arrival, a *scheduler.Answer) (next scheduler.Question, err error) {
	if len(a.Evicts) > 0 {
		return next, fmt.Errorf("evicted %s: all pods are of one priority", a.Evicts[0])
	}
	for _, s := range coming {
		key := client.ObjectKeyFromObject(s.pod).String()
		node, bound := a.Binds[key]
		if !bound {
			next.Gone, next.GoneGroups = append(next.Gone, key), append(next.GoneGroups, key)
			continue
		}
		i := f.number[node]
		f.taken[i] = shape{f.taken[i].cpu + s.cpu, f.taken[i].memory + s.memory, f.taken[i].gpus + s.gpus}
		if t, n := f.taken[i], f.nodes[i]; t.cpu > n.cpu || t.memory > n.memory || t.gpus > n.gpus {
			return next, fmt.Errorf("%s holds more than it has", node)
		}
		runs := s.pod.DeepCopy()
		runs.Spec.NodeName, runs.Status.Phase = node, corev1.PodRunning
		next.Pods = append(next.Pods, runs)
	}
	return next, nil
}

func list(of shape) corev1.ResourceList {
	l := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(of.cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(of.memory<<20, resource.BinarySI),
	}
	if of.gpus > 0 {
		l[gpu] = *resource.NewQuantity(of.gpus, resource.DecimalSI)
	}
	return l
}
