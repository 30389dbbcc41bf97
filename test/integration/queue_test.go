package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	busv1alpha1 "volcano.sh/apis/pkg/apis/bus/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/test/testutil"
)

// closeQueue closes a queue as `vcctl queue operate` does, and waits until it is not open any more; while gangs are in it, it is
// Closing.
func closeQueue(s *testutil.Scenario, queue *schedulingv1beta1.Queue) {
	GinkgoHelper()
	operateQueue(s, queue, busv1alpha1.CloseQueueAction, schedulingv1beta1.QueueStateClosed, schedulingv1beta1.QueueStateClosing)
}

// openQueue opens a queue again.
func openQueue(s *testutil.Scenario, queue *schedulingv1beta1.Queue) {
	GinkgoHelper()
	operateQueue(s, queue, busv1alpha1.OpenQueueAction, schedulingv1beta1.QueueStateOpen)
}

// operateQueue has Volcano do something with a queue, and waits until the queue is in one of the states.
func operateQueue(s *testutil.Scenario, queue *schedulingv1beta1.Queue, action busv1alpha1.Action,
	states ...schedulingv1beta1.QueueState,
) {
	GinkgoHelper()
	target := metav1.NewControllerRef(queue, schedulingv1beta1.SchemeGroupVersion.WithKind("Queue"))
	command := &busv1alpha1.Command{TargetObject: target, Action: string(action)}
	command.Namespace, command.GenerateName = s.Namespace, "queue-"
	command.OwnerReferences = []metav1.OwnerReference{*target}
	s.Create(command)
	Eventually(func() (schedulingv1beta1.QueueState, error) {
		err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(queue), queue)
		return queue.Status.State, err
	}).Should(BeElementOf(states), "Volcano has done %s with queue %s", action, queue.Name)
}
