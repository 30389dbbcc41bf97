package testutil

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// NewQueue creates a Volcano Queue of the scenario's name, waits until it is open, and deletes it when the test ends.
func (s *Scenario) NewQueue(spec schedulingv1beta1.QueueSpec) *schedulingv1beta1.Queue {
	s.t.Helper()
	return s.NewQueueNamed(s.Namespace, spec)
}

// NewQueueNamed is NewQueue with another name.
func (s *Scenario) NewQueueNamed(name string, spec schedulingv1beta1.QueueSpec) *schedulingv1beta1.Queue {
	s.t.Helper()
	queue := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	s.Create(queue)
	s.further = append(s.further, queue)
	s.awaitQueue(queue, schedulingv1beta1.QueueStateOpen)
	return queue
}

// UseQueue has the namespace name the queue of its jobs.
func (s *Scenario) UseQueue(queue *schedulingv1beta1.Queue) {
	s.t.Helper()
	s.Annotate(schedulingv1beta1.QueueNameAnnotationKey, queue.Name)
}

func (s *Scenario) awaitQueue(queue *schedulingv1beta1.Queue, states ...schedulingv1beta1.QueueState) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(queue), queue)
		return slices.Contains(states, queue.Status.State), err
	})
	s.must(err, fmt.Sprintf("wait until queue %s is %v", queue.Name, states))
}
