package v1alpha1

// Elasticity says how a job grows and shrinks.
type Elasticity struct {
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

// Growth says which surplus workers are created, and when.
type Growth struct {
	// Mode chooses which surplus workers are created. Always: up to the number to aim at, and some may wait. OnlyIfFits: only
	// what fits now beside the gangs that wait for the same nodes, for clusters whose autoscaler would add nodes for waiting
	// pods. Default Always.
	// +optional
	// +kubebuilder:default=Always
	Mode GrowthMode `json:"mode,omitempty"`

	// CooldownSeconds is the time after surplus gave way before the operator creates surplus again, in seconds: each change of
	// membership costs the training a restart. It never shields surplus from a gang that could start, and never holds back
	// the first growth. Default 300, range 0 to 86400.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`
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
// +kubebuilder:validation:Enum=Always;OnlyIfFits
type GrowthMode string

const (
	// GrowthAlways creates surplus up to the number to aim at.
	GrowthAlways GrowthMode = "Always"
	// GrowthOnlyIfFits creates the surplus that fits now.
	GrowthOnlyIfFits GrowthMode = "OnlyIfFits"
)
