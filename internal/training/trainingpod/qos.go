package trainingpod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// guaranteed are the resources of which containers of a tier have limits of just what they request.
func guaranteed(qos config.QoS) []corev1.ResourceName {
	switch qos {
	case config.QoSGuaranteed:
		return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	case config.QoSMemoryGuaranteed:
		return []corev1.ResourceName{corev1.ResourceMemory}
	case config.QoSBurstable:
	}
	return nil
}

// ApplyQoS gives containers the limits that a tier holds them to: what they request, where they have none. Requests stay as they
// are, so that a gang asks for as much as before; the API server makes limits that have no request to requests. What contradicts
// the tier stays as the user wrote it: CheckJobQoS and CheckMergeQoS find that.
func ApplyQoS(spec *corev1.PodSpec, qos config.QoS) {
	for _, h := range holders(spec, nil) {
		for _, name := range guaranteed(qos) {
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

// CheckJobQoS returns what contradicts the tier in what workers of a job are made of: limits that differ from requests and, for a
// tier that is Guaranteed, containers without CPU or memory, for which nobody else knows how much they need.
func CheckJobQoS(job *v1alpha1.ElasticTrainingJobSpec, tier config.Tier) field.ErrorList {
	found := checkTemplate(&job.Template.Spec, tier)
	if master := job.Master; master != nil && master.Resources != nil && job.Template.Spec.Resources == nil {
		own := holder{field.NewPath("spec", "master", "resources"), "worker 0", master.Resources, master.Resources.Requests}
		found = append(found, own.check(tier)...)
	}
	return found
}

// CheckMergeQoS returns what CheckJobQoS does, of the template of a merge.
func CheckMergeQoS(job *v1alpha1.MergeJobSpec, tier config.Tier) field.ErrorList {
	return checkTemplate(&job.Template.Spec, tier)
}

func checkTemplate(spec *corev1.PodSpec, tier config.Tier) field.ErrorList {
	var found field.ErrorList
	for _, h := range holders(spec, field.NewPath("spec", "template", "spec")) {
		found = append(found, h.check(tier)...)
	}
	return found
}

// Say puts what was found against a job, which is something, in one sentence without a full stop.
func Say(found field.ErrorList) string {
	said := found[0].Error()
	if more := len(found) - 1; more > 0 {
		said += fmt.Sprintf(" (and so in %d more of its fields)", more)
	}
	return said
}

// holder is what has resources of its own, where they stand, and what it requests.
type holder struct {
	at        *field.Path
	name      string
	resources *corev1.ResourceRequirements
	requests  corev1.ResourceList
}

// holders are the containers of a pod, or the pod alone where it has resources as a whole: what Kubernetes looks at for the QoS
// class (k8s.io/kubernetes/pkg/apis/core/v1/helper/qos).
func holders(spec *corev1.PodSpec, at *field.Path) []holder {
	if spec.Resources != nil {
		return []holder{{at.Child("resources"), "the pod as a whole", spec.Resources, defaulted(spec).Spec.Resources.Requests}}
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

func (h holder) check(tier config.Tier) field.ErrorList {
	var found field.ErrorList
	for _, name := range guaranteed(tier.QoS) {
		limit, limited := h.resources.Limits[name]
		request, requested := h.requests[name]
		switch {
		case limited && requested && limit.Cmp(request) != 0:
			found = append(found, field.Invalid(h.at.Child("limits").Key(string(name)), limit.String(), fmt.Sprintf(
				"is not what is requested (%s), and tier %s is %s, so that the two are the same: leave one of them out, or name "+
					"another tier", request.String(), tier.Name, tier.QoS)))
		case tier.QoS == config.QoSGuaranteed && limit.IsZero() && request.IsZero():
			found = append(found, field.Required(h.at.Child("requests").Key(string(name)), fmt.Sprintf(
				"tier %s is %s, so that every container asks for cpu and memory, and %s asks for no %s: say how much it needs, or name "+
					"another tier", tier.Name, tier.QoS, h.name, name)))
		}
	}
	return found
}
