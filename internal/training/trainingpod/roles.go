package trainingpod

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Which worker is like which? Workers of a role are alike, and so are all that belong to none, but worker 0, which sizing tells
// apart. In the order of their indices:
//
//	0                  1 ...                            RoleMembers() ...
//	the one that leads | the other roles, one by one  | workers of the template: core, then surplus

// Ordinary is the index of a worker that stands for all those of the template but worker 0.
const Ordinary int32 = v1beta1.MaxWorkers

// RoleOf is the role of worker i for sizing: that of the spec for all but worker 0, which is the master.
func RoleOf(job *v1beta1.ElasticTrainingJobSpec, i int32) sizing.Role {
	return sizing.RoleNamed(job.SeatOf(i).Name(), i)
}

// ownFirst is true if worker 0 may ask for other resources or nodes than the ordinary workers because spec.master or sizing
// says so.
func ownFirst(job *v1beta1.ElasticTrainingJob) bool {
	m := job.Spec.Master
	return m != nil && (m.Resources != nil || len(m.NodeSelector) > 0) || isEnforced(job.Status.Sizing)
}

// areAlike is true if all workers ask for the same.
func areAlike(job *v1beta1.ElasticTrainingJob) bool {
	return len(job.Spec.Roles) == 0 && !ownFirst(job)
}

// ApartMembers are the indices of the workers that a scheduler may not take for ordinary ones, in the order in which it places
// them: those of roles, and worker 0 if it asks for something else or takes a port of its node.
func ApartMembers(job *v1beta1.ElasticTrainingJob) (all []int32) {
	for i := range job.Spec.RoleMembers() + 1 {
		if job.Spec.SeatOf(i).Role != nil || i == 0 && (ownFirst(job) || TakesHostPort(job)) {
			all = append(all, i)
		}
	}
	return all
}

// CountRole is how many of a job's workers have a role of sizing.
func CountRole(job *v1beta1.ElasticTrainingJobSpec, role sizing.Role, workers int32) int32 {
	if role == sizing.Worker {
		return max(0, workers-1-job.RoleMembers()+leaders(job))
	}
	count := int32(0)
	for i := range min(workers, job.RoleMembers()+1) {
		if RoleOf(job, i) == role {
			count++
		}
	}
	return count
}

// leaders is 1 if a role has worker 0, else 0.
func leaders(job *v1beta1.ElasticTrainingJobSpec) int32 {
	if job.SeatOf(0).Role != nil {
		return 1
	}
	return 0
}

// kinds lists one worker of each kind among the first so many, by index: worker 0, an ordinary one, and the first of each role.
func kinds(job *v1beta1.ElasticTrainingJobSpec, workers int32) []int32 {
	var all []int32
	if workers > 0 {
		all = append(all, 0)
	}
	if CountRole(job, sizing.Worker, workers) > 0 {
		all = append(all, Ordinary)
	}
	for i := int32(1); i < min(workers, job.RoleMembers()+1); i++ {
		if RoleOf(job, i) != RoleOf(job, i-1) && RoleOf(job, i) != sizing.Worker {
			all = append(all, i)
		}
	}
	return all
}

// RoleRequests is what a worker of a role asks for that is negative or cannot be counted, if there is one; else nothing.
func RoleRequests(job *v1beta1.ElasticTrainingJob) corev1.ResourceList {
	for _, i := range kinds(&job.Spec, job.Spec.RoleMembers()+1) {
		if job.Spec.SeatOf(i).Role == nil {
			continue
		}
		requests := PodRequests(templateOf(job, i))
		if _, _, found := FindUncountable(requests); found {
			return requests
		}
	}
	return nil
}

// overrideOf is what worker i has in place of the template's; nil for nothing.
func overrideOf(job *v1beta1.ElasticTrainingJobSpec, i int32) *v1beta1.Master {
	if role := job.SeatOf(i).Role; role != nil {
		return &role.Master
	}
	if i == 0 {
		return job.Master
	}
	return nil
}

// applyRole has the training container do what its role says.
func applyRole(trainer *corev1.Container, role *v1beta1.JobRole) {
	if role.Image != "" {
		trainer.Image = role.Image
	}
	if len(role.Command) > 0 {
		trainer.Command, trainer.Args = slices.Clone(role.Command), nil
	}
	if len(role.Args) > 0 {
		trainer.Args = slices.Clone(role.Args)
	}
	for _, v := range role.Env {
		own := corev1.EnvVar{Name: v.Name, Value: v.Value}
		// In the place of the template's, because a variable may refer to one that stands before it.
		if at := slices.IndexFunc(trainer.Env, func(had corev1.EnvVar) bool { return had.Name == v.Name }); at >= 0 {
			trainer.Env[at] = own
		} else {
			trainer.Env = append(trainer.Env, own)
		}
	}
}

// tensorFlowRoles are the roles that TensorFlow knows beside worker (tensorflow/python/training/server_lib.py and
// https://www.tensorflow.org/guide/distributed_training).
var tensorFlowRoles = []string{"chief", "master", "ps", v1beta1.RoleEvaluator}

// mostTensorFlow is how many workers TF_CONFIG can name in one variable.
const mostTensorFlow = 512

// CheckRoles returns an error for each role that contradicts another, the range of the job, or its framework.
func CheckRoles(job *v1beta1.ElasticTrainingJobSpec) field.ErrorList {
	found := checkTensorFlow(job)
	if len(job.Roles) == 0 {
		return found
	}
	at := field.NewPath("spec", "roles")
	if job.Master != nil {
		found = append(found, field.Forbidden(field.NewPath("spec", "master"), "roles and master exclude each other: write master "+
			"as a role, with name: master, lead: true, and the same resources and nodeSelector"))
	}
	if members := job.RoleMembers(); members > v1beta1.MaxRoleMembers {
		found = append(found, field.Invalid(at, members, fmt.Sprintf("is how many workers roles have together, and they may have "+
			"%d: lower their replicas, or let workers of the template do their work", v1beta1.MaxRoleMembers)))
	} else if job.MinReplicas <= members {
		found = append(found, field.Invalid(field.NewPath("spec", "minReplicas"), job.MinReplicas, fmt.Sprintf(
			"must be more than the %d workers of roles, which are among them, so that at least one of the template is left: set "+
				"it to %d or more", members, members+1)))
	}
	var leading []string
	for r := range job.Roles {
		role := &job.Roles[r]
		if role.Lead {
			leading = append(leading, role.Name)
		}
		if role.Lead && rendezvous.UsesTorchrun(job) {
			found = append(found, field.Invalid(at.Index(r).Child("lead"), true, "framework.type Torchrun has its rendezvous on "+
				"worker 0, which trains: remove lead, or set framework.type to Custom or TensorFlow"))
		}
		if job.Framework.Type == v1beta1.FrameworkTensorFlow && !slices.Contains(tensorFlowRoles, role.Name) {
			found = append(found, field.NotSupported(at.Index(r).Child("name"), role.Name, tensorFlowRoles))
		}
		found = append(found, checkResources(at.Index(r).Child("resources"), role.Resources)...)
	}
	if len(leading) > 1 {
		found = append(found, field.Invalid(at, strings.Join(leading, " and "), "one role may lead, because it has worker 0: "+
			"remove lead from the others"))
	}
	return found
}

// CheckModels returns an error for workers with accelerators that spec.master or a role has name their model by themselves: a
// profile's limits count a job by one model, that of its template.
func CheckModels(job *v1beta1.ElasticTrainingJobSpec, models config.Accelerators) (found field.ErrorList) {
	if job.Master != nil {
		found = checkModel(job, field.NewPath("spec", "master", "nodeSelector"), job.Master, models)
	}
	for r := range job.Roles {
		at := field.NewPath("spec", "roles").Index(r).Child("nodeSelector")
		found = append(found, checkModel(job, at, &job.Roles[r].Master, models)...)
	}
	return found
}

// checkModel is CheckModels for what some workers have in place of the template's.
func checkModel(
	job *v1beta1.ElasticTrainingJobSpec, at *field.Path, own *v1beta1.Master, models config.Accelerators,
) (found field.ErrorList) {
	spec := &job.Template.Spec
	isJobs := func(label, value string) bool { // Then it says nothing of its own.
		return spec.NodeSelector[label] == value || job.Accelerator != nil && slices.Equal(job.Accelerator.Models, []string{value})
	}
	for _, resource := range slices.Sorted(maps.Keys(models)) {
		label := models[resource]
		value, named := own.NodeSelector[label]
		if named && !isJobs(label, value) && asksBesides(spec, own, corev1.ResourceName(resource)) {
			found = append(found, field.Invalid(at.Key(label), value, "names the model of the accelerators of some workers, and a job "+
				"has one for all: write it in spec.accelerator, or let these workers ask for no "+resource))
		}
	}
	return found
}

// asksBesides is true if a pod of the template asks for the resource, with its own resources for the training container.
func asksBesides(spec *corev1.PodSpec, own *v1beta1.Master, name corev1.ResourceName) bool {
	if spec.Resources != nil && asksFor(*spec.Resources, name) {
		return true
	}
	for i := range spec.Containers {
		asks := spec.Containers[i].Resources
		if own.Resources != nil && i == rendezvous.TrainerIndex(spec.Containers) {
			asks = *own.Resources
		}
		if asksFor(asks, name) {
			return true
		}
	}
	return slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return asksFor(c.Resources, name) })
}

// checkTensorFlow returns an error for what TF_CONFIG cannot tell: it names all workers when they start, and one port for each.
func checkTensorFlow(job *v1beta1.ElasticTrainingJobSpec) field.ErrorList {
	if job.Framework.Type != v1beta1.FrameworkTensorFlow {
		return nil
	}
	var found field.ErrorList
	if job.MinReplicas != job.MaxReplicas {
		found = append(found, field.Invalid(field.NewPath("spec", "maxReplicas"), job.MaxReplicas, fmt.Sprintf("must equal "+
			"minReplicas (%d) with framework.type TensorFlow, whose TF_CONFIG names all workers when they start: make them equal",
			job.MinReplicas)))
	}
	if job.MaxReplicas > mostTensorFlow {
		found = append(found, field.Invalid(field.NewPath("spec", "maxReplicas"), job.MaxReplicas, fmt.Sprintf("must be at most "+
			"%d with framework.type TensorFlow, because TF_CONFIG names all workers in one variable: lower it", mostTensorFlow)))
	}
	if job.Template.Spec.HostNetwork {
		found = append(found, field.Invalid(field.NewPath("spec", "template", "spec", "hostNetwork"), true, "does not go with "+
			"framework.type TensorFlow, all of whose workers listen on one port, which they would share on a node: remove it"))
	}
	return found
}
