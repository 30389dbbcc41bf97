package trainingpod

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	componentresource "k8s.io/component-helpers/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// WorkerSpec is the spec of worker i's pod without what Tideline adds for Volcano and the rendezvous: the template, spec.master
// for worker 0, what its role says, the attempt's data sets, the requests that sizing found, the nodes that the job avoids,
// and the nodes of the attempt's model of accelerator. An empty model stands for all models that the job lists. labels say
// which node label names a model.
func WorkerSpec(job *v1beta1.ElasticTrainingJob, labels config.Accelerators, model string, i int32) *corev1.PodSpec {
	spec := templateOf(job, i)
	sizing.ApplyRequests(RoleOf(&job.Spec, i), spec.Containers, job.Status.Sizing)
	if a := job.Spec.Accelerator; a != nil {
		containers := job.Spec.Template.Spec.Containers
		trainer := rendezvous.TrainerIndex(containers)
		asked, has := containers[trainer].Resources, spec.Containers[trainer].Resources
		resource := corev1.ResourceName(config.AcceleratorResource(a.ResourceName))
		// A worker whose own resources drop the accelerator may run on any node.
		if label, known := labels.ModelLabel(a.ResourceName); known && (!asksFor(asked, resource) || asksFor(has, resource)) {
			models := slices.Clone(a.Models)
			if model != "" {
				models = []string{model}
			}
			requireLabel(spec, corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpIn, Values: models})
		}
	}
	if i == 0 && TakesHostPort(job) {
		declarePort(&spec.Containers[rendezvous.TrainerIndex(spec.Containers)], rendezvous.PortOf(job))
	}
	addData(job, spec)
	for _, n := range job.Status.AvoidedNodes {
		if n.Until != nil {
			avoidNode(spec, n.Name)
		}
	}
	return spec
}

// TakesHostPort is true if worker 0 serves the rendezvous on a port of its node, so that a node takes one such pod. The others
// take none.
func TakesHostPort(job *v1beta1.ElasticTrainingJob) bool {
	return job.Spec.Template.Spec.HostNetwork
}

// declarePort has the container say that it takes a port of its node, because schedulers part pods by what they say.
func declarePort(c *corev1.Container, port int32) {
	for i := range c.Ports {
		if p := &c.Ports[i]; p.ContainerPort == port && p.Protocol != corev1.ProtocolUDP && p.Protocol != corev1.ProtocolSCTP {
			return
		}
	}
	c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP})
}

// templateOf is the pod that the user wrote for worker i: the template, with spec.master for worker 0, or with what its role
// says.
func templateOf(job *v1beta1.ElasticTrainingJob, i int32) *corev1.PodSpec {
	spec := job.Spec.Template.Spec.DeepCopy()
	if len(spec.Containers) == 0 { // Only a definition without bounds admits such a template.
		return spec
	}
	trainer := &spec.Containers[rendezvous.TrainerIndex(spec.Containers)]
	if own := overrideOf(&job.Spec, i); own != nil {
		if own.Resources != nil {
			trainer.Resources = *own.Resources.DeepCopy()
		}
		if len(own.NodeSelector) > 0 {
			if spec.NodeSelector == nil {
				spec.NodeSelector = map[string]string{}
			}
			maps.Copy(spec.NodeSelector, own.NodeSelector)
		}
	}
	if role := job.Spec.SeatOf(i).Role; role != nil {
		applyRole(trainer, role)
	}
	return spec
}

// asksFor is true if the resources name the resource.
func asksFor(r corev1.ResourceRequirements, name corev1.ResourceName) bool {
	_, limited := r.Limits[name]
	_, requested := r.Requests[name]
	return limited || requested
}

// PodRequests is what a pod asks for, as the scheduler counts it: with init containers, sidecars and pod overhead, and with
// limits in place of missing requests, as the API server defaults them.
func PodRequests(spec *corev1.PodSpec) corev1.ResourceList { return CountedRequests(spec, nil, nil) }

// CountedRequests is what a pod asks for as caps and budgets count it: [PodRequests], and whole accelerators for resources that
// are parts of one and for devices. claimed is what the devices that the pod claims count as.
func CountedRequests(spec *corev1.PodSpec, sharing config.Sharing, claimed corev1.ResourceList) corev1.ResourceList {
	return sharing.CountedWith(withDefaults(spec), claimed)
}

// withDefaults is a pod with the requests that the API server defaults (k8s.io/kubernetes/pkg/apis/core/v1, SetDefaults_Pod):
// limits stand in for missing requests of containers. A pod that has resources as a whole but no requests gets those of
// its containers together, else its limits.
func withDefaults(spec *corev1.PodSpec) *corev1.Pod {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			defaultRequests(&containers[i].Resources, containers[i].Resources.Limits)
		}
	}
	if whole := pod.Spec.Resources; whole != nil {
		defaultRequests(whole, componentresource.AggregateContainerRequests(pod, componentresource.PodResourcesOptions{}))
		defaultRequests(whole, whole.Limits)
	}
	return pod
}

// AddRequests adds to total what n pods ask for, each asking for each.
func AddRequests(total, each corev1.ResourceList, n int32) {
	for name, quantity := range each {
		quantity.Mul(int64(n))
		sum := total[name]
		sum.Add(quantity)
		total[name] = sum
	}
}

// FindUncountable returns a request that is negative, or so large that it overflows; false if there is none. Volcano's
// scheduler ends when it subtracts one (volcano.sh/volcano/pkg/scheduler/api/resource_info.go, Sub).
func FindUncountable(requests corev1.ResourceList) (corev1.ResourceName, resource.Quantity, bool) {
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if q := requests[name]; q.Sign() < 0 || q.Value() < 0 || q.MilliValue() < 0 {
			return name, q, true
		}
	}
	return "", resource.Quantity{}, false
}

// GPUs is how many GPUs worker i holds, of all its containers, without devices that it claims.
func GPUs(job *v1beta1.ElasticTrainingJob, i int32) int64 {
	containers := job.Spec.Template.Spec.Containers
	own := overrideOf(&job.Spec, i)
	var n int64
	for c := range containers {
		container := &containers[c]
		if own != nil && own.Resources != nil && c == rendezvous.TrainerIndex(containers) {
			container = &corev1.Container{Resources: *own.Resources}
		}
		n += rendezvous.GPUs(container)
	}
	return n
}

// defaultRequests adds the requests that are missing from others.
func defaultRequests(r *corev1.ResourceRequirements, others corev1.ResourceList) {
	for name, quantity := range others {
		if _, ok := r.Requests[name]; !ok {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = quantity
		}
	}
}
