package v1beta1

import (
	"slices"
	"strconv"
	"strings"
)

// Cleanup says what remains of a job when it has ended.
type Cleanup struct {
	// PodPolicy says which pods are deleted when the job ends: None, Running (those that still run or wait) or All.
	// Default Running.
	// +optional
	// +kubebuilder:default=Running
	PodPolicy CleanPodPolicy `json:"podPolicy,omitempty"`

	// TTLSecondsAfterFinished is how long after its end the job is deleted, in seconds, with everything that it owns. Default:
	// never. Range 0 to 31536000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// Deadlines bound how long a job may train and wait.
type Deadlines struct {
	// ActiveSeconds is how long the job may train, in seconds, counted from when the core first ran in an attempt until the
	// attempt ends, recovery included, and added up over all attempts; the clock stands still while the job waits for the first
	// placement of an attempt, is suspended or preempted. The job fails when it has passed. Default: no limit. Range 1 to 31536000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	ActiveSeconds *int32 `json:"activeSeconds,omitempty"`

	// SchedulingSeconds is how long the core of an attempt may wait until all of it runs, in seconds. The job fails when it
	// has passed. Default: no limit. Range 1 to 31536000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	SchedulingSeconds *int32 `json:"schedulingSeconds,omitempty"`

	// BelowMinSeconds is how long a job whose core has run in the current attempt may be without a whole core, in
	// seconds: fewer workers than minReplicas cannot train. The clock stops while the cause is a node that does not answer or
	// that rejected a worker. Before the core ran, it is how long a core worker may be unable to start for its image or
	// configuration. The job fails when it has passed. Default 1800, range 1 to 31536000.
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	BelowMinSeconds *int32 `json:"belowMinSeconds,omitempty"`

	// ForceDeleteSeconds is how long a node must have been unreachable before the operator deletes pods of the job by
	// force that have to leave it, in seconds; so that their workers can be created again without an administrator. Danger: a
	// machine that is cut off but still runs keeps the old worker beside the new one, and both may write to the same
	// checkpoint. Set it only if machines that do not answer are switched off, or if the storage lets only one of the two
	// write. Default: never; an administrator confirms that the node is gone. Range 60 to 86400.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	ForceDeleteSeconds *int32 `json:"forceDeleteSeconds,omitempty"`
}

// Restarts bounds how often failures may restart a training.
type Restarts struct {
	// Max is how many restarts within windowSeconds the job may cost; one more fails it. Only losses that count are
	// counted (status.restarts); reported progress (annotation tideline.io/progress on worker 0's pod) forgives those before it.
	// Default 10, range 0 to 100.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Max *int32 `json:"max,omitempty"`

	// WindowSeconds is the sliding window in which restarts count against max, in seconds. Default 86400, range 60 to
	// 31536000.
	// +optional
	// +kubebuilder:default=86400
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`
}

// CleanPodPolicy says which worker pods are deleted when a job ends.
//
// +kubebuilder:validation:Enum=None;Running;All
type CleanPodPolicy string

const (
	// CleanPodPolicyNone keeps every pod; of a job whose time is over, those that have ended.
	CleanPodPolicyNone CleanPodPolicy = "None"
	// CleanPodPolicyRunning deletes pods that still run or wait, and keeps finished ones for their logs.
	CleanPodPolicyRunning CleanPodPolicy = "Running"
	// CleanPodPolicyAll deletes every pod.
	CleanPodPolicyAll CleanPodPolicy = "All"
)

// SuccessPolicy says when a job has succeeded.
type SuccessPolicy struct {
	// Operator says how many of the targeted workers must succeed. All: each that belongs to the core. Any: one of them; no failure
	// within the completion grace matters then. Default All.
	// +optional
	// +kubebuilder:default=All
	Operator SuccessOperator `json:"operator,omitempty"`

	// Targets are the workers that count. Default: worker 0.
	// +optional
	// +listType=atomic
	// +kubebuilder:default={{indexes:"0"}}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Targets []WorkerTarget `json:"targets,omitempty"`

	// CompletionGraceSeconds is how long the other workers may take to end once the policy is met, in seconds (torchrun's
	// exit barrier is 300 s). The job succeeds when all have ended or the time has passed; a worker that fails within it
	// fails the job, unless operator is Any. Default 300, range 0 to 86400.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CompletionGraceSeconds *int32 `json:"completionGraceSeconds,omitempty"`
}

// SuccessOperator says how many of the targeted workers must succeed.
//
// +kubebuilder:validation:Enum=All;Any
type SuccessOperator string

const (
	// SuccessOfAll: every targeted worker of the core.
	SuccessOfAll SuccessOperator = "All"
	// SuccessOfAny: one targeted worker.
	SuccessOfAny SuccessOperator = "Any"
)

// WorkerTarget chooses workers of a job.
type WorkerTarget struct {
	// Indexes are indices of workers, and ranges of them, in rising order and parted by commas, as in 0,2-4 or 8-. A range without
	// an end has all from its beginning on. 0- are all workers.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^([0-9]{1,4}(-[0-9]{1,4})?,)*[0-9]{1,4}(-([0-9]{1,4})?)?$`
	Indexes string `json:"indexes"`
}

// FailurePolicy says what Tideline does about lost workers. It does not decide whether a loss counts as a restart:
// evictions, preemptions and lost nodes never count, the loss of worker 0 counts once for the job, any other counts. If a
// loss both matches a rule that ends the job and exceeds the budget, the rule decides.
type FailurePolicy struct {
	// Rules are tried in their order; the first that matches decides. If no rule matches, the worker is replaced, as torchrun
	// expects. Unless framework.type is Torchrun, two rules follow yours: the job restarts on PodFailed, PodEvicted and NodeLost,
	// also when the training container restarts in place, and completes on TaskCompleted of worker 0.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Rules []FailureRule `json:"rules,omitempty"`
}

// FailureRule is one rule of a failure policy. It matches if all its conditions match.
//
// +kubebuilder:validation:XValidation:rule="has(self.onEvents) || has(self.onExitCodes) || has(self.onPodConditions) || has(self.onReasons)",message="a rule must say what it matches: set onEvents, onExitCodes, onPodConditions or onReasons"
type FailureRule struct {
	// Name of the rule, for messages. Default: its place among the rules, from 0.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// Action to take. Ignore: a surplus worker is not replaced before the next attempt; a core worker always is, because
	// training stops without it. RestartWorker: the worker is replaced. RestartJob: all workers are created again as the next
	// attempt, after the back-off of restarts that counted. CompleteJob: the job has succeeded. FailJob: it has failed.
	// +required
	Action FailureAction `json:"action"`

	// OnEvents lists what may have happened: PodFailed, a container exited with another code than 0, or a client deleted the pod;
	// PodEvicted, the pod was evicted or preempted; NodeLost, its node is gone; TaskCompleted, it succeeded. Default: any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	OnEvents []FailureEvent `json:"onEvents,omitzero"`

	// OnExitCodes matches the exit code of the container that failed, the first of them if there are several.
	// +optional
	OnExitCodes *ExitCodes `json:"onExitCodes,omitempty"`

	// OnPodConditions lists conditions of the pod. One of them must be True, for example DisruptionTarget.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=316
	OnPodConditions []string `json:"onPodConditions,omitzero"`

	// OnReasons lists reasons of the pod, of its condition DisruptionTarget or of the container that failed. One of them must
	// match, for example OOMKilled.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=128
	OnReasons []string `json:"onReasons,omitzero"`

	// Targets limit the rule to some workers. Default: all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Targets []WorkerTarget `json:"targets,omitzero"`

	FormerRule `json:",inline"`
}

// FailureAction is what Tideline does about a lost worker.
//
// +kubebuilder:validation:Enum=Ignore;RestartWorker;RestartJob;CompleteJob;FailJob
type FailureAction string

const (
	// ActionIgnore does not replace a surplus worker before the next attempt.
	ActionIgnore FailureAction = "Ignore"
	// ActionRestartWorker replaces the worker.
	ActionRestartWorker FailureAction = "RestartWorker"
	// ActionRestartJob creates all workers anew, as the next attempt.
	ActionRestartJob FailureAction = "RestartJob"
	// ActionCompleteJob ends the job as succeeded.
	ActionCompleteJob FailureAction = "CompleteJob"
	// ActionFailJob ends the job as failed.
	ActionFailJob FailureAction = "FailJob"
)

// FailureEvent is what happened to a worker.
//
// +kubebuilder:validation:Enum=PodFailed;PodEvicted;NodeLost;TaskCompleted
type FailureEvent string

const (
	// OnPodFailed: a container exited with another code than 0, or a client deleted the pod.
	OnPodFailed FailureEvent = "PodFailed"
	// OnPodEvicted: the pod was evicted or preempted.
	OnPodEvicted FailureEvent = "PodEvicted"
	// OnNodeLost: the pod's node is gone or does not answer, or its kubelet did not keep the pod when it started again.
	OnNodeLost FailureEvent = "NodeLost"
	// OnTaskCompleted: the worker succeeded. It has left, so that Ignore and RestartWorker change nothing; of worker 0, if its
	// success is the job's, only CompleteJob does.
	OnTaskCompleted FailureEvent = "TaskCompleted"
)

// ExitCodes matches exit codes. As with training-operator's ExitCode policy, 1 to 127 are commonly permanent and 128 to 255,
// which stand for signals, commonly worth a retry.
type ExitCodes struct {
	// Operator says whether the code must be In or NotIn values.
	// +required
	Operator ExitCodesOperator `json:"operator"`
	// Values are exit codes, 1 to 255.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=255
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	Values []int32 `json:"values"`
}

// ExitCodesOperator relates an exit code to a set.
//
// +kubebuilder:validation:Enum=In;NotIn
type ExitCodesOperator string

const (
	// ExitCodesIn matches codes of the set.
	ExitCodesIn ExitCodesOperator = "In"
	// ExitCodesNotIn matches codes outside of the set, 0 excepted.
	ExitCodesNotIn ExitCodesOperator = "NotIn"
)

// Checkpoint says how the training saves itself before workers leave. Pods read it when they are created.
type Checkpoint struct {
	// GraceSeconds is how long a worker that must leave trains on while worker 0 saves a checkpoint, in seconds. Worker 0
	// reads the request in a file, and acknowledges by an annotation on its own pod; then, or when the time has passed, the
	// worker leaves. The price: a gang that waits for the room waits that long. A surplus worker that Volcano evicts sleeps
	// the whole grace before it is told to end, which takes Kubernetes 1.30; one that Tideline evicts may take up to twice the
	// grace, the wait for the acknowledgement and then its own sleep, but is killed two minutes after it was deleted at the
	// latest. Worker 0 is asked to save too once surplus has its node, because all workers go back to the last checkpoint when
	// it joins; the surplus does not wait. 0: it is never asked, and workers leave at once. Default 0, range 0 to 3600; more than
	// limits.maxGraceSeconds of the operator's configuration, which is 600 unless it says otherwise, is refused.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	GraceSeconds *int32 `json:"graceSeconds,omitempty"`
}

// Contains is true for a worker that the target chooses. What is no index and no range chooses none.
func (t *WorkerTarget) Contains(index int32) bool {
	for part := range strings.SplitSeq(t.Indexes, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.ParseInt(first, 10, 32)
		if err != nil || int64(index) < from {
			continue
		}
		to := from
		if isRange {
			to = MaxWorkers
			if n, err := strconv.ParseInt(last, 10, 32); err == nil {
				to = n
			}
		}
		if int64(index) <= to {
			return true
		}
	}
	return false
}

// IsMetByOne is true if the success of any worker that counts completes the job.
func (p *SuccessPolicy) IsMetByOne() bool { return p.Operator == SuccessOfAny }

// CountsWorker is true for a worker that counts: one that a target chooses, or worker 0 if there are no targets.
func (p *SuccessPolicy) CountsWorker(index int32) bool {
	if len(p.Targets) == 0 {
		return index == 0
	}
	return slices.ContainsFunc(p.Targets, func(t WorkerTarget) bool { return t.Contains(index) })
}
