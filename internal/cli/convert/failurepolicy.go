package convert

import (
	"slices"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// firstRetryable is the first exit code that training-operator retries (train.IsRetryableExitCode); those from 1 to the one
// before are permanent.
const firstRetryable = 128

// restartPolicy is that of a role, or training-operator's default.
func (c *conversion) restartPolicy(role kubeflowv1.ReplicaType) kubeflowv1.RestartPolicy {
	if p := c.in.Spec.PyTorchReplicaSpecs[role].RestartPolicy; p != "" {
		return p
	}
	return kubeflowv1.PyTorchJobDefaultRestartPolicy
}

// roles are those that the job has, the Master first.
func (c *conversion) roles() []kubeflowv1.ReplicaType {
	return slices.DeleteFunc([]kubeflowv1.ReplicaType{master, worker}, func(r kubeflowv1.ReplicaType) bool {
		return c.in.Spec.PyTorchReplicaSpecs[r] == nil
	})
}

// restarts is whether a worker that fails is started again in any case.
func (c *conversion) restarts() bool {
	return slices.ContainsFunc(c.roles(), func(r kubeflowv1.ReplicaType) bool {
		return c.restartPolicy(r) != kubeflowv1.RestartPolicyNever
	})
}

// failurePolicy carries over what becomes of a worker that fails. OnFailure is what Tideline does without a rule.
func (c *conversion) failurePolicy() {
	roles := c.roles()
	if len(roles) == 2 && c.restartPolicy(master) == c.restartPolicy(worker) {
		// One rule for all.
		roles = []kubeflowv1.ReplicaType{worker}
	}
	var rules []v1beta1.FailureRule
	for _, role := range roles {
		var whose []v1beta1.WorkerTarget
		if len(roles) == 2 {
			whose = []v1beta1.WorkerTarget{{Indexes: "1-"}}
			if role == master {
				whose[0].Indexes = "0"
			}
		}
		rules = append(rules, c.rulesOf(role, whose)...)
	}
	if len(rules) > 0 {
		c.out.Spec.FailurePolicy = &v1beta1.FailurePolicy{Rules: rules}
		c.failAtOnce()
	}
}

// rulesOf are the rules that a role's restartPolicy amounts to.
func (c *conversion) rulesOf(role kubeflowv1.ReplicaType, whose []v1beta1.WorkerTarget) []v1beta1.FailureRule {
	path := replicaPath(role) + ".restartPolicy"
	failed := []v1beta1.FailureEvent{v1beta1.OnPodFailed}
	switch p := c.restartPolicy(role); p {
	case kubeflowv1.RestartPolicyAlways:
		c.note(path, string(p), "a worker that exits with code 0 is not started again: the job ends when its workers do", "")
	case kubeflowv1.RestartPolicyNever:
		// UpdateJobReplicaStatuses: a pod that is being deleted counts as failed, whoever deletes it.
		c.note(path, string(p), "it is a rule in spec.failurePolicy now, by which a worker that was deleted by somebody fails"+
			" the job, as before; an eviction, a drained node or a lost one no longer does", "")
		return []v1beta1.FailureRule{
			{Name: "never-restart", Action: v1beta1.ActionFailJob, OnEvents: failed, Targets: whose},
		}
	case kubeflowv1.RestartPolicyExitCode:
		codes := make([]int32, firstRetryable-1)
		for i := range codes {
			codes[i] = int32(i) + 1
		}
		c.note(path, string(p), "it is two rules in spec.failurePolicy now: codes 1 to 127 fail the job, any other restarts"+
			" the worker; they see the code of the container, and torchrun exits with 1 whatever code the training script had",
			"if the script's own code must decide, let it catch what is worth a retry")
		return []v1beta1.FailureRule{
			{
				Name: "permanent", Action: v1beta1.ActionFailJob, OnEvents: failed, Targets: whose,
				OnExitCodes: &v1beta1.ExitCodes{Operator: v1beta1.ExitCodesIn, Values: codes},
			},
			{Name: "retryable", Action: v1beta1.ActionRestartWorker, OnEvents: failed, Targets: whose},
		}
	case kubeflowv1.RestartPolicyOnFailure:
	}
	return nil
}

// failAtOnce lets Tideline see a failure of the script: torchrun would otherwise start it again inside the container. Training-
// operator does not set PET_MAX_RESTARTS unless elasticPolicy does, and torchrun's own default is 0.
func (c *conversion) failAtOnce() {
	e := c.in.Spec.ElasticPolicy
	told := e != nil && e.MaxRestarts != nil ||
		slices.ContainsFunc(c.trainer().Env, func(v corev1.EnvVar) bool { return v.Name == "PET_MAX_RESTARTS" })
	switch {
	case told:
	case c.out.Spec.MinReplicas == c.out.Spec.MaxReplicas:
		c.setEnv("PET_MAX_RESTARTS", "0")
	default:
		c.note("spec.elasticPolicy.maxRestarts", nil, "torchrun starts a failed script again up to 100 times before the container"+
			" fails and spec.failurePolicy decides; with training-operator it does not, but with 0, giving a worker away would fail"+
			" the others", "set the variable PET_MAX_RESTARTS in the template for fewer")
	}
}
