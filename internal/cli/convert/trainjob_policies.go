package convert

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// defaultBackoffLimit is that of a Job (batch/v1).
const defaultBackoffLimit = 6

// jobPolicies carries over how long the TrainJob may take and how often it may fail.
func (c *trainJob) jobPolicies() {
	spec, job := &c.in.Spec, &c.replicated.Template.Spec
	c.out.Spec.Suspend = ptr.Deref(spec.Suspend, false)
	path, deadline := "spec.activeDeadlineSeconds", spec.ActiveDeadlineSeconds
	if deadline == 0 && job.ActiveDeadlineSeconds != nil {
		path, deadline = c.jobPath()+".activeDeadlineSeconds", *job.ActiveDeadlineSeconds
	}
	if deadline > 0 {
		c.out.Spec.Deadlines.ActiveSeconds = c.atMost(path, deadline, longest)
		c.note(path, deadline, "trainer counts from its start, and anew when it is resumed; Tideline counts while the core trains,"+
			" and adds up", "bound the wait for a place by spec.deadlines.schedulingSeconds")
	}
	c.managedBy("spec.managedBy", spec.ManagedBy)
	limit := int64(ptr.Deref(job.BackoffLimit, defaultBackoffLimit))
	var shown any
	if job.BackoffLimit != nil {
		shown = limit
	}
	c.out.Spec.Restarts.Max = c.atMost(c.jobPath()+".backoffLimit", limit, maxRestarts)
	c.note(c.jobPath()+".backoffLimit", shown, fmt.Sprintf("it is spec.restarts.max now, %d: more restarts within windowSeconds"+
		" (%d) fail the job; evictions and lost nodes never count", *c.out.Spec.Restarts.Max, v1beta1.DefaultRestartWindowSeconds), "")
	for _, f := range []struct {
		name  string
		value map[string]string
	}{{"labels", spec.Labels}, {"annotations", spec.Annotations}} {
		if len(f.value) > 0 {
			c.note("spec."+f.name, f.value, "trainer gives them to its JobSet; they are left out", "write them into the template")
		}
	}
}

// jobPath is the path of the runtime's Job that trains.
func (c *trainJob) jobPath() string {
	return c.where + ".template.spec.replicatedJobs[" + c.replicated.Name + "].template.spec"
}

// runtimePolicies says what becomes of what the runtime decides.
func (c *trainJob) runtimePolicies() {
	spec := &c.runtime.Spec
	if p := spec.PodGroupPolicy; p != nil {
		if p.Coscheduling != nil {
			c.note(c.where+".podGroupPolicy.coscheduling", p.Coscheduling, "Tideline places minReplicas all together, by Volcano; it is"+
				" left out", "")
		}
		if p.Volcano != nil {
			c.topology(c.where+".podGroupPolicy.volcano.networkTopology", p.Volcano.NetworkTopology)
		}
	}
	const queue = "scheduling.volcano.sh/queue-name"
	if name := spec.Template.Metadata.Annotations[queue]; name != "" {
		c.queue(c.where+".template.metadata.annotations["+queue+"]", name)
	}
	if t := torchOf(spec.MLPolicy); t != nil {
		c.left(c.where+".mlPolicy.torch.envInjection", t.EnvInjection, "only the training container gets torchrun's variables")
		c.left(c.where+".mlPolicy.torch.elasticPolicy", t.ElasticPolicy, "trainer did nothing with it; set minReplicas and maxReplicas")
	}
	set, path := spec.Template.Spec, c.where+".template.spec"
	const decided = "Tideline decides it by fields of its own"
	c.left(path+".network", set.Network, "one headless Service names all workers, ready or not")
	c.left(path+".successPolicy", set.SuccessPolicy, "the job has succeeded when all workers have (spec.successPolicy)")
	c.left(path+".failurePolicy", set.FailurePolicy, "spec.failurePolicy and spec.restarts say what becomes of failures")
	c.left(path+".startupPolicy", set.StartupPolicy, "workers start together")
	c.left(path+".suspend", set.Suspend, "the TrainJob's own counts")
	c.left(path+".coordinator", set.Coordinator, decided)
	c.left(path+".managedBy", set.ManagedBy, decided)
	c.left(path+".ttlSecondsAfterFinished", set.TTLSecondsAfterFinished,
		"it deletes the JobSet, not the TrainJob; spec.cleanup.ttlSecondsAfterFinished would delete the job")
	c.left(path+".replicatedJobs["+c.replicated.Name+"].dependsOn", c.replicated.DependsOn, "there is no other job to wait for")
	c.left(path+".replicatedJobs["+c.replicated.Name+"].groupName", c.replicated.GroupName, decided)
	c.jobFields()
}

// torchOf is the policy of torch, or nil.
func torchOf(m *MLPolicy) *struct{ EnvInjection, ElasticPolicy any } {
	if m == nil || m.Torch == nil {
		return nil
	}
	return &struct{ EnvInjection, ElasticPolicy any }{m.Torch.EnvInjection, m.Torch.ElasticPolicy}
}

// left notes a field that is left out, if it is set.
func (c *trainJob) left(path string, value any, because string) {
	if value != nil {
		c.note(path, value, because+"; it is left out", "")
	}
}

// jobFields notes fields of the runtime's Job that nothing of Tideline stands for.
func (c *trainJob) jobFields() {
	job := c.replicated.Template.Spec
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&job)
	if err != nil {
		c.refuse(c.jobPath(), nil, "it cannot be read: "+err.Error(), "check the runtime")
		return
	}
	// Trainer sets the first three; the others are carried over.
	known := []string{"parallelism", "completions", "completionMode", "template", "backoffLimit", "activeDeadlineSeconds"}
	for _, name := range sortedKeys(fields) {
		if !slices.Contains(known, name) {
			c.note(c.jobPath()+"."+name, fields[name], "Tideline has no such field; it is left out", "")
		}
	}
}
