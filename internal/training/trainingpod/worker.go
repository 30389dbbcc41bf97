// Package trainingpod makes the objects of an ElasticTrainingJob: worker pods, PodGroups, Service. A pod is the user's template
// with what package rendezvous adds for torchrun and package gang for Volcano.
package trainingpod

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/deviceclaim"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// Blueprint makes the objects of one attempt of a job.
type Blueprint struct {
	Job     *v1beta1.ElasticTrainingJob
	Attempt *v1beta1.AttemptStatus
	Tier    config.Tier
	Queue   string
	// Accelerators says which node label names the model of an accelerator.
	Accelerators config.Accelerators
	// Claims are the resource claims of each worker.
	Claims deviceclaim.Claims
	// Near are the HyperNodes that the core is in, the lowest tier first, with the host names of their nodes. Only surplus needs
	// them.
	Near []Near
	// StepDomains has the node or HyperNode that the step of a new surplus worker is to be within, by index.
	StepDomains map[int32]StepDomain
	// Shunned are nodes that workers prefer not to be on.
	Shunned []string
}

// NewPod returns worker i's pod.
func (b Blueprint) NewPod(i int32) *corev1.Pod {
	template := &b.Job.Spec.Template
	name := rendezvous.WorkerName(b.Job, i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       b.Job.Namespace,
			Name:            name,
			Labels:          b.podLabels(i, template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			OwnerReferences: []metav1.OwnerReference{b.ownerReference()},
		},
		Spec: *WorkerSpec(b.Job, b.Accelerators, b.Attempt.Model, i),
	}
	SetOwner(pod, b.Job.Spec.Owner)
	// After sizing, which WorkerSpec has applied: limits are set to what is requested by now.
	ApplyQoS(&pod.Spec, b.Tier.QoS)
	pod.Spec.Hostname = name
	pod.Spec.Subdomain = rendezvous.ServiceName(b.Job.Name)
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	if pod.Spec.HostNetwork && pod.Spec.DNSPolicy == "" {
		// The default for such pods is the host's DNS, which does not know the workers.
		pod.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	switch {
	case rendezvous.JoinsTorchrun(&b.Job.Spec, i):
		b.prepareTorchrun(pod, i)
	case !rendezvous.UsesTorchrun(&b.Job.Spec):
		b.preparePlain(pod, i)
	}
	trainer := &pod.Spec.Containers[rendezvous.TrainerIndex(pod.Spec.Containers)]
	b.prepareCheckpoint(pod, trainer, i)
	if trainer.TerminationMessagePolicy == "" {
		// The last lines of a failed container become its message, by which the operator tells failures apart.
		trainer.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
	b.stayNear(&pod.Spec, i)
	b.stayWithin(pod, i)
	preferOthers(&pod.Spec, b.Shunned)
	b.gangMember(i).JoinGang(pod)
	return pod
}

func (b Blueprint) prepareTorchrun(pod *corev1.Pod, i int32) {
	if pod.Spec.ShareProcessNamespace == nil && !pod.Spec.HostPID {
		// As PID 1, torchrun ignores SIGTERM while in rendezvous and holds its GPU for the whole grace period.
		pod.Spec.ShareProcessNamespace = ptr.To(true)
	}
	trainer := &pod.Spec.Containers[rendezvous.TrainerIndex(pod.Spec.Containers)]
	trainer.Env = append(trainer.Env, rendezvous.TorchrunEnv(b.Job, b.Attempt, i, trainer, b.Claims.CountFor(trainer).Devices)...)
}

func (b Blueprint) gangMember(i int32) gang.Member {
	if i < b.Attempt.MinReplicas {
		return gang.Member{
			Group: gang.CoreName(b.Job.Name), Role: b.taskName(i), Index: i, PriorityClass: b.Tier.ClassName(),
		}
	}
	return gang.Member{
		Group: gang.SurplusName(b.Job.Name), Role: b.taskName(i), Index: i, PriorityClass: b.Tier.SurplusClassName(),
		Preemptable: true, MinRun: b.Tier.SurplusProtection(ptr.Deref(b.Job.Spec.Elasticity.Shrink.MinRunSeconds, 0)),
	}
}

// taskName is what Volcano calls worker i's task in a job with roles; empty without.
func (b Blueprint) taskName(i int32) string {
	if len(b.Job.Spec.Roles) == 0 {
		return ""
	}
	return b.Job.Spec.SeatOf(i).Name()
}

// roleName is the name of worker i's role; empty for none.
func (b Blueprint) roleName(i int32) string {
	if role := b.Job.Spec.SeatOf(i).Role; role != nil {
		return role.Name
	}
	return ""
}

// CoreGroup returns the PodGroup of the core, which Volcano places as a whole or not at all.
func (b Blueprint) CoreGroup() gang.Group {
	g := b.podGroup(gang.CoreName(b.Job.Name), b.Tier.ClassName())
	g.MinMember = b.Attempt.MinReplicas
	g.MinResources = CoreRequests(b.Job, b.Attempt.MinReplicas)
	g.Closeness = closenessOf(b.Job.Spec.NetworkTopology)
	return g
}

// SurplusGroup returns the PodGroup of the surplus. Its minMember is 0, so Volcano places each member by itself. It names no
// topology: Volcano would choose a HyperNode by how full it is, whatever the pods prefer
// (docs/decisions/0067-close-to-the-core.md).
func (b Blueprint) SurplusGroup() gang.Group {
	return b.podGroup(gang.SurplusName(b.Job.Name), b.Tier.SurplusClassName())
}

func (b Blueprint) podGroup(name, class string) gang.Group {
	return gang.Group{
		Namespace: b.Job.Namespace, Name: name, Labels: b.jobLabels(), Owner: b.ownerReference(), Queue: b.Queue, PriorityClass: class,
	}
}

// NewService returns the headless Service of the workers.
func (b Blueprint) NewService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: b.objectMeta(rendezvous.ServiceName(b.Job.Name)),
		Spec:       rendezvous.ServiceSpec(b.Job),
	}
}

func (b Blueprint) ownerReference() metav1.OwnerReference {
	return v1beta1.ControllerReference(b.Job, v1beta1.ElasticTrainingJobKind)
}

func (b Blueprint) jobLabels() map[string]string {
	return map[string]string{v1beta1.LabelJob: b.Job.Name}
}

func (b Blueprint) podLabels(i int32, template map[string]string) map[string]string {
	labels := maps.Clone(template)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, LookOf(b.Job))
	labels[v1beta1.LabelWorkerIndex] = strconv.Itoa(int(i))
	labels[v1beta1.LabelAttempt] = b.Attempt.ID()
	labels[v1beta1.LabelPart] = PartOf(i, b.Attempt.MinReplicas)
	if role := b.roleName(i); role != "" {
		labels[v1beta1.LabelRole] = role
	}
	return labels
}

// LookOf are the labels of a job's workers but for those that differ between them or from attempt to attempt.
func LookOf(job *v1beta1.ElasticTrainingJob) map[string]string {
	labels := maps.Clone(job.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1beta1.LabelJob], labels[v1beta1.LabelTask] = job.Name, TaskOf(job)
	if owner := job.Spec.Owner; owner != "" {
		labels[v1beta1.LabelOwnerHash] = OwnerHash(owner)
	}
	return labels
}

// PartOf is the value of label part for worker i, given the size of the core.
func PartOf(i, core int32) string {
	if i < core {
		return v1beta1.PartCore
	}
	return v1beta1.PartSurplus
}

// SetOwner writes the owner of its job into a pod, which must have labels. An empty owner writes none.
func SetOwner(pod *corev1.Pod, owner string) {
	delete(pod.Annotations, v1beta1.AnnotationOwner) // From the template, where no webhook has checked it.
	if owner == "" {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[v1beta1.AnnotationOwner] = owner
	pod.Labels[v1beta1.LabelOwnerHash] = OwnerHash(owner)
}

// OwnerHash is the value of label owner-hash for an owner: the first 16 hexadecimal digits of the SHA-256 of its name.
func OwnerHash(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:8])
}
