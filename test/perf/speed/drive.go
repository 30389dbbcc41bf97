package main

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tideline-io/tideline/test/testutil"
)

// drive makes nodes without kubelets, as many as hold the pods of all jobs, and from then on binds pods to them in turn, says
// that they run, and removes those that are deleted: what a scheduler and kubelets do, as fast as the API server takes it.
func (r *run) drive(ctx context.Context) error {
	all := nodesFor(r.jobs)
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := range all {
		group.Go(func() error { return r.AddUnsimulatedNode(making, testutil.NewNode(nodeName(i), "all", gpusPerNode)) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(r.cluster.RESTConfig())
	if err != nil {
		return err
	}
	waiting := make(chan *corev1.Pod, 4*all*gpusPerNode)
	for range clients {
		go stepAll(ctx, clientset, waiting)
	}
	next := 0
	r.pods.mu.Lock()
	defer r.pods.mu.Unlock()
	// The informer calls this from one goroutine.
	r.pods.driver = func(pod *corev1.Pod) {
		pod = pod.DeepCopy()
		if pod.DeletionTimestamp == nil && pod.Spec.NodeName == "" {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, boundAnnotation, nodeName(next/gpusPerNode%all))
			next++
		}
		waiting <- pod
	}
	return nil
}

// nodesFor is how many nodes hold the pods of so many jobs, and of one that comes later.
func nodesFor(jobs int) int { return (most*(jobs+1) + gpusPerNode - 1) / gpusPerNode }

// stepAll drives pods until the context ends.
func stepAll(ctx context.Context, clientset kubernetes.Interface, waiting <-chan *corev1.Pod) {
	for {
		select {
		case <-ctx.Done():
			return
		case pod := <-waiting:
			switch err := step(ctx, clientset, pod); {
			case err == nil, ctx.Err() != nil:
			case apierrors.IsNotFound(err), apierrors.IsConflict(err): // What changed meanwhile is seen again.
			default:
				_, _ = fmt.Fprintln(os.Stderr, "speed: a pod could not be driven:", err)
			}
		}
	}
}

// boundAnnotation carries to which node the driver has bound a pod, in its own copy.
const boundAnnotation = "speed/node"

func nodeName(i int) string { return fmt.Sprintf("n%05d", i) }

// step does to a pod what comes next.
func step(ctx context.Context, clientset kubernetes.Interface, pod *corev1.Pod) error {
	pods := clientset.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		now := int64(0)
		this := &metav1.Preconditions{UID: &pod.UID}
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: this})
	case pod.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: pod.Annotations[boundAnnotation]},
		}, metav1.CreateOptions{})
	case !isReady(pod):
		pod.Status.Phase = corev1.PodRunning
		since := metav1.Now()
		pod.Status.StartTime = &since
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since})
		for _, c := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image, Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
			})
		}
		_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	default:
		return nil
	}
}
