package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ElasticTrainingJobSpec says what to train and how far the job may stretch.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",messageExpression="'minReplicas (%d) must not exceed maxReplicas (%d): lower minReplicas or raise maxReplicas'.format([self.minReplicas, self.maxReplicas])"
// +kubebuilder:validation:XValidation:rule="has(self.tier) == has(oldSelf.tier)",fieldPath=".tier",message="tier cannot be added or removed later, because pods carry its priority class from their creation: delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="has(self.owner) == has(oldSelf.owner)",fieldPath=".owner",message="owner cannot be added or removed later, because it is checked when the job is created: delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="has(self.ownerGroups) == has(oldSelf.ownerGroups)",fieldPath=".ownerGroups",message="ownerGroups cannot be added or removed later, because it records the owner's groups when the job was created: leave it unchanged, or delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="has(self.task) == has(oldSelf.task)",fieldPath=".task",message="task cannot be added or removed later, because pods and their history carry it from their creation: delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="has(self.master) == has(oldSelf.master)",fieldPath=".master",message="master cannot be added or removed later, because running workers cannot follow it: delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="has(self.accelerator) == has(oldSelf.accelerator)",fieldPath=".accelerator",message="accelerator cannot be added or removed later, because running workers cannot follow it: delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="has(self.nprocPerNode) == has(oldSelf.nprocPerNode)",fieldPath=".nprocPerNode",message="nprocPerNode cannot be added or removed later, because running workers have read it when they started: delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="!has(self.networkPolicy) || self.networkPolicy != 'Isolated' || !has(self.template.spec.hostNetwork) || !self.template.spec.hostNetwork",fieldPath=".networkPolicy",message="networkPolicy Isolated does not hold for workers with hostNetwork, which no NetworkPolicy covers: remove one of the two"
// +kubebuilder:validation:XValidation:rule="(has(self.rendezvous) && has(self.rendezvous.backend) && self.rendezvous.backend == 'None') || self.template.spec.containers.all(c, !has(c.env) || c.env.all(e, !(e.name in ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'PET_NNODES', 'PET_NPROC_PER_NODE', 'PET_RDZV_BACKEND', 'PET_RDZV_ENDPOINT', 'PET_RDZV_ID', 'PET_RDZV_CONF', 'PET_LOCAL_ADDR'])))",fieldPath=".template.spec.containers",messageExpression="self.template.spec.containers.map(c, has(c.env) && c.env.exists(e, e.name in ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'PET_NNODES', 'PET_NPROC_PER_NODE', 'PET_RDZV_BACKEND', 'PET_RDZV_ENDPOINT', 'PET_RDZV_ID', 'PET_RDZV_CONF', 'PET_LOCAL_ADDR']), 'env %s of container %s is reserved: torchrun and Tideline set it; remove it'.format([c.env.filter(e, e.name in ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'PET_NNODES', 'PET_NPROC_PER_NODE', 'PET_RDZV_BACKEND', 'PET_RDZV_ENDPOINT', 'PET_RDZV_ID', 'PET_RDZV_CONF', 'PET_LOCAL_ADDR'])[0].name, c.name]))[0]"
type ElasticTrainingJobSpec struct {
	// MinReplicas is the number of workers the job cannot train without: its core. Volcano places the core all together or not
	// at all, and never evicts part of a running core. The whole job can be stopped for a gang whose tier preempts the job's.
	// A change takes effect at once while nothing is placed, and waits for the next attempt otherwise.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MinReplicas int32 `json:"minReplicas"`

	// MaxReplicas is the largest number of workers the job can use. Workers beyond minReplicas are surplus: they run on
	// whatever is free and give way to waiting gangs. It is the replica count of the scale subresource, so
	// `kubectl scale etj NAME --replicas=N` sets it. A change takes effect at once, as far as the range that running workers
	// were started with reaches; condition RangePending tells when the rest waits for the next attempt.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MaxReplicas int32 `json:"maxReplicas"`

	// Template is the worker pod. Its container named "trainer", else its first, is the training container: it alone gets the
	// torchrun variables (PET_*). What Tideline decides is refused here: schedulerName, priorityClassName, priority,
	// preemptionPolicy, nodeName, schedulingGates, hostname, subdomain, a restartPolicy other than OnFailure, and, unless
	// rendezvous.backend is None, the variables RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and those PET_ ones that carry the
	// rendezvous. A terminationGracePeriodSeconds of more than limits.maxGraceSeconds of the operator's configuration, which is
	// 600 unless it says otherwise, is refused too. A sidecar must stand among the init containers with restartPolicy Always: one
	// among the containers that never exits keeps worker 0 from succeeding. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="template is immutable, because running workers cannot follow it: delete the job and create it again"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.schedulerName)",fieldPath=".spec.schedulerName",messageExpression="'schedulerName (' + self.spec.schedulerName + ') is set by Tideline, which schedules with Volcano: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.priorityClassName)",fieldPath=".spec.priorityClassName",messageExpression="'priorityClassName (' + self.spec.priorityClassName + ') follows from the tier: remove it and set spec.tier'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.priority)",fieldPath=".spec.priority",messageExpression="'priority (%d) follows from the tier: remove it and set spec.tier'.format([self.spec.priority])"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.preemptionPolicy)",fieldPath=".spec.preemptionPolicy",messageExpression="'preemptionPolicy (' + self.spec.preemptionPolicy + ') follows from the tier: remove it and set spec.tier'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.nodeName)",fieldPath=".spec.nodeName",messageExpression="'nodeName (' + self.spec.nodeName + ') would bypass the scheduler: remove it and use nodeSelector'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.schedulingGates) || self.spec.schedulingGates.size() == 0",fieldPath=".spec.schedulingGates",messageExpression="'schedulingGates (' + self.spec.schedulingGates[0].name + ') keep the gang from being placed, because Volcano places no pod that a gate holds: remove schedulingGates; to hold the job back, set runPolicy.suspend'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.hostname)",fieldPath=".spec.hostname",messageExpression="'hostname (' + self.spec.hostname + ') is set by Tideline to the name of each worker: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.subdomain)",fieldPath=".spec.subdomain",messageExpression="'subdomain (' + self.spec.subdomain + ') is set by Tideline to the job\\'s headless Service: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.restartPolicy) || self.spec.restartPolicy == 'OnFailure'",fieldPath=".spec.restartPolicy",messageExpression="'restartPolicy (' + self.spec.restartPolicy + ') must be OnFailure, so that containers restart in place and keep their node and GPUs: remove it or set OnFailure'"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !self.metadata.annotations.exists(k, k.startsWith('volcano.sh/') || k.startsWith('scheduling.volcano.sh/') || k.startsWith('scheduling.k8s.io/'))",fieldPath=".metadata.annotations",messageExpression="'annotation %s is set by Tideline, which speaks to Volcano: remove it'.format([self.metadata.annotations.filter(k, k.startsWith('volcano.sh/') || k.startsWith('scheduling.volcano.sh/') || k.startsWith('scheduling.k8s.io/'))[0]])"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.labels) || !self.metadata.labels.exists(k, k.startsWith('volcano.sh/') || k.startsWith('tideline.io/'))",fieldPath=".metadata.labels",messageExpression="'label %s is set by Tideline: remove it'.format([self.metadata.labels.filter(k, k.startsWith('volcano.sh/') || k.startsWith('tideline.io/'))[0]])"
	Template corev1.PodTemplateSpec `json:"template"`

	// Tier is the importance of the job: by default exploratory, small-traffic or main-traffic, in rising order; the
	// operator's configuration may define others. It decides the PriorityClass of core and surplus. Default: the
	// configuration's default tier, exploratory unless it names another. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="tier is immutable, because pods carry its priority class from their creation: delete the job and create it again"
	Tier string `json:"tier,omitempty"`

	// Owner is the user who owns the job, by the API server's name. Default: the user who creates it. To name another user
	// requires the right to `assign-owner` on elastictrainingjobs of the namespace, for CI and GitOps accounts. If the
	// operator runs without webhooks there is no default and the name is not checked, as condition OwnerChecked says.
	// Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="owner is immutable: delete the job and create it again"
	Owner string `json:"owner,omitempty"`

	// OwnerGroups are the groups of the owner that the members of any ResourceQuotaProfile named when the job was created. A
	// webhook overwrites them, and leaves them empty if another user creates the job for its owner. If the operator runs
	// without webhooks they do not count. Immutable.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ownerGroups is immutable, because it records the owner's groups when the job was created: leave it unchanged, or delete the job and create it again"
	OwnerGroups []string `json:"ownerGroups,omitempty"`

	// Task names what the job does, also when it is created again under another name. Use is recorded and reported by task. Default:
	// the name of the job. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="task is immutable, because pods and their history carry it from their creation: delete the job and create it again"
	Task string `json:"task,omitempty"`

	// Sizing chooses whether Tideline recommends or sets requests by what the task used. A change takes effect when the next
	// attempt starts.
	// +optional
	Sizing *JobSizing `json:"sizing,omitempty"`

	// Elasticity says how the job grows and shrinks.
	// +optional
	// +kubebuilder:default={}
	Elasticity Elasticity `json:"elasticity,omitempty"`

	// Rendezvous is how the workers of a job find each other.
	// +optional
	// +kubebuilder:default={}
	Rendezvous Rendezvous `json:"rendezvous,omitempty"`

	// RunPolicy says what happens to the job when it ends.
	// +optional
	// +kubebuilder:default={}
	RunPolicy RunPolicy `json:"runPolicy,omitempty"`

	// SuccessPolicy says when the job has succeeded: Master, when worker 0 has; AllWorkers, when every worker of the core has;
	// Any, when one has. Default Master.
	// +optional
	// +kubebuilder:default=Master
	SuccessPolicy SuccessPolicy `json:"successPolicy,omitempty"`

	// FailurePolicy says what Tideline does about lost workers.
	// +optional
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`

	// Checkpoint says how the training saves itself before workers leave. Immutable.
	// +optional
	// +kubebuilder:default={}
	Checkpoint Checkpoint `json:"checkpoint,omitempty"`

	// Master overrides the template for worker 0. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="master is immutable, because running workers cannot follow it: delete the job and create it again"
	Master *Master `json:"master,omitempty"`

	// Accelerator lists the accepted models of accelerator. Default: any. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="accelerator is immutable, because running workers cannot follow it: delete the job and create it again"
	Accelerator *Accelerator `json:"accelerator,omitempty"`

	// NprocPerNode is the number of processes that torchrun starts in each worker (PET_NPROC_PER_NODE), and of slots in the hostfile
	// of backend None. Default: the number of GPUs of the training container, else 1. Range 1 to 256. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nprocPerNode is immutable, because running workers have read it when they started: delete the job and create it again"
	NprocPerNode *int32 `json:"nprocPerNode,omitempty"`

	// NetworkPolicy says who may connect to the workers: None leaves it to the policies of the namespace. With Isolated only
	// workers of this job may, by a NetworkPolicy, if the cluster's network enforces those. Connections from the workers are
	// not limited. Isolated needs the rights of component job-network-policy. Default None. Immutable.
	// +optional
	// +kubebuilder:default=None
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="networkPolicy is immutable, because it must be there before the first worker: delete the job and create it again"
	NetworkPolicy NetworkPolicy `json:"networkPolicy,omitempty"`
}

// NetworkPolicy says who may connect to workers.
//
// +kubebuilder:validation:Enum=None;Isolated
type NetworkPolicy string

const (
	// NetworkPolicyNone leaves it to the policies of the namespace.
	NetworkPolicyNone NetworkPolicy = "None"
	// NetworkPolicyIsolated lets only workers of the same job connect.
	NetworkPolicyIsolated NetworkPolicy = "Isolated"
)

// Elasticity says how a job grows and shrinks.
type Elasticity struct {
	// CooldownSeconds is the time after surplus gave way before the operator creates surplus again, in seconds: each change of
	// membership costs the training a restart. It never shields surplus from a gang that could start, and never holds back
	// the first growth. Default 300, range 0 to 86400.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`

	// MinSurplusRunSeconds is how long a surplus worker, once placed, is left alone before Volcano may evict it, in seconds;
	// gangs of all tiers wait that long for its place. A job that asks for more than its tier allows
	// (tiers[].maxMinSurplusRunSeconds of the operator's configuration, which is 0 unless it says otherwise) is refused, and one
	// that was admitted is given as much as its tier allows. It needs Volcano's plugin cdp, and a change concerns pods created from
	// then on. Default 0, range 0 to 86400.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinSurplusRunSeconds *int32 `json:"minSurplusRunSeconds,omitempty"`

	// ShrinkBy chooses what evicts surplus for a waiting gang. Scheduler: Volcano alone. Operator: Tideline, when a gang has
	// starved. Auto: Volcano if its configuration allows it (condition SchedulerConfigured), else Tideline. Default Auto.
	// +optional
	// +kubebuilder:default=Auto
	ShrinkBy ShrinkBy `json:"shrinkBy,omitempty"`

	// StarvationSeconds is how long this job's core waits before the operator evicts surplus for it, of jobs that the operator
	// shrinks, in seconds. Default 60, range 0 to 86400.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	StarvationSeconds *int32 `json:"starvationSeconds,omitempty"`

	// Surplus chooses which surplus workers are created. All: up to maxReplicas, and some may wait. Fitting: only what fits
	// now beside the gangs that wait for the same nodes, for clusters whose autoscaler would add nodes for waiting pods.
	// Default All.
	// +optional
	// +kubebuilder:default=All
	Surplus SurplusPolicy `json:"surplus,omitempty"`

	// OnRangeChange chooses when a range that running workers cannot follow takes effect. Wait: with the next attempt,
	// whatever starts it. Restart: it starts the next attempt, after a checkpoint if one is configured. Default Wait.
	// +optional
	// +kubebuilder:default=Wait
	OnRangeChange RangeChange `json:"onRangeChange,omitempty"`
}

// RangeChange chooses when a range that running workers cannot follow takes effect.
//
// +kubebuilder:validation:Enum=Wait;Restart
type RangeChange string

const (
	// RangeChangeWait lets the range wait for the next attempt.
	RangeChangeWait RangeChange = "Wait"
	// RangeChangeRestart starts the next attempt.
	RangeChangeRestart RangeChange = "Restart"
)

// ShrinkBy chooses what evicts surplus.
//
// +kubebuilder:validation:Enum=Auto;Scheduler;Operator
type ShrinkBy string

const (
	// ShrinkByAuto leaves it to Volcano where its configuration provides for it, and to the operator elsewhere.
	ShrinkByAuto ShrinkBy = "Auto"
	// ShrinkByScheduler leaves it to Volcano.
	ShrinkByScheduler ShrinkBy = "Scheduler"
	// ShrinkByOperator leaves it to the operator.
	ShrinkByOperator ShrinkBy = "Operator"
)

// SurplusPolicy says which surplus workers are created.
//
// +kubebuilder:validation:Enum=All;Fitting
type SurplusPolicy string

const (
	// SurplusAll creates surplus up to maxReplicas.
	SurplusAll SurplusPolicy = "All"
	// SurplusFitting creates the surplus that fits now.
	SurplusFitting SurplusPolicy = "Fitting"
)

// ElasticTrainingJob trains with as few as minReplicas and as many as maxReplicas workers. Volcano places its core all
// together; surplus workers use what is free and give way to waiting gangs.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Elastic Training Job"
// +operator-sdk:csv:customresourcedefinitions:resources={{Pod,v1,""},{Service,v1,""},{ConfigMap,v1,""},{Secret,v1,""},{Event,v1,""}}
// +operator-sdk:csv:customresourcedefinitions:resources={{NetworkPolicy,v1,""},{PodGroup,v1beta1,podgroups.scheduling.volcano.sh}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.maxReplicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=etj,categories=tideline,path=elastictrainingjobs,singular=elastictrainingjob
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.readyWorkers`,description="ready/existing workers (min..max)"
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.status.queue`
// +kubebuilder:printcolumn:name="Tier",type=string,JSONPath=`.status.tier`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Owner",type=string,priority=1,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="GPUs",type=integer,priority=1,JSONPath=`.status.gpus`
// +kubebuilder:printcolumn:name="Wait",type=integer,priority=1,JSONPath=`.status.waitSeconds`,description="seconds from creation until the core first ran"
// +kubebuilder:printcolumn:name="Sized",type=string,priority=1,JSONPath=`.status.sizing.summary`,description="what containers request or could request, by what their task used"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) + 8 + size(string(self.spec.maxReplicas - 1)) <= 63",fieldPath=".metadata.name",messageExpression="'name (%s) is too long (%s characters): the longest host name, NAME-worker-%s, must not exceed 63 characters; shorten the name to %s characters or fewer'.format([self.metadata.name, string(size(self.metadata.name)), string(self.spec.maxReplicas - 1), string(55 - size(string(self.spec.maxReplicas - 1)))])"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') must be a DNS-1035 label, because it becomes part of host names: lower-case letters, digits and dashes, beginning with a letter, without dots'"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.endsWith('-surplus') && !self.metadata.name.endsWith('-merge')",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') must not end in -surplus or -merge, which name the PodGroups of other jobs: choose another name'"
type ElasticTrainingJob struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to train and how far the job may stretch.
	// +required
	Spec ElasticTrainingJobSpec `json:"spec"`

	// Status is the state of the job.
	// +optional
	Status ElasticTrainingJobStatus `json:"status,omitempty"`
}

// ElasticTrainingJobList is a list of ElasticTrainingJobs.
//
// +kubebuilder:object:root=true
type ElasticTrainingJobList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticTrainingJob `json:"items"`
}
