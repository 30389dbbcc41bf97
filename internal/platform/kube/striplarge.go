package kube

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/weight"
)

// StripJob drops the template of a job or merge that is too large to be run, with what roles and worker 0 have in place of parts
// of it, and notes what they weigh.
func StripJob(o any) (any, error) {
	switch job := o.(type) {
	case *v1beta1.ElasticTrainingJob:
		if dropTemplate(job, &job.Spec.Template, weight.Of(job.Spec.Roles)+weight.Of(job.Spec.Master)) {
			job.Spec.Roles, job.Spec.Master = nil, nil
		}
	case *v1beta1.MergeJob:
		dropTemplate(job, &job.Spec.Template, 0)
	}
	return StripMetadata(o)
}

// dropTemplate is true if it dropped the template, which weighs so much more with what belongs to it.
func dropTemplate(job client.Object, template *corev1.PodTemplateSpec, more int) (dropped bool) {
	if isDropped(template) {
		return false // It is seen for the second time.
	}
	annotations := maps.Clone(job.GetAnnotations())
	delete(annotations, weight.OversizedAnnotation)
	if n := weight.Of(*template) + more; n > weight.MostOfTemplate {
		annotations = setKey(annotations, weight.OversizedAnnotation, strconv.Itoa(n))
		dropped = true
		*template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: weight.Oversized}}}}
	}
	job.SetAnnotations(annotations)
	return dropped
}

// isDropped holds for what is left of a template. The API server takes no container of such a name, and none without an image.
func isDropped(template *corev1.PodTemplateSpec) bool {
	return len(template.Spec.Containers) == 1 && template.Spec.Containers[0].Name == weight.Oversized
}

// WeightOfDropped is what the template of a job in the cache weighed, in bytes, if it was dropped for that; 0 for one that is
// kept.
func WeightOfDropped(job client.Object) int {
	n, err := strconv.Atoi(job.GetAnnotations()[weight.OversizedAnnotation])
	if err != nil {
		return 0
	}
	return n
}

// stripLarge drops labels, owners and finalizers of an object that has too much of them. Of labels it keeps ours and some others,
// of owners the one that controls it, and whether there are others.
func stripLarge(o client.Object) {
	if labels := o.GetLabels(); weight.Of(labels) > weight.MostOfMetadata {
		kept := map[string]string{}
		for i, key := range slices.Sorted(maps.Keys(labels)) {
			if i < mostLabels || strings.HasPrefix(key, ourLabels) && len(kept) < 2*mostLabels {
				kept[key] = labels[key]
			}
		}
		o.SetLabels(kept)
	}
	if weight.Of(o.GetOwnerReferences()) > weight.MostOfMetadata {
		o.SetOwnerReferences(controllerOf(o))
	}
	if weight.Of(o.GetFinalizers()) > weight.MostOfMetadata {
		o.SetFinalizers(nil)
	}
}

// controllerOf is the reference to an object's controller; none if there is none, or one with a name that nothing has. One more
// stands for all other owners, because what has several is not deleted for the sake of one.
func controllerOf(o client.Object) []metav1.OwnerReference {
	owner := metav1.GetControllerOf(o)
	switch {
	case owner == nil || weight.Of(*owner) > weight.MostOfMetadata/8:
		return nil
	case len(o.GetOwnerReferences()) > 1:
		return []metav1.OwnerReference{*owner, {Name: weight.Oversized}}
	}
	return []metav1.OwnerReference{*owner}
}

// lighten shrinks a pod that is too large to be cached. One container asks for what all of them did. If that is not enough, its
// rules and volumes give way to one volume, by which the model of capacity knows that they are missing.
func lighten(pod *corev1.Pod) {
	pod.OwnerReferences = controllerOf(pod)
	spec := &pod.Spec
	total := resource.PodRequests(pod, resource.PodResourcesOptions{ExcludeOverhead: true})
	spec.InitContainers, spec.Resources = nil, nil
	spec.Containers = []corev1.Container{{
		Resources: corev1.ResourceRequirements{Requests: limitResources(total)}, Ports: atMost(allPorts(spec.Containers), 64),
	}}
	spec.Overhead = limitResources(spec.Overhead)
	pod.Status.ResourceClaimStatuses, pod.Status.Conditions = nil, atMost(pod.Status.Conditions, 16)
	pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = atMost(pod.Status.ContainerStatuses, 16), nil
	if weight.Of(*pod) <= weight.MostOfPod {
		return
	}
	spec.Affinity, spec.NodeSelector, spec.Tolerations, spec.TopologySpreadConstraints = nil, nil, nil, nil
	spec.ResourceClaims, spec.SchedulingGates = nil, atMost(spec.SchedulingGates, 1)
	spec.Volumes = []corev1.Volume{{Name: weight.Oversized}}
}

func allPorts(containers []corev1.Container) []corev1.ContainerPort {
	var all []corev1.ContainerPort
	for i := range containers {
		all = append(all, containers[i].Ports...)
	}
	return all
}

// atMost is a copy of the first n, so that the others are not kept in memory.
func atMost[T any](of []T, n int) []T { return slices.Clone(of[:min(n, len(of))]) }

// mostResources is how many resources of a pod count that asks for a great many: those of Kubernetes, and the first in order.
const mostResources = 64

// limitResources keeps the first of them, and Kubernetes' own.
func limitResources(of corev1.ResourceList) corev1.ResourceList {
	if len(of) <= mostResources {
		return of
	}
	kept := corev1.ResourceList{}
	for i, name := range slices.Sorted(maps.Keys(of)) {
		if i < mostResources || !strings.Contains(string(name), "/") && len(kept) < 2*mostResources {
			kept[name] = of[name]
		}
	}
	return kept
}
