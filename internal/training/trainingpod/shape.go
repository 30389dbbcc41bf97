package trainingpod

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	componentresource "k8s.io/component-helpers/resource"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// OwnMaster tells whether worker 0 may ask for something else than the others, or elsewhere.
func OwnMaster(job *v1alpha1.ElasticTrainingJob) bool {
	m := job.Spec.Master
	return m != nil && (m.Resources != nil || len(m.NodeSelector) > 0) || enforced(job.Status.Sizing)
}

// Spec is what worker i's pod is made of: the template, what the job overrides of it for worker 0, the requests that were found
// for the attempt, and the models of accelerator that will do, whose node labels are given. Model is the one that the attempt
// uses; empty for all that the job lists. What Tideline adds for Volcano and the rendezvous is not in it.
func Spec(job *v1alpha1.ElasticTrainingJob, labels config.Accelerators, model string, i int32) *corev1.PodSpec {
	spec := template(job, i)
	sizing.Apply(sizing.RoleOf(i), spec.Containers, job.Status.Sizing)
	if a := job.Spec.Accelerator; a != nil {
		containers := job.Spec.Template.Spec.Containers
		trainer := rendezvous.TrainerIndex(containers)
		asked, has := containers[trainer].Resources, spec.Containers[trainer].Resources
		resource := corev1.ResourceName(config.AcceleratorResource(a.Resource))
		if label, known := labels.ModelLabel(a.Resource); known && (!asks(asked, resource) || asks(has, resource)) {
			models := slices.Clone(a.Models)
			if model != "" {
				models = []string{model}
			}
			require(spec, corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpIn, Values: models})
		}
	}
	for _, n := range job.Status.AvoidedNodes {
		if n.Until != nil {
			avoid(spec, n.Name)
		}
	}
	return spec
}

// template is what the user says of worker i's pod.
func template(job *v1alpha1.ElasticTrainingJob, i int32) *corev1.PodSpec {
	spec := job.Spec.Template.Spec.DeepCopy()
	if master := job.Spec.Master; i == 0 && master != nil {
		if master.Resources != nil {
			spec.Containers[rendezvous.TrainerIndex(spec.Containers)].Resources = *master.Resources.DeepCopy()
		}
		if len(master.NodeSelector) > 0 {
			if spec.NodeSelector == nil {
				spec.NodeSelector = map[string]string{}
			}
			maps.Copy(spec.NodeSelector, master.NodeSelector)
		}
	}
	return spec
}

func asks(r corev1.ResourceRequirements, name corev1.ResourceName) bool {
	_, limited := r.Limits[name]
	_, requested := r.Requests[name]
	return limited || requested
}

// Requests is what a pod asks for, as the scheduler counts it: init containers, sidecars and pod overhead included, limits
// standing in for missing requests as the API server will default them.
func Requests(spec *corev1.PodSpec) corev1.ResourceList { return Counted(spec, nil) }

// Counted is what a pod asks for as caps and budgets count it: [Requests], and the accelerators of which these are parts.
func Counted(spec *corev1.PodSpec, sharing config.Sharing) corev1.ResourceList {
	return sharing.Requests(defaulted(spec))
}

// defaulted is a pod with the requests that the API server gives it: limits, where containers have no requests; and where the
// pod as a whole has resources and no requests, what its containers request together, or its limits
// (k8s.io/kubernetes/pkg/apis/core/v1, SetDefaults_Pod).
func defaulted(spec *corev1.PodSpec) *corev1.Pod {
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

// AddRequests adds what n pods ask for to a total.
func AddRequests(total, each corev1.ResourceList, n int32) {
	for name, quantity := range each {
		quantity.Mul(int64(n))
		sum := total[name]
		sum.Add(quantity)
		total[name] = sum
	}
}

// Uncountable is a request that is less than nothing, or so much that it reads as that: Volcano's scheduler does not reckon with
// one, and ends (volcano.sh/volcano/pkg/scheduler/api/resource_info.go, Sub). It is false where there is none.
func Uncountable(requests corev1.ResourceList) (corev1.ResourceName, resource.Quantity, bool) {
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if q := requests[name]; q.Sign() < 0 || q.Value() < 0 || q.MilliValue() < 0 {
			return name, q, true
		}
	}
	return "", resource.Quantity{}, false
}

// GPUs is how many GPUs worker i holds, of all its containers.
func GPUs(job *v1alpha1.ElasticTrainingJob, i int32) int64 {
	containers := job.Spec.Template.Spec.Containers
	var n int64
	for c := range containers {
		container := &containers[c]
		if i == 0 && job.Spec.Master != nil && job.Spec.Master.Resources != nil && c == rendezvous.TrainerIndex(containers) {
			container = &corev1.Container{Resources: *job.Spec.Master.Resources}
		}
		n += rendezvous.GPUs(container)
	}
	return n
}

// defaultRequests requests of others what is not requested.
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
