package convert

import (
	"fmt"
	"regexp"
	"slices"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Bounds of deadlines and of restarts.max.
const (
	longest     = 31536000 // a year, in seconds
	maxRestarts = 100
)

// runPolicy carries over how long the job may take and what becomes of it when it ends.
func (c *conversion) runPolicy() {
	const path = "spec.runPolicy"
	in, out := &c.in.Spec.RunPolicy, &c.out.Spec
	// Training-operator's default is None, Tideline's Running.
	out.Cleanup.PodPolicy = v1beta1.CleanPodPolicyNone
	if p := ptr.Deref(in.CleanPodPolicy, kubeflowv1.CleanPodPolicyUndefined); p != kubeflowv1.CleanPodPolicyUndefined {
		out.Cleanup.PodPolicy = v1beta1.CleanPodPolicy(p)
	}
	out.Suspend = ptr.Deref(in.Suspend, false)
	if in.TTLSecondsAfterFinished != nil {
		out.Cleanup.TTLSecondsAfterFinished = c.atMost(path+".ttlSecondsAfterFinished", int64(*in.TTLSecondsAfterFinished), longest)
	}
	if in.ActiveDeadlineSeconds != nil {
		out.Deadlines.ActiveSeconds = c.atMost(path+".activeDeadlineSeconds", *in.ActiveDeadlineSeconds, longest)
		c.note(path+".activeDeadlineSeconds", *in.ActiveDeadlineSeconds,
			"training-operator counts from when it made the first pods, and looks only when something else happens to the job;"+
				" Tideline has a timer, which runs only while the core trains",
			"bound the wait for a place by spec.deadlines.schedulingSeconds")
	}
	c.backoffLimit()
	c.managedBy(path+".managedBy", in.ManagedBy)
	if in.SchedulingPolicy != nil {
		c.schedulingPolicy(in.SchedulingPolicy)
	}
}

// managedBy says that a job which MultiKueue would send elsewhere stays.
func (d *draft) managedBy(path string, manager *string) {
	if ptr.Deref(manager, "") == kubeflowv1.MultiKueueController {
		d.note(path, *manager, "MultiKueue does not know ElasticTrainingJobs; it is left out, and the job runs in"+
			" the cluster in which it is created", "create the job in the cluster that shall run it")
	}
}

// backoffLimit carries over how many restarts fail the job.
func (c *conversion) backoffLimit() {
	const path = "spec.runPolicy.backoffLimit"
	limit := c.in.Spec.RunPolicy.BackoffLimit
	if limit == nil {
		if c.restarts() {
			c.note(path, nil, fmt.Sprintf("training-operator restarts without end; Tideline fails the job at more than %d "+
				"restarts within %d s",
				v1beta1.DefaultMaxRestarts, v1beta1.DefaultRestartWindowSeconds),
				fmt.Sprintf("set spec.restarts.max, %d at most, for more", maxRestarts))
		}
		return
	}
	c.out.Spec.Restarts.Max = c.atMost(path, int64(*limit), maxRestarts)
	meaning := fmt.Sprintf("it is spec.restarts.max now: training-operator fails the job when the"+
		" restarts of its running containers reach it, Tideline when restarts within windowSeconds (%d) exceed it; evictions and"+
		" lost nodes never count",
		v1beta1.DefaultRestartWindowSeconds)
	byCode := func(r kubeflowv1.ReplicaType) bool { return c.restartPolicy(r) == kubeflowv1.RestartPolicyExitCode }
	if *limit > 0 && slices.ContainsFunc(c.roles(), byCode) {
		// PastBackoffLimit adds up the restarts of pods that run, and these run for the first time.
		meaning += "; with restartPolicy ExitCode training-operator replaces pods that fail, and never reached it"
	}
	c.note(path, *limit, meaning, "")
}

// schedulingPolicy says what becomes of what the PodGroup is told.
func (d *draft) schedulingPolicy(s *kubeflowv1.SchedulingPolicy) {
	const path = "spec.runPolicy.schedulingPolicy"
	if s.MinAvailable != nil && *s.MinAvailable != d.out.Spec.MinReplicas {
		d.note(path+".minAvailable", *s.MinAvailable, fmt.Sprintf(
			"Tideline places minReplicas (%d) all together, because fewer cannot train; it is left out", d.out.Spec.MinReplicas), "")
	}
	if s.Queue != "" {
		d.queue(path+".queue", s.Queue)
	}
	if s.MinResources != nil {
		d.note(path+".minResources", *s.MinResources, "Tideline computes it from the core's pods; it is left out", "")
	}
	if s.PriorityClass != "" {
		d.note(path+".priorityClass", s.PriorityClass, "the priority follows from the tier; it is left out", setTier)
	}
	if s.ScheduleTimeoutSeconds == nil {
		return
	}
	timeout := *s.ScheduleTimeoutSeconds
	if timeout < 1 {
		d.note(path+".scheduleTimeoutSeconds", timeout, "it must be 1 or more; it is left out, and the job waits for ever", "")
		return
	}
	d.out.Spec.Deadlines.SchedulingSeconds = d.atMost(path+".scheduleTimeoutSeconds", int64(timeout), longest)
	d.note(path+".scheduleTimeoutSeconds", timeout,
		d.controller+" tells it to the coscheduling plugin, which tries again, and not to Volcano; "+
			"Tideline fails the job when its core does not run within that time",
		"remove spec.deadlines.schedulingSeconds if the job shall wait on")
}

// queue says how to have a queue: nothing of a job names it.
func (d *draft) queue(path, queue string) {
	d.note(path, queue, "the queue follows from the namespace; it is left out",
		"kubectl annotate namespace "+nameOr(d.out.Namespace, "NAMESPACE")+" scheduling.volcano.sh/queue-name="+nameOr(queue, "QUEUE"))
}

var dns1123 = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// nameOr is a name in a command that people may copy into a shell, or a word in its place if it is none.
func nameOr(name, word string) string {
	if dns1123.MatchString(name) {
		return name
	}
	return word
}
