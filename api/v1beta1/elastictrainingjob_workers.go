package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// Framework says how workers find each other, and how many processes each runs.
//
// +kubebuilder:validation:XValidation:rule="!has(self.ssh) || self.ssh != 'KeyPair' || (has(self.type) && self.type == 'Custom')",fieldPath=".ssh",message="ssh KeyPair needs type Custom, because torchrun's workers do not log in to each other: set type to Custom or remove ssh"
// +kubebuilder:validation:XValidation:rule="!has(self.torchrun) || !has(self.type) || self.type == 'Torchrun'",fieldPath=".torchrun",message="torchrun is for type Torchrun: set type to Torchrun or remove torchrun"
type Framework struct {
	// Type by which workers find each other. Torchrun: by its rendezvous, whose store is on worker 0, and which workers of roles do
	// not join. TensorFlow: by TF_CONFIG. Custom, for MPI, Horovod, DeepSpeed, JAX and others: Volcano's variables and a hosts file
	// (/etc/tideline/hosts) tell workers each other's names. TensorFlow has these too. Default Torchrun.
	// +optional
	// +kubebuilder:default=Torchrun
	Type FrameworkType `json:"type,omitempty"`

	// Port of the rendezvous store, or of JAX's coordinator, on worker 0; with type TensorFlow that of each worker. Default
	// 29400; where the template sets hostNetwork, a port of the operator's configuration (hostPorts), by default from 20000 to
	// 29999, but never 29400, that is drawn by the job's UID, so that jobs on one node seldom collide; status.attempt.hostPort
	// has it. Range 1024 to 65535.
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// NprocPerNode is the number of processes that torchrun starts in each worker (PET_NPROC_PER_NODE), and of slots in the hostfile
	// of type Custom. Default: the number of GPUs of the training container, requested or by resource claims, else 1. Range 1
	// to 256. A change takes effect with the next attempt.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	NprocPerNode *int32 `json:"nprocPerNode,omitempty"`

	// Torchrun sets timeouts of type Torchrun. Default: those of its fields.
	// +optional
	Torchrun *Torchrun `json:"torchrun,omitempty"`

	// SSH chooses what MPI launchers log in with. KeyPair mounts a key pair, made for the job, at /etc/tideline/ssh of every worker;
	// it needs type Custom, and the operator needs the rights of component ssh-keys. Default None.
	// +optional
	// +kubebuilder:default=None
	SSH SSHAccess `json:"ssh,omitempty"`
}

// FrameworkType is how workers find each other.
//
// +kubebuilder:validation:Enum=Torchrun;TensorFlow;Custom
type FrameworkType string

const (
	// FrameworkTorchrun is torchrun's rendezvous with its store on worker 0.
	FrameworkTorchrun FrameworkType = "Torchrun"
	// FrameworkTensorFlow is TF_CONFIG.
	FrameworkTensorFlow FrameworkType = "TensorFlow"
	// FrameworkCustom leaves it to the training.
	FrameworkCustom FrameworkType = "Custom"
)

// SSHAccess is what workers log in to each other with.
//
// +kubebuilder:validation:Enum=None;KeyPair
type SSHAccess string

const (
	// SSHNone: workers do not log in to each other.
	SSHNone SSHAccess = "None"
	// SSHKeyPair is a key pair that is made for the job.
	SSHKeyPair SSHAccess = "KeyPair"
)

// Torchrun sets timeouts of torchrun's rendezvous.
type Torchrun struct {
	// JoinTimeoutSeconds is how long an agent waits for a rendezvous to complete, in seconds (torchrun's join_timeout).
	// Default 600, range 30 to 86400.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	JoinTimeoutSeconds *int32 `json:"joinTimeoutSeconds,omitempty"`

	// LastCallTimeoutSeconds is how long a rendezvous stays open for late joiners after minReplicas agents have joined, in
	// seconds (torchrun's last_call_timeout). Default 30, range 1 to 3600.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	LastCallTimeoutSeconds *int32 `json:"lastCallTimeoutSeconds,omitempty"`

	// ReadTimeoutSeconds is how long an agent waits for the store on worker 0, in seconds (torchrun's read_timeout); it must
	// outlast worker 0's image pull. Default 300, range 300 to 86400.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=300
	// +kubebuilder:validation:Maximum=86400
	ReadTimeoutSeconds *int32 `json:"readTimeoutSeconds,omitempty"`

	// RdzvConf is further configuration of the rendezvous, as in training-operator's elasticPolicy. Default none.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	RdzvConf []RdzvConf `json:"rdzvConf,omitzero"`
}

// RdzvConf is one key=value pair of torchrun's --rdzv-conf.
type RdzvConf struct {
	// Key, for example close_timeout. Refused: is_host, join_timeout, last_call_timeout and read_timeout, which Tideline sets.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_]*$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['is_host', 'join_timeout', 'last_call_timeout', 'read_timeout'])",messageExpression="'key ' + self + ' is set by Tideline: remove it; the timeouts have fields of their own in spec.framework.torchrun'"
	Key string `json:"key"`

	// Value, without a comma or an equals sign, which separate pairs.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^,=\s]+$`
	Value string `json:"value"`
}

// Master overrides the template for worker 0, and in a role for its workers.
type Master struct {
	// Resources of the training container, in place of the template's. Where they ask for none of the accelerator's resource
	// although the template does, the worker may run beside any model.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodeSelector is added to the template's.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// NetworkTopology keeps workers close to each other in the network, by the HyperNodes that Volcano knows.
//
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode != 'Hard') || has(self.highestTierAllowed)",fieldPath=".highestTierAllowed",message="mode Hard needs highestTierAllowed, the highest tier of the HyperNode that all workers share: set it, or set mode to Soft"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Soft' || !has(self.highestTierAllowed)",fieldPath=".highestTierAllowed",messageExpression="'highestTierAllowed (%d) is for mode Hard; with mode Soft Volcano takes the lowest tier that has room: remove it, or set mode to Hard'.format([self.highestTierAllowed])"
type NetworkTopology struct {
	// Mode is how strict that is. Hard: all workers are in one HyperNode of tier highestTierAllowed or lower, or wait. Soft: the
	// core is placed in one HyperNode of the lowest tier that has room for it, or anywhere, and surplus near it. Default Hard.
	// +optional
	// +kubebuilder:default=Hard
	Mode NetworkTopologyMode `json:"mode,omitempty"`

	// HighestTierAllowed is the highest tier of the HyperNode that all workers share, in mode Hard. A tier above all HyperNodes is
	// no limit. Range 0 to 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	HighestTierAllowed *int32 `json:"highestTierAllowed,omitempty"`
}

// NetworkTopologyMode is how strictly workers are kept close to each other.
//
// +kubebuilder:validation:Enum=Hard;Soft
type NetworkTopologyMode string

const (
	// TopologyHard has all workers in one HyperNode up to a tier.
	TopologyHard NetworkTopologyMode = "Hard"
	// TopologySoft has them as close as there is room.
	TopologySoft NetworkTopologyMode = "Soft"
)

// HighestTier is the highest tier of the HyperNode that all workers share; false for workers that need not share one.
func (t *NetworkTopology) HighestTier() (tier int, hard bool) {
	if t == nil || t.Mode == TopologySoft || t.HighestTierAllowed == nil {
		return 0, false
	}
	return int(*t.HighestTierAllowed), true
}

// Accelerator lists the accepted models of accelerator.
type Accelerator struct {
	// ResourceName is the resource that the models are of. Default nvidia.com/gpu.
	// +optional
	// +kubebuilder:default="nvidia.com/gpu"
	// +kubebuilder:validation:MaxLength=316
	ResourceName string `json:"resourceName,omitempty"`
	// Models that are accepted, in the order of preference, as nodes name them in label nvidia.com/gpu.product, or
	// amd.com/gpu.product-name for amd.com/gpu; the operator's configuration may name labels of other resources.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Models []string `json:"models"`
	// Mixing chooses whether workers of one attempt may run on different models. Forbidden: each attempt uses one
	// (status.attempt.model): the first listed at first; while nothing is placed and the core does not fit on it, the first
	// listed on which it fits. Allowed: any listed model, for each worker. Default Forbidden.
	// +optional
	// +kubebuilder:default=Forbidden
	Mixing ModelMixing `json:"mixing,omitempty"`

	FormerAccelerator `json:",inline"`
}

// ModelMixing chooses whether workers of one attempt may run on different models.
//
// +kubebuilder:validation:Enum=Forbidden;Allowed
type ModelMixing string

const (
	// MixingForbidden lets each attempt use one model.
	MixingForbidden ModelMixing = "Forbidden"
	// MixingAllowed lets each worker use any listed model.
	MixingAllowed ModelMixing = "Allowed"
)
