package v1beta1

// Elasticity says how a job grows and shrinks.
//
// +kubebuilder:validation:XValidation:rule="!has(self.stepWithin) || (has(self.step) && self.step > 1)",fieldPath=".stepWithin",message="stepWithin keeps the workers of a step together, and elasticity.step is 1: set it to 2 or more, or remove stepWithin"
type Elasticity struct {
	// Step is by how many workers the job changes its size: it has minReplicas workers and a multiple of this. Surplus beyond
	// the last multiple is not created, or leaves. For trainings whose parallelism needs certain numbers, and for whole nodes.
	// Default 1, range 1 to 4096, at most maxReplicas - minReplicas.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	Step int32 `json:"step,omitempty"`

	// StepWithin keeps the surplus workers of each step together: on one node, or in one HyperNode of Volcano. The job grows only
	// where one has room for a whole step, and a step leaves as a whole. A change concerns pods created from then on: what was
	// placed before stays until it loses a worker. Needs a step of 2 or more. Default: workers of a step may be anywhere.
	// +optional
	StepWithin *StepWithin `json:"stepWithin,omitempty"`

	// Growth says which surplus workers are created, and when.
	// +optional
	// +kubebuilder:default={}
	Growth Growth `json:"growth,omitempty"`

	// Shrink says what evicts surplus workers, and when.
	// +optional
	// +kubebuilder:default={}
	Shrink Shrink `json:"shrink,omitempty"`

	// RangeUpdate chooses when a range that running workers cannot follow takes effect. NextAttempt: with the next attempt,
	// whatever starts it. Restart: it starts the next attempt, after a checkpoint if one is configured. Default NextAttempt.
	// +optional
	// +kubebuilder:default=NextAttempt
	RangeUpdate RangeUpdate `json:"rangeUpdate,omitempty"`

	FormerElasticity `json:",inline"`
}

// WholeSteps is the largest number of surplus workers, of at most this many, that is a multiple of the step.
func (e *Elasticity) WholeSteps(surplus int32) int32 { return surplus - surplus%max(e.Step, 1) }

// StepWithin says where the surplus workers of one step stay together.
//
// +kubebuilder:validation:XValidation:rule="self.level != 'HyperNode' || has(self.tier)",fieldPath=".tier",message="level HyperNode needs tier, that of the HyperNodes that hold whole steps: set it, or set level to Node"
// +kubebuilder:validation:XValidation:rule="self.level != 'Node' || !has(self.tier)",fieldPath=".tier",messageExpression="'tier (%d) is for level HyperNode; a step of level Node is on one node: remove tier, or set level to HyperNode'.format([self.tier])"
type StepWithin struct {
	// Level. Node: a step is on one node. HyperNode: it is in one HyperNode of the tier, with 1000 nodes or fewer.
	// +required
	Level StepLevel `json:"level"`

	// Tier of the HyperNodes, with level HyperNode. Range 1 to 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Tier *int32 `json:"tier,omitempty"`
}

// StepLevel is what holds a whole step.
//
// +kubebuilder:validation:Enum=Node;HyperNode
type StepLevel string

const (
	// StepOnNode has each step on one node.
	StepOnNode StepLevel = "Node"
	// StepInHyperNode has each step in one HyperNode.
	StepInHyperNode StepLevel = "HyperNode"
)

// DomainTier is the tier of the HyperNodes that steps are within; 0 for single nodes.
func (w *StepWithin) DomainTier() int {
	if w.Level == StepOnNode || w.Tier == nil {
		return 0
	}
	return int(*w.Tier)
}

// Growth says which surplus workers are created, and when.
type Growth struct {
	// Mode chooses which surplus workers are created. Always: up to the number to aim at; some may wait, and join one by one.
	// OnlyIfFits: only what fits now beside the gangs that wait for the same nodes, in steps between which none joins.
	// OnlyIfPays: the same, when a step brings more than the restart of all workers costs, and once the job has missed as much
	// without it; what cannot be judged, it tries. Default OnlyIfPays.
	// +optional
	// +kubebuilder:default=OnlyIfPays
	Mode GrowthMode `json:"mode,omitempty"`

	// CooldownSeconds is the time before the job grows again of its own accord, in seconds, because each change of size
	// restarts the training: after surplus gave way, and after growth too, unless the mode is Always and the step 1. Then it
	// also doubles, up to an hour, while the job keeps losing what it gained. It never shields surplus from a gang that
	// could start, and holds back neither the first growth, nor one that follows another restart, nor a higher replicas.
	// Default 300, range 0 to 86400.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`

	// MaxPerHour is how often the job may grow within an hour, whatever cooldownSeconds says, unless the mode is Always
	// and the step 1. Default 12, range 1 to 3600.
	// +optional
	// +kubebuilder:default=12
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	MaxPerHour *int32 `json:"maxPerHour,omitempty"`

	// OutageSeconds is for how long a change of size keeps the training from progress, in seconds, steps that it does again
	// included, as mode OnlyIfPays takes it until it was measured from annotation tideline.io/progress. Range 0 to 86400. Without
	// it, 60 with checkpoint.graceSeconds, and else 360: a minute, and half of ten minutes between two checkpoints.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	OutageSeconds *int32 `json:"outageSeconds,omitempty"`

	// LeastGainPercent is the least gain for which the job grows, in percent of the speed that one core worker adds. Growth stops
	// where one more worker was measured to add less. It needs spec.progress, and a training that tells its total. 0 means no
	// limit. Default 10, range 0 to 100.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	LeastGainPercent *int32 `json:"leastGainPercent,omitempty"`
}

// Shrink says what evicts surplus workers, and when.
type Shrink struct {
	// Initiator chooses what evicts surplus for a waiting gang. Scheduler: Volcano alone. Operator: Tideline, when a gang has
	// starved. Auto: Volcano if its configuration allows it (condition SchedulerConfigured), else Tideline. Default Auto.
	// +optional
	// +kubebuilder:default=Auto
	Initiator ShrinkInitiator `json:"initiator,omitempty"`

	// StarvationSeconds is how long this job's core waits before the operator evicts surplus for it, of jobs that the operator
	// shrinks, in seconds. Default 60, range 0 to 86400.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	StarvationSeconds *int32 `json:"starvationSeconds,omitempty"`

	// MinRunSeconds is how long a surplus worker, once placed, is left alone before Volcano may evict it, in seconds;
	// gangs of all tiers wait that long for its place. A job that asks for more than its tier allows
	// (tiers[].maxMinSurplusRunSeconds of the operator's configuration, which is 0 unless it says otherwise) is refused, and one
	// that was admitted is given as much as its tier allows. It needs Volcano's plugin cdp, and a change concerns pods created from
	// then on. Default 0, range 0 to 86400.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinRunSeconds *int32 `json:"minRunSeconds,omitempty"`
}

// RangeUpdate chooses when a range that running workers cannot follow takes effect.
//
// +kubebuilder:validation:Enum=NextAttempt;Restart
type RangeUpdate string

const (
	// RangeUpdateNextAttempt lets the range wait for the next attempt.
	RangeUpdateNextAttempt RangeUpdate = "NextAttempt"
	// RangeUpdateRestart starts the next attempt.
	RangeUpdateRestart RangeUpdate = "Restart"
)

// ShrinkInitiator chooses what evicts surplus.
//
// +kubebuilder:validation:Enum=Auto;Scheduler;Operator
type ShrinkInitiator string

const (
	// ShrinkAuto leaves it to Volcano where its configuration provides for it, and to the operator elsewhere.
	ShrinkAuto ShrinkInitiator = "Auto"
	// ShrinkByScheduler leaves it to Volcano.
	ShrinkByScheduler ShrinkInitiator = "Scheduler"
	// ShrinkByOperator leaves it to the operator.
	ShrinkByOperator ShrinkInitiator = "Operator"
)

// GrowthMode says which surplus workers are created.
//
// +kubebuilder:validation:Enum=Always;OnlyIfFits;OnlyIfPays
type GrowthMode string

const (
	// GrowthAlways creates surplus up to the number to aim at.
	GrowthAlways GrowthMode = "Always"
	// GrowthOnlyIfFits creates the surplus that fits now.
	GrowthOnlyIfFits GrowthMode = "OnlyIfFits"
	// GrowthOnlyIfPays creates the surplus that fits now, when it brings more than the restart costs.
	GrowthOnlyIfPays GrowthMode = "OnlyIfPays"
)
