package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/test/testutil"
)

// modelLabel holds the number of the model that a pod merges.
const modelLabel = "bench/model"

// A pool is so many machines under one strategy: a namespace, a Queue and a node of its own, and the record of what happens
// there. A machine is a GPU of the node, and a pod takes one.
type pool struct {
	experiment
	*testutil.World
	clock    clock
	strategy strategy
	machines int
	name     string // of namespace, Queue and node
	costs    *costs

	mu     sync.Mutex
	models []holding
	record record
}

// newPool makes namespace, Queue and node.
func newPool(ctx context.Context, e experiment, w *testutil.World, s strategy, machines int) (*pool, error) {
	p := &pool{experiment: e, World: w, strategy: s, machines: machines, name: poolName(s, machines)}
	for range e.models {
		p.models = append(p.models, holding{pods: map[types.UID]hold{}, changed: make(chan struct{}, 1)})
	}
	room := corev1.ResourceList{testutil.GPUResource: *resource.NewQuantity(int64(machines), resource.DecimalSI)}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}},
		&schedulingv1beta1.Queue{
			ObjectMeta: metav1.ObjectMeta{Name: p.name},
			Spec:       schedulingv1beta1.QueueSpec{Weight: 1, Capability: room, Deserved: room},
		},
	} {
		if err := w.Client.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("making pool %s: %w", p.name, err)
		}
	}
	// A pod is refused until its namespace has this account.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "default"}}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(account), account)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the service account of pool %s: %w", p.name, err)
	}
	return p, w.AddNode(ctx, testutil.NewNode(p.name, p.name, int64(machines)))
}

func poolName(s strategy, machines int) string { return fmt.Sprintf("%s-%d", s.key, machines) }

// remove deletes what newPool made. What is in the namespace goes with it.
func (p *pool) remove(ctx context.Context) error {
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.name}},
	} {
		if err := p.Client.Delete(ctx, o); err != nil {
			return fmt.Errorf("removing pool %s: %w", p.name, err)
		}
	}
	return nil
}

// template is the pod of a merge of model.
func (p *pool) template(model int) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{modelLabel: strconv.Itoa(model)}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{testutil.PoolLabel: p.name},
			Containers: []corev1.Container{{
				Name: "merge", Image: "example.com/merge",
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{testutil.GPUResource: resource.MustParse("1")}},
			}},
		},
	}
}

// A holding is what the merge of one model holds at the moment.
type holding struct {
	pods    map[types.UID]hold
	working bool
	last    step          // that was recorded
	changed chan struct{} // has an element when pods have changed since it was read
}

// A hold is what one pod holds.
type hold struct{ placed, running bool }

// see takes note of a pod, or of its end.
func (p *pool) see(pod *corev1.Pod, gone bool) {
	model, err := strconv.Atoi(pod.Labels[modelLabel])
	if err != nil || model >= len(p.models) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := &p.models[model]
	if gone {
		delete(of.pods, pod.UID)
	} else {
		phase := pod.Status.Phase
		ended := phase == corev1.PodSucceeded || phase == corev1.PodFailed
		of.pods[pod.UID] = hold{placed: pod.Spec.NodeName != "" && !ended, running: phase == corev1.PodRunning}
	}
	p.noteStep(model)
	select {
	case of.changed <- struct{}{}:
	default:
	}
}

// noteStep records what the merge of model holds now. The lock is held.
func (p *pool) noteStep(model int) {
	s := step{at: p.clock.now(), model: model, working: p.models[model].working}
	for _, h := range p.models[model].pods {
		if h.placed {
			s.held++
		}
	}
	if last := p.models[model].last; last.held != s.held || last.working != s.working {
		p.record.steps = append(p.record.steps, s)
		p.models[model].last = s
	}
}

// count returns how many pods a model's merge has, and how many of them run.
func (p *pool) count(model int) (pods, running int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.models[model].pods {
		pods++
		if h.running {
			running++
		}
	}
	return pods, running
}

// await waits until the pods of a model are as they should be.
func (p *pool) await(ctx context.Context, model int, done func(pods, running int) bool) error {
	for !done(p.count(model)) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.models[model].changed:
		}
	}
	return nil
}

func (p *pool) together(_, running int) bool { return running == p.experiment.machines }

func none(pods, _ int) bool { return pods == 0 }

// ask records that a merge of model was due at a time, and returns its number in the record.
func (p *pool) ask(model int, due time.Duration) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record.merges = append(p.record.merges, merge{model: model, asked: due, began: never, ended: never})
	return len(p.record.merges) - 1
}

// work records that a merge works until its time is over, and returns when it is.
func (p *pool) work(ctx context.Context, model, merge, number int) error {
	began := p.set(model, true, func(now time.Duration) { p.record.merges[merge].began = now })
	if err := p.clock.until(ctx, began+p.duration(model, number)); err != nil {
		return err
	}
	p.set(model, false, func(now time.Duration) { p.record.merges[merge].ended = now })
	return nil
}

// set records that the merge of model begins or ends to work, and what note makes of the time, which it returns.
func (p *pool) set(model int, working bool, note func(time.Duration)) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.now()
	note(now)
	p.models[model].working = working
	p.noteStep(model)
	return now
}
