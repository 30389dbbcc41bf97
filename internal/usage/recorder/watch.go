package recorder

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// podHandler keeps begins and ends of stays from the events of an informer. Before the operator leads it keeps nothing.
// When the operator begins to lead it looks at all pods in the cache, so nothing is missed.
func (r *Recorder) podHandler(ctx context.Context) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if pod, ok := o.(*corev1.Pod); ok && !initial && r.isLeading() {
				r.podChanged(ctx, nil, pod)
			}
		},
		UpdateFunc: func(before, o any) {
			old, was := before.(*corev1.Pod)
			pod, is := o.(*corev1.Pod)
			switch {
			case !was || !is || !r.isLeading():
			case old.UID != pod.UID: // The watch missed that the pod was deleted and another one with its name created.
				r.podGone(ctx, old, true)
				r.podChanged(ctx, nil, pod)
			default:
				r.podChanged(ctx, old, pod)
			}
		},
		DeleteFunc: func(o any) {
			missed, unseen := o.(toolscache.DeletedFinalStateUnknown)
			if unseen {
				o = missed.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok && r.isLeading() {
				r.podGone(ctx, pod, unseen)
			}
		},
	}
}

// podChanged keeps the begin of a pod that was not bound before, and the end of one that had not ended. Old is nil for a new pod.
func (r *Recorder) podChanged(ctx context.Context, old, pod *corev1.Pod) {
	switch {
	case pod.Spec.NodeName == "":
	case hasEnded(pod):
		if old == nil || !hasEnded(old) {
			r.keepEnded(ctx, pod, StayOf)
		}
	case old == nil || old.Spec.NodeName == "":
		if place := r.place(ctx, pod); IsCounted(pod, place) {
			r.keepBegin(pod.UID, StayOf(pod, place, r.config, r.now()))
		}
	}
}

// podGone keeps the end of a pod that was deleted. The watch may have missed the deletion.
func (r *Recorder) podGone(ctx context.Context, pod *corev1.Pod, unseen bool) {
	if pod.Spec.NodeName == "" {
		return
	}
	how := end(EndedStay)
	if unseen && !hasEnded(pod) {
		how = missedStay
	}
	r.keepEnded(ctx, pod, how)
}
