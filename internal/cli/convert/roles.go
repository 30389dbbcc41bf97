package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Bounds of a role's texts (JobRole).
const (
	mostRoleWords     = 64
	mostRoleVariables = 32
	longestRoleText   = 4096
)

// seeRole is the rule that pods break which differ in more than a role can say.
const seeRole = "a role differs from the workers in image, command, plain variables and resources of its training container, " +
	"and in its node selector (docs/workers.md#roles)"

// masterRole is the role whose name is kept for the worker that leads.
const masterRole = "master"

// roleVariable is what the name of a role's variable must match (RoleVariable).
var roleVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ownVariables are the variables that a container has and the workers' has not, or with another value; false if one of them
// has no value of its own, as one from a Secret, or is new and one of the workers' refers to it: a role's new ones come last.
func ownVariables(theirs, ours []corev1.EnvVar) (own []v1beta1.RoleVariable, plain bool) {
	for _, v := range theirs {
		if slices.ContainsFunc(ours, func(o corev1.EnvVar) bool { return equality.Semantic.DeepEqual(o, v) }) {
			continue
		}
		isNew := !slices.ContainsFunc(ours, func(o corev1.EnvVar) bool { return o.Name == v.Name })
		refers := func(o corev1.EnvVar) bool { return strings.Contains(o.Value, "$("+v.Name+")") }
		if v.ValueFrom != nil || !roleVariable.MatchString(v.Name) || isNew && slices.ContainsFunc(ours, refers) {
			return nil, false
		}
		own = append(own, v1beta1.RoleVariable{Name: v.Name, Value: v.Value})
	}
	return own, true
}

// alikeButForRole makes a pod's template one that is alike for two roles if all that differs fits into a role.
func alikeButForRole(t *corev1.PodTemplateSpec, theirs, ours []corev1.EnvVar) {
	main := trainingContainer(&t.Spec)
	main.Command, main.Args, main.Image, main.Resources = nil, nil, "", corev1.ResourceRequirements{}
	if _, plain := ownVariables(theirs, ours); plain {
		main.Env = nil
	}
	t.Name, t.Spec.NodeSelector, t.Spec.RestartPolicy = "", nil, ""
}

// role is what a pod has in place of the workers' template. path is where its container stands.
func (d *draft) role(name, path string, theirs, ours *corev1.PodSpec) v1beta1.JobRole {
	main, others := trainingContainer(theirs), trainingContainer(ours)
	r := v1beta1.JobRole{Name: name, Replicas: 1}
	if main.Image != others.Image {
		r.Image = main.Image
	}
	r.Command, r.Args = slices.Clone(main.Command), slices.Clone(main.Args)
	r.Env, _ = ownVariables(main.Env, others.Env)
	if !equality.Semantic.DeepEqual(main.Resources, others.Resources) {
		r.Resources = main.Resources.DeepCopy()
	}
	r.NodeSelector = d.masterNodeSelector(path+".nodeSelector", theirs.NodeSelector, ours.NodeSelector)
	for _, v := range others.Env {
		if !slices.ContainsFunc(main.Env, func(o corev1.EnvVar) bool { return o.Name == v.Name }) {
			d.note(path+".containers["+main.Name+"].env["+v.Name+"]", nil, "the workers have this variable, and so has the "+name, "")
		}
	}
	for what, n := range map[string]int{"command": len(r.Command), "args": len(r.Args), "env": len(r.Env)} {
		most := mostRoleWords
		if what == "env" {
			most = mostRoleVariables
		}
		if n > most {
			d.refuse(path+".containers["+main.Name+"]."+what, n, fmt.Sprintf("a role may have %d", most), "put them into the image")
		}
	}
	for _, word := range slices.Concat(r.Command, r.Args) {
		if len(word) > longestRoleText {
			d.refuse(path+".containers["+main.Name+"].command", len(word), fmt.Sprintf("a word of a role's command may have %d characters",
				longestRoleText), "put the script into the image")
		}
	}
	return r
}
