package resourcequotaprofile

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/internal/usage/recorder"
)

// idleTasks gathers what holds accelerators and is none of Tideline's jobs.
type idleTasks map[[3]string]*quota.IdleTask

// noteIdle adds a pod that holds so many thousandths of accelerators. A task was idle for as long as each of its pods.
func (r *Reconciler) noteIdle(tasks idleTasks, p *corev1.Pod, thousandths int64) {
	if ours, _ := kube.OurController(p); ours != "" || r.IdleTime == nil {
		return
	}
	kind, name := recorder.TaskOf(p)
	idle, known := r.IdleTime(p.Namespace, kind, name, podstate.BoundTime(p).Time)
	if !known {
		idle = 0
	}
	key := [3]string{p.Namespace, kind, name}
	t := tasks[key]
	if t == nil {
		t = &quota.IdleTask{Namespace: p.Namespace, Kind: kind, Name: name, User: recorder.UserOf(p, r.config), Idle: idle}
		tasks[key] = t
	}
	t.Accelerators, t.Idle = t.Accelerators+thousandths, min(t.Idle, idle)
	if set := setOfNotebook(p); set != nil && r.PodIdleTime != nil {
		t.Notebook = &quota.NotebookPod{
			UID: p.UID, Set: set.UID, User: recorder.UserOf(p, r.config), Accelerators: thousandths,
			Idle: r.PodIdleTime(p.Namespace, kind, name, p.Name, podstate.BoundTime(p).Time),
		}
		if tried := r.memory.notebooks[p.UID]; tried != nil {
			t.Notebook.Is, t.Notebook.Refused = tried.is, tried.refused
		}
	}
}

// setOfNotebook is the StatefulSet of a pod that may be a Notebook's, as the pod has it; nil for other pods. A pod that is being
// deleted is none: its Notebook may be starting anew.
func setOfNotebook(p *corev1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(p)
	if owner == nil || p.DeletionTimestamp != nil || !isOfGroup(owner, appsv1.GroupName, "StatefulSet") ||
		p.Name != owner.Name+"-0" || p.Labels[notebookLabel] != owner.Name {
		return nil
	}
	return owner
}

// notebookLabel is the label by which Kubeflow's controller has pods name their Notebook.
const notebookLabel = "notebook-name"

// isOfGroup tells whether an owner is of a kind of a group, in whatever version.
func isOfGroup(owner *metav1.OwnerReference, group, kind string) bool {
	parsed, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && parsed.Group == group && owner.Kind == kind
}
