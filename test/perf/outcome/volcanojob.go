package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/internal/platform/gang"
)

// volcanoJobs runs trainings as the controller of Volcano Jobs does: all pods of replicas in a PodGroup of minAvailable, and a
// new pod for each that was evicted.
type volcanoJobs struct {
	*cluster

	minAvailable, replicas func(*job) int32
}

func (v *volcanoJobs) arrive(r *run) {
	r.need = v.minAvailable(&r.job)
	all := corev1.ResourceList{gpu: *resource.NewQuantity(int64(r.need), resource.DecimalSI)}
	v.addGroup(gang.Group{
		Namespace: r.team, Name: r.name, Queue: r.team, MinMember: r.need, MinResources: all,
	}.PodGroup())
	for i := range v.replicas(&r.job) {
		v.addPod(r, fmt.Sprintf("%s-worker-%d", r.name, i))
	}
}

func (v *volcanoJobs) addPod(r *run, name string) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.team, Name: name,
		Annotations: map[string]string{"scheduling.k8s.io/group-name": r.name, "volcano.sh/task-spec": "worker"},
	}}
	one := corev1.ResourceList{gpu: resource.MustParse("1")}
	p.Spec.SchedulerName = "volcano"
	p.Spec.Containers = []corev1.Container{{
		Name: "trainer", Image: "trainer", Resources: corev1.ResourceRequirements{Requests: one, Limits: one},
	}}
	v.create(r, p, 0)
}

func (v *volcanoJobs) left(r *run, p *corev1.Pod) { v.addPod(r, p.Name) }

func (v *volcanoJobs) settle() error { return nil }

func (v *volcanoJobs) forget(*run) {}
