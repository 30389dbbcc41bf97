package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
)

// runtimeKey is by what a TrainJob finds its runtime: kind, namespace unless it belongs to the cluster, and name.
type runtimeKey struct{ kind, namespace, name string }

// references are the objects of all files that jobs refer to.
type references struct {
	runtimes map[runtimeKey]*TrainingRuntime
	used     map[*TrainingRuntime]bool
}

// add takes a runtime; false if one of its name is there.
func (r *references) add(runtime *TrainingRuntime) bool {
	key := runtimeKey{runtime.Kind, runtime.Namespace, runtime.Name}
	if runtime.Kind == clusterRuntimeKind {
		key.namespace = ""
	}
	if r.runtimes[key] != nil {
		return false
	}
	r.runtimes[key] = runtime
	return true
}

// runtimeOf is the runtime of a TrainJob, or why there is none.
func (r *references) runtimeOf(job *TrainJob) (*TrainingRuntime, *Note) {
	const path = "spec.runtimeRef"
	ref := job.Spec.RuntimeRef
	kind := ptr.Deref(ref.Kind, clusterRuntimeKind)
	refuse := func(field string, value any, meaning, do string) (*TrainingRuntime, *Note) {
		n := newNote(path+"."+field, value, meaning, do)
		return nil, &n
	}
	key, resource := runtimeKey{kind, "", ref.Name}, "clustertrainingruntime"
	switch {
	case ref.Name == "":
		return refuse("name", nil, "a TrainJob needs a runtime", "name one")
	case ptr.Deref(ref.APIGroup, trainerVersion.Group) != trainerVersion.Group:
		return refuse("apiGroup", *ref.APIGroup, "it is no group of runtimes that is known here", "use "+trainerVersion.Group)
	case kind == runtimeKind:
		key.namespace, resource = job.Namespace, "trainingruntime"
	case kind != clusterRuntimeKind:
		return refuse("kind", kind, "it is no kind of runtimes that is known here",
			"use "+clusterRuntimeKind+" or "+runtimeKind)
	}
	runtime := r.runtimes[key]
	if runtime == nil {
		return refuse("name", ref.Name, "the files hold no "+kind+" of this name, which says image, pods and framework",
			fmt.Sprintf("kubectl get %s %s -o yaml > runtime.yaml, and give it by another -f", resource, nameOr(ref.Name, "NAME")))
	}
	r.used[runtime] = true
	return runtime, nil
}

// Labels and names of trainer.
const (
	ancestorLabel   = "trainer.kubeflow.org/trainjob-ancestor-step"
	ancestorTrainer = "trainer"
	nodeContainer   = "node"
)

// resolve finds the pods that trainer makes of runtime and job: it patches the runtime, then sets what the job's trainer says.
func (c *trainJob) resolve(p *problems) {
	spec := &c.runtime.Spec.Template.Spec
	i := slices.IndexFunc(spec.ReplicatedJobs, func(r ReplicatedJob) bool {
		return r.Template.Labels[ancestorLabel] == ancestorTrainer
	})
	if i < 0 {
		p.add(c.where+".template.spec.replicatedJobs", nil, "none has the label "+ancestorLabel+": "+ancestorTrainer,
			"label the one that trains, or name a runtime that has it")
		return
	}
	for n := range spec.ReplicatedJobs {
		if n != i {
			c.otherJob(p, &spec.ReplicatedJobs[n])
		}
	}
	if spec.VolumeClaimPolicies != nil {
		p.add(c.where+".template.spec.volumeClaimPolicies", spec.VolumeClaimPolicies,
			"JobSet makes claims for each job; Tideline makes none", "create the claim, and name it in the runtime's or the job's volumes")
	}
	c.replicated = &spec.ReplicatedJobs[i]
	c.podPath = c.where + ".template.spec.replicatedJobs[" + c.replicated.Name + "].template.spec.template"
	c.pod = c.replicated.Template.Spec.Template.DeepCopy()
	c.patches(p)
	if t := c.in.Spec.Trainer; t != nil {
		c.applyTrainer(p, t)
	}
}

// otherJob refuses a job of the runtime that runs other pods than those that train.
func (c *trainJob) otherJob(p *problems, job *ReplicatedJob) {
	meaning, do := "pods beside those that train; "+seeMaster, "leave the job to trainer"
	if step := job.Template.Labels[ancestorLabel]; step == "dataset-initializer" || step == "model-initializer" {
		meaning = "an initializer is a job of its own that loads data before the training; Tideline runs none"
		do = "load the data once into a claim by a Job, mount the claim, and name a runtime without the initializer"
	}
	p.add(c.where+".template.spec.replicatedJobs["+job.Name+"]", job.Name, meaning, do)
}

// patches merges what managers and overrides change into the pods that train, in their order.
func (c *trainJob) patches(p *problems) {
	for _, patch := range c.in.Spec.RuntimePatches {
		path := "spec.runtimePatches[" + patch.Manager + "]"
		if patch.TrainingRuntimeSpec == nil || patch.TrainingRuntimeSpec.Template == nil {
			continue
		}
		template := patch.TrainingRuntimeSpec.Template
		if m := template.Metadata; m != nil && c.runtime.Spec.Template.Metadata.Annotations == nil {
			c.runtime.Spec.Template.Metadata.Annotations = m.Annotations
		} else if m != nil {
			maps.Copy(c.runtime.Spec.Template.Metadata.Annotations, m.Annotations)
		}
		if template.Spec == nil {
			continue
		}
		for _, job := range template.Spec.ReplicatedJobs {
			if !c.isTrainer(p, path, job.Name) || job.Template == nil || job.Template.Spec == nil || job.Template.Spec.Template == nil {
				continue
			}
			c.patch(p, path, job.Template.Spec.Template)
		}
	}
	for i := range c.in.Spec.PodTemplateOverrides {
		override := &c.in.Spec.PodTemplateOverrides[i]
		path := fmt.Sprintf("spec.podTemplateOverrides[%d]", i)
		for _, target := range override.TargetJobs {
			if c.isTrainer(p, path, target.Name) {
				c.patch(p, path, &override.PodTemplatePatch)
			}
		}
	}
}

// isTrainer is whether a patch is for the pods that train. One for a job that the runtime lacks is refused, as by trainer.
func (c *trainJob) isTrainer(p *problems, path, name string) bool {
	jobs := c.runtime.Spec.Template.Spec.ReplicatedJobs
	if !slices.ContainsFunc(jobs, func(r ReplicatedJob) bool { return r.Name == name }) {
		p.add(path, name, "trainer refuses a patch for a job that the runtime does not have", "name one of its replicatedJobs")
	}
	return name == c.replicated.Name
}

// patch merges a patch into the pods that train, as trainer does.
func (c *trainJob) patch(p *problems, path string, patch *PodTemplatePatch) {
	merged, err := func() ([]byte, error) {
		source, err := json.Marshal(c.pod)
		if err != nil {
			return nil, err
		}
		change, err := json.Marshal(patch)
		if err != nil {
			return nil, err
		}
		return strategicpatch.StrategicMergePatch(source, change, corev1.PodTemplateSpec{})
	}()
	pod := &corev1.PodTemplateSpec{}
	if err == nil {
		err = json.Unmarshal(merged, pod)
	}
	if err != nil {
		p.add(path, patch, "it cannot be merged into the runtime: "+err.Error(), "correct it")
		return
	}
	for _, container := range pod.Spec.Containers {
		if container.Image == "" && (c.in.Spec.Trainer == nil || container.Name != nodeContainer) {
			p.add(path, container.Name, "trainer refuses a patch for a container that the runtime does not have",
				"name one of the runtime's containers")
		}
	}
	c.pod = pod
}

// applyTrainer sets what the job says of the container that trains.
func (c *trainJob) applyTrainer(p *problems, t *Trainer) {
	i := slices.IndexFunc(c.pod.Spec.Containers, func(k corev1.Container) bool { return k.Name == nodeContainer })
	if i < 0 {
		p.add(c.podPath+".spec.containers", containerNames(c.pod.Spec.Containers),
			"trainer sets what spec.trainer says in a container named "+nodeContainer+", and there is none", "name it so")
		return
	}
	node := &c.pod.Spec.Containers[i]
	if t.Image != nil {
		node.Image = *t.Image
	}
	if t.Command != nil {
		node.Command = t.Command
	}
	if t.Args != nil {
		node.Args = t.Args
	}
	if r := t.ResourcesPerNode; r != nil {
		node.Resources.Limits = over(node.Resources.Limits, r.Limits)
		node.Resources.Requests = over(node.Resources.Requests, r.Requests)
	}
	for _, e := range t.Env {
		node.Env = slices.DeleteFunc(node.Env, func(have corev1.EnvVar) bool { return have.Name == e.Name })
		node.Env = append(node.Env, e)
	}
}

// over is a list of resources with those of another in their place.
func over(base, more corev1.ResourceList) corev1.ResourceList {
	if len(more) == 0 {
		return base
	}
	all := maps.Clone(base)
	if all == nil {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, more)
	return all
}
