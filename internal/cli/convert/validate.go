package convert

import (
	"fmt"
	"slices"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// problems are what keeps a PyTorchJob from being converted.
type problems []Note

func (p *problems) add(path string, value any, meaning, do string) {
	*p = append(*p, newNote(path, value, meaning, do))
}

// validate returns what training-operator would refuse, or could not run, in the order of the fields.
func validate(job *kubeflowv1.PyTorchJob) []Note {
	var p problems
	if job.Name == "" && job.GenerateName == "" {
		p.add("metadata.name", nil, "a job needs a name", "set it")
	}
	p.replicaSpecs(job)
	if e := job.Spec.ElasticPolicy; e != nil {
		p.elasticPolicy(job)
	} else if total(job) > v1beta1.MaxWorkers {
		p.add(replicaPath(worker)+".replicas", total(job),
			fmt.Sprintf("a job may have %d workers, Master included", v1beta1.MaxWorkers), "ask for fewer")
	}
	p.runPolicy(&job.Spec.RunPolicy, "training-operator", kubeflowv1.KubeflowJobsController)
	return p
}

func (p *problems) replicaSpecs(job *kubeflowv1.PyTorchJob) {
	const path = "spec.pytorchReplicaSpecs"
	specs := job.Spec.PyTorchReplicaSpecs
	for _, role := range sortedKeys(specs) {
		if role != master && role != worker {
			p.add(replicaPath(role), string(role), "training-operator knows the roles Master and Worker", "name it so")
		}
	}
	if specs[master] == nil && specs[worker] == nil {
		p.add(path, nil, "there is neither a Master nor a Worker to convert", "give the job workers")
	}
	for _, role := range []kubeflowv1.ReplicaType{master, worker} {
		if spec, ok := specs[role]; ok {
			p.replicaSpec(role, spec)
		}
	}
}

func (p *problems) replicaSpec(role kubeflowv1.ReplicaType, spec *kubeflowv1.ReplicaSpec) {
	path := replicaPath(role)
	if spec == nil {
		p.add(path, nil, "the role is named and says nothing", "give it a template, or remove it")
		return
	}
	replicas := ptr.Deref(spec.Replicas, 1)
	if role == master && replicas != 1 {
		p.add(path+".replicas", replicas, "training-operator refuses any number of Masters but 1", "set 1")
	}
	if role == worker && replicas < 1 {
		p.add(path+".replicas", replicas, "training-operator refuses fewer workers than 1", "set 1 or more, or remove Worker")
	}
	containers := spec.Template.Spec.Containers
	if !slices.ContainsFunc(containers, isPyTorch) {
		p.add(path+".template.spec.containers", containerNames(containers),
			"training-operator refuses a template without a container named "+kubeflowv1.PyTorchJobDefaultContainerName,
			"name the container that trains so")
	}
	switch spec.RestartPolicy {
	case "", kubeflowv1.RestartPolicyAlways, kubeflowv1.RestartPolicyOnFailure, kubeflowv1.RestartPolicyNever,
		kubeflowv1.RestartPolicyExitCode:
	default:
		p.add(path+".restartPolicy", string(spec.RestartPolicy), "training-operator does not know it",
			"use OnFailure, Never, Always or ExitCode")
	}
}

func (p *problems) elasticPolicy(job *kubeflowv1.PyTorchJob) {
	const path = "spec.elasticPolicy"
	e := job.Spec.ElasticPolicy
	if job.Spec.PyTorchReplicaSpecs[worker] == nil {
		p.add(replicaPath(worker), nil, "training-operator refuses an elasticPolicy without workers", "set it")
		return
	}
	if e.NProcPerNode != nil && job.Spec.NprocPerNode != nil {
		p.add(path+".nProcPerNode", *e.NProcPerNode, "training-operator refuses it beside spec.nprocPerNode", "remove it")
	}
	least, most := workerRange(job)
	if least < 1 {
		p.add(path+".minReplicas", least, "torchrun refuses to train with no worker", "set 1 or more")
	}
	if least > most {
		p.add(path+".minReplicas", least, fmt.Sprintf("it exceeds maxReplicas (%d)", most),
			"lower minReplicas or raise maxReplicas")
	}
	if most > v1beta1.MaxWorkers {
		p.add(path+".maxReplicas", most, fmt.Sprintf("a job may have %d workers, Master included", v1beta1.MaxWorkers),
			"ask for fewer")
	}
}

// runPolicy returns what a controller of Kubeflow, with its name in managedBy, refuses of a run policy.
func (p *problems) runPolicy(r *kubeflowv1.RunPolicy, controller, itself string) {
	const path = "spec.runPolicy"
	switch policy := ptr.Deref(r.CleanPodPolicy, ""); policy {
	case kubeflowv1.CleanPodPolicyUndefined, kubeflowv1.CleanPodPolicyAll, kubeflowv1.CleanPodPolicyRunning,
		kubeflowv1.CleanPodPolicyNone:
	default:
		p.add(path+".cleanPodPolicy", string(policy), controller+" does not know it", "use None, Running or All")
	}
	switch manager := ptr.Deref(r.ManagedBy, ""); manager {
	case "", itself, kubeflowv1.MultiKueueController:
	default:
		p.add(path+".managedBy", manager, controller+" refuses it", "remove it, or use "+kubeflowv1.MultiKueueController)
	}
	for _, f := range []struct {
		name  string
		value *int64
		least int64
	}{
		{"ttlSecondsAfterFinished", widen(r.TTLSecondsAfterFinished), 0},
		{"activeDeadlineSeconds", r.ActiveDeadlineSeconds, 1},
		{"backoffLimit", widen(r.BackoffLimit), 0},
	} {
		if f.value != nil && *f.value < f.least {
			p.add(path+"."+f.name, *f.value, fmt.Sprintf("it must be %d or more", f.least), "raise or remove it")
		}
	}
}

func widen(v *int32) *int64 {
	if v == nil {
		return nil
	}
	return ptr.To(int64(*v))
}

func isPyTorch(c corev1.Container) bool { return c.Name == kubeflowv1.PyTorchJobDefaultContainerName }

func containerNames(containers []corev1.Container) []string {
	names := make([]string, len(containers))
	for i := range containers {
		names[i] = containers[i].Name
	}
	return names
}
