package resourcequotaprofile

import (
	corev1 "k8s.io/api/core/v1"

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
}
