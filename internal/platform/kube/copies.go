package kube

import (
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/intern"
)

// Copies are what objects in the caches have alike, such as the requests, the owner and the annotations of a job's pods: 40,000
// pods would have 60 MB of it. Whatever reads a cache without a copy of its own must not change what it reads. The zero value is
// ready.
type Copies struct {
	texts       intern.Table[string]
	resources   intern.Table[corev1.ResourceList]
	containers  intern.Table[[]corev1.Container]
	annotations intern.Table[map[string]string]
}

// ShareObject has an object that is about to be cached share its metadata with others, and the resources of a job's template.
func (c *Copies) ShareObject(o client.Object) {
	if m, ok := o.(metav1.ObjectMetaAccessor); ok {
		if metadata, ok := m.GetObjectMeta().(*metav1.ObjectMeta); ok {
			c.shareMetadata(metadata)
		}
	}
	switch job := o.(type) {
	case *v1beta1.ElasticTrainingJob:
		c.shareTemplate(&job.Spec.Template)
		// Decoders leave room for as many again.
		job.Status.Conditions, job.Status.Members = slices.Clone(job.Status.Conditions), slices.Clone(job.Status.Members)
	case *v1beta1.MergeJob:
		c.shareTemplate(&job.Spec.Template)
	}
}

func (c *Copies) shareTemplate(template *corev1.PodTemplateSpec) {
	for _, containers := range [][]corev1.Container{template.Spec.Containers, template.Spec.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			r.Requests, r.Limits = c.ShareResources(r.Requests), c.ShareResources(r.Limits)
		}
	}
}

// sharePod has a stripped pod share what others have too.
func (c *Copies) sharePod(pod *corev1.Pod) {
	c.shareMetadata(&pod.ObjectMeta)
	spec, status := &pod.Spec, &pod.Status
	spec.NodeName, spec.SchedulerName = c.shareText(spec.NodeName), c.shareText(spec.SchedulerName)
	spec.Containers, spec.InitContainers = c.shareContainers(spec.Containers), c.shareContainers(spec.InitContainers)
	status.Conditions = slices.Clone(status.Conditions)
	for i := range status.Conditions {
		s := &status.Conditions[i]
		s.Type, s.Status = corev1.PodConditionType(c.shareText(string(s.Type))), corev1.ConditionStatus(c.shareText(string(s.Status)))
		s.Reason = c.shareText(s.Reason)
	}
}

// shareMetadata has metadata share its texts, and its annotations as a whole: those of pods of one gang are alike.
func (c *Copies) shareMetadata(m *metav1.ObjectMeta) {
	m.Namespace = c.shareText(m.Namespace)
	if m.Labels != nil {
		labels := make(map[string]string, len(m.Labels))
		for key, value := range m.Labels {
			labels[c.shareText(key)] = c.shareText(value)
		}
		m.Labels = labels
	}
	if all := m.Annotations; all != nil {
		var key []byte
		for _, name := range slices.Sorted(maps.Keys(all)) {
			key = appendText(appendText(key, name), all[name])
		}
		m.Annotations = c.annotations.Intern(string(key), func() map[string]string { return all })
	}
	m.OwnerReferences = slices.Clone(m.OwnerReferences)
	for i := range m.OwnerReferences {
		o := &m.OwnerReferences[i]
		o.APIVersion, o.Kind, o.Name = c.shareText(o.APIVersion), c.shareText(o.Kind), c.shareText(o.Name)
		o.UID = types.UID(c.shareText(string(o.UID)))
	}
}

// shareText returns a text that is equal to this one.
func (c *Copies) shareText(s string) string {
	if s == "" {
		return ""
	}
	return c.texts.Intern(s, func() string { return s })
}

// ShareResources returns resources that are equal to these. Neither must be changed any more.
func (c *Copies) ShareResources(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	return c.resources.Intern(string(appendResources(nil, list)), func() corev1.ResourceList { return list })
}

// mostContainers is how many containers a pod has at most that shares them. A container takes 440 bytes, and may add two to a
// key.
const mostContainers = 8

// shareContainers returns stripped containers that are equal to these. Neither must be changed any more. It leaves a list as it
// is if it is long, or one of its containers takes a port of the node.
func (c *Copies) shareContainers(list []corev1.Container) []corev1.Container {
	if len(list) > mostContainers {
		return list
	}
	if len(list) == 0 {
		return nil
	}
	var key []byte
	for i := range list {
		if len(list[i].Ports) > 0 {
			return list
		}
		policy := "-"
		if p := list[i].RestartPolicy; p != nil {
			policy = string(*p)
		}
		key = appendResources(appendText(key, policy), list[i].Resources.Requests)
	}
	return c.containers.Intern(string(key), func() []corev1.Container { return list })
}

// appendResources appends resources to a key, with the text and the exact number of each: 1000E and 1 look alike once they are
// printed, and 1.125 and 1125m are printed as they were written.
func appendResources(key []byte, list corev1.ResourceList) []byte {
	key = binary.AppendUvarint(key, uint64(len(list)))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		key = appendText(appendText(key, string(name)), string(quantity.Format))
		key = appendText(key, quantity.String())
		exact := quantity.AsDec()
		key = appendText(binary.AppendVarint(key, int64(exact.Scale())), exact.UnscaledBig().String())
	}
	return key
}

// appendText appends a text with its length to a key, so that no two texts together look like two others.
func appendText(key []byte, s string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(s))), s...)
}
