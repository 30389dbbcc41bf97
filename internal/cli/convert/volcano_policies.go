package convert

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// placedPolicy is a lifecycle policy, where it stands, and whose it is: nil for all.
type placedPolicy struct {
	batch.LifecyclePolicy
	path string
	task *batch.TaskSpec
}

// events are those of a policy.
func events(p batch.LifecyclePolicy) []bus.Event {
	if p.Event != "" && !slices.Contains(p.Events, p.Event) {
		return append(slices.Clone(p.Events), p.Event)
	}
	return p.Events
}

// matchesFailure is whether it says what becomes of a pod that failed.
func (p placedPolicy) matchesFailure() bool {
	on := events(p.LifecyclePolicy)
	return p.ExitCode != nil || slices.Contains(on, bus.PodFailedEvent) || slices.Contains(on, bus.AnyEvent)
}

// allPolicies are the policies in the order in which Volcano tries them: those of tasks first.
func (c *volcanoJob) allPolicies() []placedPolicy {
	var all []placedPolicy
	for _, t := range c.tasks() {
		for i, p := range t.Policies {
			all = append(all, placedPolicy{p, fmt.Sprintf("%s.policies[%d]", taskPath(t), i), t})
		}
	}
	for i, p := range c.in.Spec.Policies {
		all = append(all, placedPolicy{p, fmt.Sprintf("spec.policies[%d]", i), nil})
	}
	return all
}

// lifecycle refuses what Volcano's webhook refuses of policies.
func (p *problems) lifecycle(path string, policies []batch.LifecyclePolicy) {
	for i, policy := range policies {
		path, on := fmt.Sprintf("%s[%d]", path, i), events(policy)
		switch {
		case len(on) > 0 && policy.ExitCode != nil:
			p.add(path+".exitCode", *policy.ExitCode, "Volcano refuses it beside an event", "make two policies of it")
		case len(on) == 0 && policy.ExitCode == nil:
			p.add(path, nil, "Volcano refuses a policy without an event and an exitCode", "say when it applies")
		case policy.ExitCode != nil && (*policy.ExitCode < 1 || *policy.ExitCode > 255):
			p.add(path+".exitCode", *policy.ExitCode, "an exit code that stands for a failure is 1 to 255", "set one")
		}
		if _, known := actions[policy.Action]; !known {
			p.add(path+".action", string(policy.Action), "Volcano does not know it",
				"use RestartJob, RestartTask, RestartPod, AbortJob, TerminateJob or CompleteJob")
		}
		for _, e := range on {
			if _, known := happenings[e]; !known {
				p.add(path+".event", string(e), "Volcano does not know it, or lets no policy have it",
					"use PodFailed, PodEvicted, TaskCompleted or *")
			}
		}
	}
}

// actions are Volcano's, each with Tideline's; "" for one that Tideline has no use for.
var actions = map[bus.Action]v1beta1.FailureAction{
	bus.RestartJobAction:       v1beta1.ActionRestartJob,
	bus.RestartTaskAction:      v1beta1.ActionRestartJob,
	bus.RestartPodAction:       v1beta1.ActionRestartWorker,
	bus.RestartPartitionAction: v1beta1.ActionRestartJob,
	bus.AbortJobAction:         v1beta1.ActionFailJob,
	bus.TerminateJobAction:     v1beta1.ActionFailJob,
	bus.CompleteJobAction:      v1beta1.ActionCompleteJob,
	bus.ResumeJobAction:        "",
}

// happenings are Volcano's events, each with Tideline's; none for one that Tideline has no use for.
var happenings = map[bus.Event][]v1beta1.FailureEvent{
	bus.AnyEvent:           {v1beta1.OnPodFailed, v1beta1.OnPodEvicted, v1beta1.OnNodeLost},
	bus.PodFailedEvent:     {v1beta1.OnPodFailed},
	bus.PodEvictedEvent:    {v1beta1.OnPodEvicted, v1beta1.OnNodeLost},
	bus.TaskCompletedEvent: {v1beta1.OnTaskCompleted},
	bus.PodPendingEvent:    nil,
	bus.JobUnknownEvent:    nil,
	bus.TaskFailedEvent:    nil,
	bus.JobUpdatedEvent:    nil,
}

// policies carries over what becomes of pods that fail, and how often.
func (c *volcanoJob) policies() {
	var rules []v1beta1.FailureRule
	restarts := false
	for _, p := range c.allPolicies() {
		rule, ok := c.rule(p)
		if !ok {
			continue
		}
		rules = append(rules, rule)
		restarts = restarts || rule.Action == v1beta1.ActionRestartJob || rule.Action == v1beta1.ActionRestartWorker
	}
	if c.neverRestarts() && !c.decidesFailure() {
		rules = append(rules, v1beta1.FailureRule{
			Name: "never-restart", Action: v1beta1.ActionFailJob, OnEvents: []v1beta1.FailureEvent{v1beta1.OnPodFailed},
		})
		c.note(c.restPath+".template.spec.restartPolicy", string(corev1.RestartPolicyNever), "it is a rule in spec.failurePolicy now,"+
			" by which a worker that fails ends the job at once; Volcano lets the others run to their end first", "")
	}
	if len(rules) > 0 {
		c.out.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: rules}
		if c.usesTorchrun() {
			c.failAtOnceUnlessTold()
		}
	}
	if p := c.rest.Template.Spec.RestartPolicy; p == "" || p == corev1.RestartPolicyAlways {
		c.note(c.restPath+".template.spec.restartPolicy", shownOrNil(string(p)), "Always means that a container which exits with 0 is "+
			"started again and the job never ends; Tideline's workers end with 0 (OnFailure)", "")
	}
	c.maxRetry(restarts)
}

// decidesFailure is whether a policy says what becomes of a pod that failed.
func (c *volcanoJob) decidesFailure() bool {
	return slices.ContainsFunc(c.allPolicies(), placedPolicy.matchesFailure)
}

// neverRestarts is whether containers are not started again in their pod.
func (c *volcanoJob) neverRestarts() bool {
	return c.rest.Template.Spec.RestartPolicy == corev1.RestartPolicyNever
}

// failAtOnceUnlessTold lets Tideline see a failure of the script, where torchrun would start it again inside the container.
func (d *draft) failAtOnceUnlessTold() {
	if d.out.Spec.MinReplicas == d.out.Spec.MaxReplicas {
		d.setDefaultEnv("PET_MAX_RESTARTS", "0")
	}
}

// rule is the rule that a policy amounts to; false for one that is left out, which is noted, or that is in the success policy.
func (c *volcanoJob) rule(p placedPolicy) (v1beta1.FailureRule, bool) {
	r := v1beta1.FailureRule{Action: actions[p.Action]}
	on := events(p.LifecyclePolicy)
	for _, e := range on {
		if len(happenings[e]) == 0 {
			c.note(p.path+".event", string(e), "Tideline has no such event; it is left out", lostEvents[e])
		}
		for _, ours := range happenings[e] {
			if !slices.Contains(r.OnEvents, ours) {
				r.OnEvents = append(r.OnEvents, ours)
			}
		}
	}
	switch {
	case r.Action == "":
		c.note(p.path+".action", string(p.Action), "Tideline has no such action; the policy is left out",
			"resume by spec.suspend: false what spec.suspend: true stopped")
		return r, false
	case p.ExitCode != nil:
		r.OnEvents = []v1beta1.FailureEvent{v1beta1.OnPodFailed}
		r.OnExitCodes = &v1beta1.ExitCodes{Operator: v1beta1.ExitCodesIn, Values: []int32{*p.ExitCode}}
	case len(r.OnEvents) == 0:
		return r, false
	}
	if !c.hasOneTask() && p.task != nil {
		r.Targets = []v1beta1.WorkerTarget{{Indexes: c.indexes(p.task)}}
	}
	if slices.Contains(r.OnEvents, v1beta1.OnTaskCompleted) && !c.completion(p, &r) {
		return r, false
	}
	c.meansElse(p)
	return r, true
}

// lostEvents says what to do about events that are left out.
var lostEvents = map[bus.Event]string{
	bus.PodPendingEvent: "bound the wait by spec.deadlines.schedulingSeconds",
	bus.JobUnknownEvent: "bound the time without a whole core by spec.deadlines.belowMinSeconds",
	bus.TaskFailedEvent: "bound restarts by spec.restarts.max",
	bus.JobUpdatedEvent: "",
}

// completion carries over that a task has completed; false if the success policy says it. Volcano waits for all pods of a task,
// and Tideline's event is that of one worker.
func (c *volcanoJob) completion(p placedPolicy, r *v1beta1.FailureRule) bool {
	ofOne := p.task != nil && p.task.Replicas == 1
	if ofOne && len(r.OnEvents) == 1 {
		return true
	}
	r.OnEvents = slices.DeleteFunc(r.OnEvents, func(e v1beta1.FailureEvent) bool { return e == v1beta1.OnTaskCompleted })
	switch {
	case r.Action == v1beta1.ActionCompleteJob && c.hasOneTask():
		// All of the task are all workers, which the success policy says already.
	case r.Action == v1beta1.ActionCompleteJob && p.task != nil:
		c.out.Spec.SuccessPolicy.Targets = []v1beta1.WorkerTarget{{Indexes: c.indexes(p.task)}}
	case r.Action == v1beta1.ActionCompleteJob:
		c.out.Spec.SuccessPolicy.Targets = nil
		c.note(p.path, string(bus.TaskCompletedEvent), "Volcano completes the job when any of its tasks has; Tideline when worker 0"+
			" has, which was task "+c.firstTask().Name, "")
	default:
		c.note(p.path+".event", string(bus.TaskCompletedEvent), "Tideline has no event of several successes; it is left out",
			"set spec.successPolicy")
	}
	return len(r.OnEvents) > 0
}

// meansElse notes where an action or its time is not quite Tideline's.
func (c *volcanoJob) meansElse(p placedPolicy) {
	switch p.Action { //nolint:exhaustive // the others mean the same
	case bus.RestartTaskAction:
		if !c.hasOneTask() {
			c.note(p.path+".action", string(p.Action), "the pods of one task cannot start again alone; all workers do (RestartJob)", "")
		}
	case bus.RestartPartitionAction:
		c.note(p.path+".action", string(p.Action), "there are no partitions; all workers start again (RestartJob)", "")
	case bus.AbortJobAction:
		c.note(p.path+".action", string(p.Action), "an aborted Job can be resumed; the ElasticTrainingJob has failed (FailJob)",
			"create it again to go on")
	}
	if p.Timeout != nil {
		c.note(p.path+".timeout", p.Timeout.Duration.String(), "Tideline acts at once; it is left out", "")
	}
	if slices.Contains(events(p.LifecyclePolicy), bus.PodEvictedEvent) {
		c.note(p.path+".event", string(bus.PodEvictedEvent), "to Volcano every pod that is deleted was evicted; to Tideline one that"+
			" somebody deleted has failed (PodFailed)", "")
	}
}

// defaultMaxRetry is what Volcano's webhook sets.
const defaultMaxRetry = 3

// maxRetry carries over how many restarts fail the job: Volcano's restart number maxRetry does, Tideline's the one beyond max.
func (c *volcanoJob) maxRetry(restarts bool) {
	const path = "spec.maxRetry"
	n := c.in.Spec.MaxRetry
	for _, t := range c.tasks() {
		if t.MaxRetry != 0 && t.MaxRetry != defaultMaxRetry {
			c.note(taskPath(t)+".maxRetry", t.MaxRetry, "restarts are counted for the whole job; it is left out",
				"set spec.restarts.max")
		}
	}
	if !restarts {
		if !c.neverRestarts() {
			c.note(path, shownOrNilNumber(n), fmt.Sprintf("Volcano does not count containers that start again in their pod; Tideline"+
				" fails the job at more than %d restarts within %d s", v1beta1.DefaultMaxRestarts, v1beta1.DefaultRestartWindowSeconds),
				fmt.Sprintf("set spec.restarts.max, %d at most, for more", maxRestarts))
		}
		return
	}
	if n == 0 {
		n = defaultMaxRetry
	}
	c.out.Spec.Restarts.Max = c.atMost(path, int64(n)-1, maxRestarts)
	c.note(path, shownOrNilNumber(c.in.Spec.MaxRetry), fmt.Sprintf("it is spec.restarts.max now, less one: Volcano fails the job at"+
		" restart %d, Tideline at the first beyond max within windowSeconds (%d); evictions and lost nodes never count, and"+
		" containers that start again in their pod do", n, v1beta1.DefaultRestartWindowSeconds), "")
}

// shownOrNilNumber is a number, or nil for a field that is not set.
func shownOrNilNumber(n int32) any {
	if n == 0 {
		return nil
	}
	return n
}
