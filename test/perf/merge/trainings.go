package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/test/testutil"
)

// Trainings that start their merges themselves.

// runTrainings plays the training of every model until the context ends.
func (p *pool) runTrainings(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for model := range p.models {
		group.Go(func() {
			if err := p.train(ctx, model); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("model %d of pool %s: %w", model, p.name, err))
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// train merges one model again and again.
func (p *pool) train(ctx context.Context, model int) error {
	due := p.interval - p.firstAge() + p.lag(model, 0)
	for number := 0; ; number++ {
		if err := p.clock.until(ctx, due); err != nil {
			return err
		}
		merge := p.ask(model, due)
		name, err := p.gather(ctx, model, number)
		if err == nil {
			err = p.work(ctx, model, merge, number)
		}
		if err == nil {
			err = p.delete(ctx, model, name)
		}
		if err != nil {
			return err
		}
		due = p.clock.now() + p.interval + p.lag(model, number+1)
	}
}

// gather creates the pods of a merge, anew each time it gives up, and returns what they are called when all run. What this
// machine takes to place and start pods is minutes in simulated time, in which nobody would give up: it is not counted.
func (p *pool) gather(ctx context.Context, model, number int) (name string, err error) {
	for attempt := 0; ; attempt++ {
		name := fmt.Sprintf("m%02d-%d-%d", model, number, attempt)
		if err := p.create(ctx, model, name); err != nil {
			return "", err
		}
		patience, cancel := ctx, context.CancelFunc(func() {})
		if p.strategy.givesUp {
			patience, cancel = context.WithTimeout(ctx, p.clock.real(p.giveUp+p.costs.quantile(0.9)))
		}
		err := p.await(patience, model, p.together)
		cancel()
		if err == nil || ctx.Err() != nil {
			return name, err
		}
		if err := p.delete(ctx, model, name); err != nil {
			return "", err
		}
	}
}

// create makes the pods of a merge, as one gang or each for itself. Volcano puts a pod without a PodGroup into one of its own.
// Here that is made: last and all at once, because Volcano looks at no pod before, and the moments between one pod and the next
// would be minutes here; and under a name that follows from the pod's, because of what was created in the same second Volcano
// takes the lesser name first, and a second here is minutes too.
func (p *pool) create(ctx context.Context, model int, name string) error {
	var pods, groups []client.Object
	for i := range p.experiment.machines {
		template := p.template(model)
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Namespace, pod.Name = p.name, podName(name, i)
		pod.Annotations = map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: p.groupOf(name, i)}
		pod.Spec.SchedulerName = "volcano"
		pods = append(pods, pod)
		if i == 0 || !p.strategy.gang {
			groups = append(groups, p.group(name, i))
		}
	}
	if err := p.createAll(ctx, pods); err != nil {
		return err
	}
	return p.createAll(ctx, groups)
}

// createAll creates objects side by side.
func (p *pool) createAll(ctx context.Context, objects []client.Object) error {
	errs := make([]error, len(objects))
	var group sync.WaitGroup
	for i, o := range objects {
		group.Go(func() { errs[i] = p.Client.Create(ctx, o) })
	}
	group.Wait()
	return errors.Join(errs...)
}

func podName(merge string, i int) string { return fmt.Sprintf("%s-%d", merge, i) }

// groupOf is the name of the PodGroup of a merge's i-th pod.
func (p *pool) groupOf(merge string, i int) string {
	if p.strategy.gang {
		return merge
	}
	return podName(merge, i)
}

// group is the PodGroup of a merge's i-th pod.
func (p *pool) group(merge string, i int) *schedulingv1beta1.PodGroup {
	pods := 1
	if p.strategy.gang {
		pods = p.experiment.machines
	}
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: p.groupOf(merge, i)},
		Spec: schedulingv1beta1.PodGroupSpec{
			MinMember:    int32(pods),
			MinResources: &corev1.ResourceList{testutil.GPUResource: *resource.NewQuantity(int64(pods), resource.DecimalSI)},
			Queue:        p.name,
		},
	}
}

// delete ends the pods of a merge and waits until they are gone.
func (p *pool) delete(ctx context.Context, model int, name string) error {
	for i := range p.experiment.machines {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: podName(name, i)}}
		if err := p.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
			return err
		}
	}
	for i := range p.experiment.machines {
		if i == 0 || !p.strategy.gang {
			if err := p.Client.Delete(ctx, p.group(name, i)); err != nil {
				return err
			}
		}
	}
	return p.await(ctx, model, none)
}
