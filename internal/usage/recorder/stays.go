// Package recorder records in the ledger which pods held what, and for how long. It never delays a job: entries that the
// ledger cannot record now wait in memory, within bounds.
package recorder

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// Place is what is known of where a pod is.
type Place struct {
	// Profile of its namespace; empty for a namespace that belongs to none.
	Profile string
	// Queue of its gang; empty for none.
	Queue string
	// Node has the labels of the node that it is bound to.
	Node map[string]string
	// Claimed is what the devices that the pod claims count as.
	Claimed corev1.ResourceList
}

// IsCounted tells whether the ledger records a pod: all pods of Tideline's jobs, and all pods in namespaces of profiles. A pod
// that is not bound to a node holds nothing.
func IsCounted(pod *corev1.Pod, place Place) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	kind, _ := kube.OurController(pod)
	return kind != "" || place.Profile != ""
}

// StayOf is the time that a pod has held what it asks for: until a time at which it was seen, or until it ended.
func StayOf(pod *corev1.Pod, place Place, cfg *config.Configuration, seen time.Time) ledger.Stay {
	asked := cfg.Sharing.CountedWith(pod, place.Claimed)
	s := ledger.Stay{
		Pod: ledger.Pod{
			UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName,
			Profile: place.Profile, Queue: place.Queue, Tier: TierOf(pod, cfg), Resources: resourcesOf(asked),
		},
		Begin: podstate.BoundTime(pod).Time, End: seen,
	}
	describePod(&s.Pod, pod, cfg)
	if accelerator := acceleratorOf(asked, cfg); accelerator != "" {
		s.Model = place.Node[cfg.Accelerators[accelerator]]
	}
	if !hasEnded(pod) {
		return s
	}
	s.Final, s.Outcome = true, ledger.Succeeded
	switch {
	case pod.DeletionTimestamp != nil:
		s.Outcome = ledger.Deleted
	case pod.Status.Phase == corev1.PodFailed:
		s.Outcome = ledger.Failed
	}
	if end, known := endedAt(pod); known && end.Before(seen) {
		s.End = end
	}
	return s
}

// UserOf is the owner of a pod: the owner of its Tideline job, or the user that its annotation or label names; empty if unknown.
func UserOf(pod *corev1.Pod, cfg *config.Configuration) string {
	if kind, _ := kube.OurController(pod); kind == "" {
		return cfg.Ledger.UserNamedBy(pod)
	}
	return pod.Annotations[v1beta1.AnnotationOwner]
}

// describePod fills in job, task and owner of a pod. Tideline's labels and annotations count only on pods that Tideline's
// jobs control. Any user who may create pods can write them on others.
func describePod(p *ledger.Pod, pod *corev1.Pod, cfg *config.Configuration) {
	p.User = UserOf(pod, cfg)
	if p.Kind, p.Task = kube.OurController(pod); p.Kind == "" {
		p.Kind, p.Task = TaskOf(pod)
		return // The labels below count only on pods of Tideline's jobs.
	}
	p.Task = cmp.Or(pod.Labels[v1beta1.LabelTask], p.Task)
	p.Role = cmp.Or(pod.Labels[v1beta1.LabelRole], pod.Labels[v1beta1.LabelPart])
	if p.Run = pod.Labels[v1beta1.LabelRun]; p.Run == "" {
		p.Run = pod.Labels[v1beta1.LabelAttempt]
	}
}

// TaskOf is what a pod that is not ours belongs to: its controller, or itself. A kind of another group that has the name
// of one of ours is told apart.
func TaskOf(pod *corev1.Pod) (kind, name string) {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return "Pod", pod.Name
	case owner.Kind == v1beta1.ElasticTrainingJobKind || owner.Kind == v1beta1.MergeJobKind:
		return fmt.Sprintf("%s (%s)", owner.Kind, owner.APIVersion), owner.Name
	}
	return owner.Kind, owner.Name
}

// EndedStay is the end of the stay of a pod that was deleted now, as it was last seen.
func EndedStay(pod *corev1.Pod, place Place, cfg *config.Configuration, now time.Time) ledger.Stay {
	s := StayOf(pod, place, cfg, now)
	if !s.Final {
		s.Final, s.Outcome = true, ledger.Deleted
	}
	return s
}

// end makes the end of a stay of what is known of a pod.
type end func(pod *corev1.Pod, place Place, cfg *config.Configuration, now time.Time) ledger.Stay

// lostStay ends a stay whose end no operator saw. It ends when the pod was last seen.
func lostStay(s ledger.Stay) ledger.Stay {
	s.Final, s.Outcome, s.Uncertain = true, ledger.Lost, true
	return s
}

// missedStay ends the stay of a pod that ran when the watch last saw it. When and how it ended is unknown.
func missedStay(pod *corev1.Pod, place Place, cfg *config.Configuration, now time.Time) ledger.Stay {
	return lostStay(StayOf(pod, place, cfg, now))
}

// pastEnd is the end of the stay of a pod that ended while no operator was running. If the pod does not say when, the end
// is uncertain: it was when the ledger last saw it run, or, where the ledger does not have it as running and sighted is
// zero, the last time that the pod tells of. It is never now, because that may have been days ago.
func pastEnd(sighted time.Time) end {
	return func(pod *corev1.Pod, place Place, cfg *config.Configuration, now time.Time) ledger.Stay {
		s := StayOf(pod, place, cfg, now)
		if _, known := endedAt(pod); known {
			return s
		}
		s.Uncertain = true
		if s.End = sighted; sighted.IsZero() {
			s.End = lastOf(pod, s.Begin)
		}
		// A node's clock may be ahead. An end in the future would be charged for time that has not passed.
		if s.End.After(now) {
			s.End = now
		}
		return s
	}
}

// lastOf is the last time that a pod tells of, of its containers and conditions; begin if it tells of none after that.
func lastOf(pod *corev1.Pod, begin time.Time) time.Time {
	last, _ := endedAt(pod)
	for _, c := range pod.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	if last.Before(begin) {
		return begin
	}
	return last
}

// TierOf is the tier whose PriorityClass the pod has; empty for a class of others.
func TierOf(pod *corev1.Pod, cfg *config.Configuration) string {
	for _, t := range cfg.Tiers {
		if pod.Spec.Priority != nil && (*pod.Spec.Priority == t.Priority || *pod.Spec.Priority == t.SurplusPriority) {
			return t.Name
		}
	}
	return ""
}

// acceleratorOf is the first by name of the accelerators that are asked for and that are counted; empty for none.
func acceleratorOf(asked corev1.ResourceList, cfg *config.Configuration) string {
	for _, name := range cfg.CountedAccelerators() {
		if quantity := asked[corev1.ResourceName(name)]; !quantity.IsZero() {
			return name
		}
	}
	return ""
}

const mebibyte = 1 << 20

// resourcesOf counts as the ledger does: mebibytes that were begun, and thousandths of everything else.
func resourcesOf(asked corev1.ResourceList) ledger.Resources {
	r := make(ledger.Resources, len(asked))
	for name, quantity := range asked {
		if capacity.IsBytes(name) {
			r[string(name)] = (quantity.Value() + mebibyte - 1) / mebibyte
		} else {
			r[string(name)] = config.QuantityThousandths(quantity)
		}
	}
	return r
}

// hasEnded tells whether a pod holds nothing any more, although it may still exist.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// endedAt is when the last container of a pod that has ended did; false where not all say so, as of a pod whose node is lost.
func endedAt(pod *corev1.Pod) (time.Time, bool) {
	end, said := time.Time{}, 0
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated == nil || c.State.Terminated.FinishedAt.IsZero() {
			continue
		}
		said++
		if at := c.State.Terminated.FinishedAt.Time; at.After(end) {
			end = at
		}
	}
	return end, said > 0 && said >= len(pod.Spec.Containers)
}
