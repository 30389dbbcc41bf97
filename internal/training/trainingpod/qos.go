package trainingpod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// guaranteedResources are the resources whose limits must equal their requests with that QoS.
func guaranteedResources(qos config.QoS) []corev1.ResourceName {
	switch qos {
	case config.QoSGuaranteed:
		return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	case config.QoSMemoryGuaranteed:
		return []corev1.ResourceName{corev1.ResourceMemory}
	case config.QoSBurstable:
	}
	return nil
}

// ApplyQoS sets missing limits to the requests, for the resources that the QoS guarantees. It never changes a request, so that a
// gang asks for as much as its template says, nor a limit that contradicts the QoS: CheckJobQoS and CheckMergeQoS find those.
func ApplyQoS(spec *corev1.PodSpec, qos config.QoS) {
	for _, h := range resourceHolders(spec, nil) {
		for _, name := range guaranteedResources(qos) {
			requested := h.requests[name]
			if _, limited := h.resources.Limits[name]; limited || requested.IsZero() {
				continue
			}
			if h.resources.Limits == nil {
				h.resources.Limits = corev1.ResourceList{}
			}
			h.resources.Limits[name] = requested
		}
	}
}

// CheckJobQoS returns what in the job's template contradicts the QoS of its tier: limits that differ from requests and, in a
// Guaranteed tier, containers without CPU or memory. The operator cannot guess how much those need.
func CheckJobQoS(job *v1beta1.ElasticTrainingJobSpec, tier config.Tier) field.ErrorList {
	found := checkTemplate(&job.Template.Spec, tier)
	if job.Template.Spec.Resources != nil {
		return found
	}
	own := func(at *field.Path, who string, r *corev1.ResourceRequirements) {
		if r != nil {
			found = append(found, holder{at.Child("resources"), who, r, r.Requests}.checkQoS(tier)...)
		}
	}
	if job.Master != nil {
		own(field.NewPath("spec", "master"), "worker 0", job.Master.Resources)
	}
	for i := range job.Roles {
		own(field.NewPath("spec", "roles").Index(i), "role "+job.Roles[i].Name, job.Roles[i].Resources)
	}
	return found
}

// CheckMergeQoS is CheckJobQoS for the template of a merge.
func CheckMergeQoS(job *v1beta1.MergeJobSpec, tier config.Tier) field.ErrorList {
	return checkTemplate(&job.Template.Spec, tier)
}

func checkTemplate(spec *corev1.PodSpec, tier config.Tier) field.ErrorList {
	var found field.ErrorList
	for _, h := range resourceHolders(spec, field.NewPath("spec", "template", "spec")) {
		found = append(found, h.checkQoS(tier)...)
	}
	return found
}

// DescribeErrors writes the first of the errors and counts the others. There must be at least one. It ends without a full stop.
func DescribeErrors(found field.ErrorList) string {
	said := found[0].Error()
	if more := len(found) - 1; more > 0 {
		said += fmt.Sprintf(" (and %d more like it)", more)
	}
	return said
}

// holder is a container, or a pod as a whole, that has resources: their field, and what it requests by them.
type holder struct {
	at        *field.Path
	name      string
	resources *corev1.ResourceRequirements
	requests  corev1.ResourceList
}

// resourceHolders are the containers of a pod, or the pod alone if it has resources as a whole: what Kubernetes reads for the QoS
// class (k8s.io/kubernetes/pkg/apis/core/v1/helper/qos).
func resourceHolders(spec *corev1.PodSpec, at *field.Path) []holder {
	if spec.Resources != nil {
		return []holder{{at.Child("resources"), "the pod as a whole", spec.Resources, withDefaults(spec).Spec.Resources.Requests}}
	}
	var all []holder
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range list.containers {
			c := &list.containers[i]
			all = append(all, holder{
				at.Child(list.name).Index(i).Child("resources"), fmt.Sprintf("%q", c.Name), &c.Resources, c.Resources.Requests,
			})
		}
	}
	return all
}

func (h holder) checkQoS(tier config.Tier) field.ErrorList {
	var found field.ErrorList
	var missing []corev1.ResourceName
	for _, name := range guaranteedResources(tier.QoS) {
		limit, limited := h.resources.Limits[name]
		request, requested := h.requests[name]
		switch {
		case limited && requested && limit.Cmp(request) != 0:
			found = append(found, field.Invalid(h.at.Child("limits").Key(string(name)), limit.String(), fmt.Sprintf(
				"must equal the request (%s), because tier %s is %s: remove one of the two, or choose another tier",
				request.String(), tier.Name, tier.QoS)))
		case tier.QoS == config.QoSGuaranteed && limit.IsZero() && request.IsZero():
			missing = append(missing, name)
		}
	}
	switch at := h.at.Child("requests"); len(missing) {
	case 0:
	case 1:
		found = append(found, field.Required(at.Key(string(missing[0])), fmt.Sprintf(
			"tier %s (%s) needs cpu and memory requests on every container, and %s has none for %s: add it, or choose another tier",
			tier.Name, tier.QoS, h.name, missing[0])))
	default:
		found = append(found, field.Required(at, fmt.Sprintf(
			"tier %s (%s) needs cpu and memory requests on every container, and %s has neither: add them, or choose another tier",
			tier.Name, tier.QoS, h.name)))
	}
	return found
}
