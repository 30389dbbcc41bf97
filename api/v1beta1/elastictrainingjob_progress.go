package v1beta1

// JobProgress has the operator follow what the training says of its steps, in lines of worker 0's log (docs/progress.md). The
// operator needs the rights of component training-progress.
type JobProgress struct {
	// Stall says when a training that takes no steps counts as stalled, and what is done then.
	// +optional
	// +kubebuilder:default={}
	Stall Stall `json:"stall,omitempty"`
}

// Stall says when a training that takes no steps counts as stalled, and what is done then.
type Stall struct {
	// Factor is how many times the usual time of a step may pass until one counts as missing: a hang is told when no line came for
	// the usual time between two, Factor - 1 usual steps, and half a minute. The first step, announced evaluations and checkpoints,
	// and the time after workers came or went do not count.
	// Default 3, range 2 to 1000.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1000
	Factor int32 `json:"factor,omitempty"`

	// Policy is what is done. Tell: condition Stalled and an event say so. Restart: all workers are created again, which counts as a
	// restart. Fail: the job fails. Default Tell.
	// +optional
	// +kubebuilder:default=Tell
	Policy StallPolicy `json:"policy,omitempty"`
}

// StallPolicy is what is done about a training that takes no steps.
//
// +kubebuilder:validation:Enum=Tell;Restart;Fail
type StallPolicy string

const (
	// StallTell says so, and leaves the training alone.
	StallTell StallPolicy = "Tell"
	// StallRestart begins the next attempt.
	StallRestart StallPolicy = "Restart"
	// StallFail fails the job.
	StallFail StallPolicy = "Fail"
)

// TrainingProgress is what the training said of its steps, as of the last write: it is written when a word of it changes, and at
// most once a minute.
type TrainingProgress struct {
	// Step is how many steps were taken.
	Step int64 `json:"step"`
	// Total is how many will be taken; 0 for unknown.
	// +optional
	Total int64 `json:"total,omitempty"`
	// CheckpointStep is the step that the last saved checkpoint is of; absent if the training told of none.
	// +optional
	CheckpointStep *int64 `json:"checkpointStep,omitempty"`
	// Progress is what column Progress of `kubectl get` shows: 42%, or step 12300 where the total is unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`
	// StepsPerSecond at the usual pace; empty until that is known, and while the training does not run.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	StepsPerSecond string `json:"stepsPerSecond,omitempty"`
	// TimeLeft at that pace, such as 3h30m; empty where it is unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	TimeLeft string `json:"timeLeft,omitempty"`
	// Straggler is the worker that all others wait for in each step; absent if there is none, or the training does not say.
	// +optional
	Straggler *TrainingStraggler `json:"straggler,omitempty"`
}

// TrainingStraggler is a worker that takes longer for its part of each step than the others.
type TrainingStraggler struct {
	// Worker is its index.
	Worker int32 `json:"worker"`
	// Node that it is on; empty for a worker without one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// Slowness is how many times as long as the median worker it took when it was first told, such as 1.6.
	// +kubebuilder:validation:MaxLength=32
	Slowness string `json:"slowness"`
}
