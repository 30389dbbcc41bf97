package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ElasticTrainingJobSpec says what to train and how far the job may stretch.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",messageExpression="'minReplicas (%d) must not exceed maxReplicas (%d): lower minReplicas or raise maxReplicas'.format([self.minReplicas, self.maxReplicas])"
// +kubebuilder:validation:XValidation:rule="!has(self.elasticity) || !has(self.elasticity.step) || self.elasticity.step == 1 || self.elasticity.step <= self.maxReplicas - self.minReplicas",fieldPath=".elasticity.step",messageExpression="'elasticity.step (%d) must not exceed maxReplicas - minReplicas (%d), because the job would never grow: lower elasticity.step or raise maxReplicas'.format([self.elasticity.step, self.maxReplicas - self.minReplicas])"
// +kubebuilder:validation:XValidation:rule="!has(self.networkTopology) || !has(self.networkTopology.highestTierAllowed) || !has(self.elasticity) || !has(self.elasticity.stepWithin) || !has(self.elasticity.stepWithin.tier) || self.elasticity.stepWithin.tier <= self.networkTopology.highestTierAllowed",fieldPath=".elasticity.stepWithin.tier",messageExpression="'tier (%d) must not exceed networkTopology.highestTierAllowed (%d), because all workers are in one HyperNode of that: lower tier or raise highestTierAllowed'.format([self.elasticity.stepWithin.tier, self.networkTopology.highestTierAllowed])"
// +kubebuilder:validation:XValidation:rule="!has(self.networkPolicy) || self.networkPolicy != 'Isolated' || !has(self.template.spec.hostNetwork) || !self.template.spec.hostNetwork",fieldPath=".networkPolicy",message="networkPolicy Isolated does not hold for workers with hostNetwork, which no NetworkPolicy covers: remove one of the two"
// +kubebuilder:validation:XValidation:rule="(has(self.framework) && has(self.framework.type) && self.framework.type != 'Torchrun') || self.template.spec.containers.all(c, !has(c.env) || c.env.all(e, !(e.name in ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'PET_NNODES', 'PET_NPROC_PER_NODE', 'PET_RDZV_BACKEND', 'PET_RDZV_ENDPOINT', 'PET_RDZV_ID', 'PET_RDZV_CONF', 'PET_LOCAL_ADDR'])))",fieldPath=".template.spec.containers",messageExpression="self.template.spec.containers.map(c, has(c.env) && c.env.exists(e, e.name in ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'PET_NNODES', 'PET_NPROC_PER_NODE', 'PET_RDZV_BACKEND', 'PET_RDZV_ENDPOINT', 'PET_RDZV_ID', 'PET_RDZV_CONF', 'PET_LOCAL_ADDR']), 'env %s of container %s is reserved: torchrun and Tideline set it; remove it'.format([c.env.filter(e, e.name in ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'PET_NNODES', 'PET_NPROC_PER_NODE', 'PET_RDZV_BACKEND', 'PET_RDZV_ENDPOINT', 'PET_RDZV_ID', 'PET_RDZV_CONF', 'PET_LOCAL_ADDR'])[0].name, c.name]))[0]"
// +kubebuilder:validation:XValidation:rule="!has(self.progress) || !has(self.progress.stall) || !has(self.progress.stall.policy) || self.progress.stall.policy != 'Restart' || !has(self.restarts) || !has(self.restarts.max) || self.restarts.max > 0",fieldPath=".progress.stall.policy",message="policy Restart counts as a restart, and restarts.max is 0: raise restarts.max, or set policy to Tell or Fail"
// +kubebuilder:validation:XValidation:rule="!has(self.pages) || size(self.pages) == 0 || !has(self.networkPolicy) || self.networkPolicy != 'Isolated'",fieldPath=".pages",message="pages cannot be reached while networkPolicy Isolated lets only workers of the job connect: remove one of the two"
// +kubebuilder:validation:XValidation:rule="!has(self.pages) || size(self.pages) == 0 || !has(self.template.spec.hostNetwork) || !self.template.spec.hostNetwork",fieldPath=".pages",message="pages of workers with hostNetwork could be any port of the node: remove pages or hostNetwork"
// +kubebuilder:validation:XValidation:rule="!has(self.pages) || !has(self.framework) || self.pages.all(p, !has(p.port) || p.port != (has(self.framework.port) ? self.framework.port : 29400))",fieldPath=".pages",messageExpression="'port %d of a page is that of the rendezvous (framework.port), which trusts everybody who reaches it: choose another port'.format([has(self.framework.port) ? self.framework.port : 29400])"
// +kubebuilder:validation:XValidation:rule="!has(self.pages) || self.pages.all(p, !has(p.portName) || self.template.spec.containers.exists(c, has(c.ports) && c.ports.exists(q, has(q.name) && q.name == p.portName)) || (has(self.template.spec.initContainers) && self.template.spec.initContainers.exists(c, has(c.ports) && c.ports.exists(q, has(q.name) && q.name == p.portName))))",fieldPath=".pages",message="the portName of a page must be the name of a port in template.spec.containers or initContainers: add the port to its container, or correct the name"
type ElasticTrainingJobSpec struct {
	// MinReplicas is the number of workers the job cannot train without: its core. Volcano places the core all together or not
	// at all, and never evicts part of a running core. The whole job can be stopped for a gang whose tier preempts the job's.
	// A change takes effect at once while nothing is placed, and waits for the next attempt otherwise.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MinReplicas int32 `json:"minReplicas"`

	// MaxReplicas is the largest number of workers the job can use. Workers beyond minReplicas are surplus: they run on
	// whatever is free and give way to waiting gangs. A change takes effect at once, as far as the range that running workers
	// were started with reaches; condition RangePending tells when the rest waits for the next attempt.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MaxReplicas int32 `json:"maxReplicas"`

	// Replicas is the number of workers to aim at now, which `kubectl scale` and a HorizontalPodAutoscaler set. The job keeps it
	// within minReplicas and maxReplicas, and neither of them changes. 1, the default, sets no target for a job that never had
	// one: it grows to maxReplicas. Once another number was set, 1 asks for the core alone, and maxReplicas or more lifts the
	// target. A PodDisruptionBudget with maxUnavailable or a percentage counts from this number. Range 1 to 4096.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	Replicas int32 `json:"replicas,omitempty"`

	// Suspend stops the job: its pods and PodGroups are deleted, after a checkpoint where one is configured, and its counters are
	// kept. Set to false again, it starts its next attempt. Default false.
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// Template is the worker pod. Its container named "trainer", else its first, is the training container: it alone gets the
	// torchrun variables (PET_*). What Tideline decides is refused here: schedulerName, priorityClassName, priority,
	// preemptionPolicy, nodeName, schedulingGates, hostname, subdomain, a restartPolicy other than OnFailure, and, with
	// framework.type Torchrun, the variables RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and those PET_ ones that carry the
	// rendezvous. A terminationGracePeriodSeconds of more than limits.maxGraceSeconds of the operator's configuration, which is
	// 600 unless it says otherwise, is refused too, and so is a container without an image. A sidecar must stand among the init
	// containers with restartPolicy Always: one among the containers that never exits keeps worker 0 from succeeding. It may change
	// while the job is suspended and stopped.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.schedulerName)",fieldPath=".spec.schedulerName",messageExpression="'schedulerName (' + self.spec.schedulerName + ') is set by Tideline, which schedules with Volcano: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.priorityClassName)",fieldPath=".spec.priorityClassName",messageExpression="'priorityClassName (' + self.spec.priorityClassName + ') follows from the tier: remove it and set spec.tier'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.priority)",fieldPath=".spec.priority",messageExpression="'priority (%d) follows from the tier: remove it and set spec.tier'.format([self.spec.priority])"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.preemptionPolicy)",fieldPath=".spec.preemptionPolicy",messageExpression="'preemptionPolicy (' + self.spec.preemptionPolicy + ') follows from the tier: remove it and set spec.tier'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.nodeName)",fieldPath=".spec.nodeName",messageExpression="'nodeName (' + self.spec.nodeName + ') would bypass the scheduler: remove it and use nodeSelector'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.schedulingGates) || self.spec.schedulingGates.size() == 0",fieldPath=".spec.schedulingGates",messageExpression="'schedulingGates (' + self.spec.schedulingGates[0].name + ') keep the gang from being placed, because Volcano places no pod that a gate holds: remove schedulingGates; to hold the job back, set spec.suspend'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.hostname)",fieldPath=".spec.hostname",messageExpression="'hostname (' + self.spec.hostname + ') is set by Tideline to the name of each worker: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.subdomain)",fieldPath=".spec.subdomain",messageExpression="'subdomain (' + self.spec.subdomain + ') is set by Tideline to the job\\'s headless Service: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.restartPolicy) || self.spec.restartPolicy == 'OnFailure'",fieldPath=".spec.restartPolicy",messageExpression="'restartPolicy (' + self.spec.restartPolicy + ') must be OnFailure, so that containers restart in place and keep their node and GPUs: remove it or set OnFailure'"
	// +kubebuilder:validation:XValidation:rule="self.spec.containers.all(c, has(c.image) && c.image != '')",fieldPath=".spec.containers",messageExpression="'container %s has no image, without which Kubernetes refuses its pod: set its image'.format([self.spec.containers.filter(c, !has(c.image) || c.image == '')[0].name])"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.initContainers) || self.spec.initContainers.all(c, has(c.image) && c.image != '')",fieldPath=".spec.initContainers",messageExpression="'init container %s has no image, without which Kubernetes refuses its pod: set its image'.format([self.spec.initContainers.filter(c, !has(c.image) || c.image == '')[0].name])"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !self.metadata.annotations.exists(k, k.startsWith('volcano.sh/') && !(k in ['volcano.sh/vgpu-mode', 'volcano.sh/vgpu-podgroup-policy', 'volcano.sh/numa-topology-policy']))",fieldPath=".metadata.annotations",messageExpression="'annotation %s is set by Tideline, which speaks to Volcano: remove it'.format([self.metadata.annotations.filter(k, k.startsWith('volcano.sh/') && !(k in ['volcano.sh/vgpu-mode', 'volcano.sh/vgpu-podgroup-policy', 'volcano.sh/numa-topology-policy']))[0]])"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !('volcano.sh/numa-topology-policy' in self.metadata.annotations) || self.metadata.annotations['volcano.sh/numa-topology-policy'] in ['none', 'best-effort', 'restricted', 'single-numa-node']",fieldPath=".metadata.annotations",messageExpression="'annotation volcano.sh/numa-topology-policy (' + self.metadata.annotations['volcano.sh/numa-topology-policy'] + ') must be none, best-effort, restricted or single-numa-node, which Volcano reads: correct it, or remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !self.metadata.annotations.exists(k, k.startsWith('scheduling.volcano.sh/') || k.startsWith('scheduling.k8s.io/'))",fieldPath=".metadata.annotations",messageExpression="'annotation %s is set by Tideline, which speaks to Volcano: remove it'.format([self.metadata.annotations.filter(k, k.startsWith('scheduling.volcano.sh/') || k.startsWith('scheduling.k8s.io/'))[0]])"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.labels) || !self.metadata.labels.exists(k, k.startsWith('volcano.sh/') || k.startsWith('tideline.io/'))",fieldPath=".metadata.labels",messageExpression="'label %s is set by Tideline: remove it'.format([self.metadata.labels.filter(k, k.startsWith('volcano.sh/') || k.startsWith('tideline.io/'))[0]])"
	Template corev1.PodTemplateSpec `json:"template"`

	// Tier is the importance of the job: by default exploratory, small-traffic or main-traffic, in rising order; the
	// operator's configuration may define others. It decides the PriorityClass of core and surplus. Default: the
	// configuration's default tier, exploratory unless it names another. A change takes effect at once while nothing is placed, and
	// waits for the next attempt otherwise. To raise it, a user needs the right to `approve` on the profile of the namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Tier string `json:"tier,omitempty"`

	// Owner is the user who owns the job, by the API server's name. Default: the user who creates it. To name another user
	// requires the right to `assign-owner` on elastictrainingjobs of the namespace, for CI and GitOps accounts. A change concerns
	// pods that are created from then on. If the operator runs without webhooks there is no default and the name is not checked,
	// as condition OwnerChecked says.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Owner string `json:"owner,omitempty"`

	// Submitter is the user who created the job. A webhook records it, and restores it when an update leaves it out. Only a user
	// with the right to `assign-owner` may create a job with another submitter, as when a backup is restored. If the operator
	// runs without webhooks it does not count.
	// +optional
	Submitter *Submitter `json:"submitter,omitempty"`

	// Task names what the job does, also when it is created again under another name. Use is recorded and reported by task. Default:
	// the name of the job. It cannot change, because the history of use belongs to it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Task string `json:"task,omitempty"`

	// Sizing chooses whether Tideline recommends or sets requests by what the task used. A change takes effect when the next
	// attempt starts.
	// +optional
	Sizing *JobSizing `json:"sizing,omitempty"`

	// Elasticity says how the job grows and shrinks.
	// +optional
	// +kubebuilder:default={}
	Elasticity Elasticity `json:"elasticity,omitempty"`

	// Framework is how the workers of a job find each other. It may change while the job is suspended and stopped.
	// +optional
	// +kubebuilder:default={}
	Framework Framework `json:"framework,omitempty"`

	// Restarts bounds how often failures may restart the training.
	// +optional
	// +kubebuilder:default={}
	Restarts Restarts `json:"restarts,omitempty"`

	// Deadlines bound how long the job may train and wait.
	// +optional
	// +kubebuilder:default={}
	Deadlines Deadlines `json:"deadlines,omitempty"`

	// SuccessPolicy says when the job has succeeded. Default: when worker 0 has.
	// +optional
	// +kubebuilder:default={}
	SuccessPolicy SuccessPolicy `json:"successPolicy,omitempty"`

	// FailurePolicy says what Tideline does about lost workers.
	// +optional
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`

	// Cleanup says what remains of the job when it has ended.
	// +optional
	// +kubebuilder:default={}
	Cleanup Cleanup `json:"cleanup,omitempty"`

	// Checkpoint says how the training saves itself before workers leave. It may change while the job is suspended and stopped.
	// +optional
	// +kubebuilder:default={}
	Checkpoint Checkpoint `json:"checkpoint,omitempty"`

	// Master overrides the template for worker 0. It may change while the job is suspended and stopped.
	// +optional
	Master *Master `json:"master,omitempty"`

	// Roles are groups of workers that do something else than the others: parameter servers, an evaluator, a launcher; 8 at most,
	// with 31 workers together. These belong to the core and are among minReplicas; the workers of the template are all others,
	// and stretch. framework says what the workers of a role are told. Roles and master exclude each other. Default: all workers
	// are alike. They may change while the job is suspended and stopped.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Roles []JobRole `json:"roles,omitempty"`

	// Accelerator lists the accepted models of accelerator. Default: any. It may change while the job is suspended and stopped.
	// +optional
	Accelerator *Accelerator `json:"accelerator,omitempty"`

	// NetworkTopology keeps the workers close to each other in the network, by Volcano's HyperNodes. Default: anywhere. It may
	// change while the job is suspended and stopped.
	// +optional
	NetworkTopology *NetworkTopology `json:"networkTopology,omitempty"`

	// NetworkPolicy says who may connect to the workers: None leaves it to the policies of the namespace. With Isolated only
	// workers of this job may, by a NetworkPolicy, if the cluster's network enforces those. Connections from the workers are
	// not limited. Isolated needs the rights of component job-network-policy. Default None. It may change while the job is
	// suspended and stopped.
	// +optional
	// +kubebuilder:default=None
	NetworkPolicy NetworkPolicy `json:"networkPolicy,omitempty"`

	// Progress has the operator follow what the training says of its steps. Default: it does not. A change takes effect at once.
	// +optional
	Progress *JobProgress `json:"progress,omitempty"`

	// Pages are ports of worker 0 that people open in a browser, such as TensorBoard or a profiler; 4 at most. They are reached from
	// outside the cluster if the operator's configuration says where (pages.host), as condition PagesRouted tells; status.pages has
	// their URLs. Default: none. A change takes effect at once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Pages []JobPage `json:"pages,omitempty"`

	// DataSets are data that workers read, by name and version, of the profile that the namespace belongs to; 6 at most. Data in a
	// claim is mounted read-only in the training container, whose variable TIDELINE_DATA_NAME, with the name in capitals and
	// underscores for dashes, says where; for data in an object store it has the prefix. Default: none. It may change while the job
	// is suspended and stopped.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=6
	DataSets []JobDataSet `json:"dataSets,omitempty"`

	FormerJob `json:",inline"`
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

// Submitter is the user who created an object, as the API server knew the user then.
type Submitter struct {
	// Username by the API server's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Username string `json:"username"`

	// Groups of the user that the members of any ResourceQuotaProfile named then. They count for the owner if the owner is the
	// submitter.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Groups []string `json:"groups,omitempty"`
}

// ElasticTrainingJob trains with as few as minReplicas and as many as maxReplicas workers. Volcano places its core all
// together; surplus workers use what is free and give way to waiting gangs.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Elastic Training Job"
// +operator-sdk:csv:customresourcedefinitions:resources={{Pod,v1,""},{Service,v1,""},{ConfigMap,v1,""},{Secret,v1,""},{Event,v1,""}}
// +operator-sdk:csv:customresourcedefinitions:resources={{NetworkPolicy,v1,""},{PodGroup,v1beta1,podgroups.scheduling.volcano.sh}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=etj,categories=tideline,path=elastictrainingjobs,singular=elastictrainingjob
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.summary`,description="ready/existing workers (min..max)"
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.status.queue`
// +kubebuilder:printcolumn:name="Tier",type=string,JSONPath=`.status.tier`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Owner",type=string,priority=1,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Accelerators",type=integer,priority=1,JSONPath=`.status.accelerators`
// +kubebuilder:printcolumn:name="Wait",type=integer,priority=1,JSONPath=`.status.waitSeconds`,description="seconds from creation until the core first ran"
// +kubebuilder:printcolumn:name="Sized",type=string,priority=1,JSONPath=`.status.sizing.summary`,description="what containers request or could request, by what their task used"
// +kubebuilder:printcolumn:name="Progress",type=string,priority=1,JSONPath=`.status.training.progress`,description="how far the training is, by what it says"
// +kubebuilder:printcolumn:name="Steps/s",type=string,priority=1,JSONPath=`.status.training.stepsPerSecond`
// +kubebuilder:printcolumn:name="Left",type=string,priority=1,JSONPath=`.status.training.timeLeft`,description="time that is left at this pace"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) + 8 + size(string(self.spec.maxReplicas - 1)) <= 63",fieldPath=".metadata.name",messageExpression="'name (%s) is too long (%s characters): the longest host name, NAME-worker-%s, must not exceed 63 characters; shorten the name to %s characters or fewer'.format([self.metadata.name, string(size(self.metadata.name)), string(self.spec.maxReplicas - 1), string(55 - size(string(self.spec.maxReplicas - 1)))])"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.roles) || self.spec.roles.all(r, size(self.metadata.name) + size(r.name) + 4 <= 63)",fieldPath=".metadata.name",messageExpression="'name (%s) is too long (%s characters) for role %s: the host name NAME-%s-31 must not exceed 63 characters; shorten the name or that of the role'.format([self.metadata.name, string(size(self.metadata.name)), self.spec.roles.filter(r, size(self.metadata.name) + size(r.name) + 4 > 63)[0].name, self.spec.roles.filter(r, size(self.metadata.name) + size(r.name) + 4 > 63)[0].name])"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') must be a DNS-1035 label, because it becomes part of host names: lower-case letters, digits and dashes, beginning with a letter, without dots'"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.endsWith('-surplus') && !self.metadata.name.endsWith('-merge')",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') must not end in -surplus or -merge, which name the PodGroups of other jobs: choose another name'"
// +kubebuilder:validation:XValidation:rule="self.spec.template == oldSelf.spec.template || (has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.phase) || (oldSelf.status.phase == 'Suspended' && oldSelf.status.replicas == 0)))",fieldPath=".spec.template",message="template cannot change while workers may run, because pods follow it only when they are created: set spec.suspend to true, wait for phase Suspended, change it, and set spec.suspend to false"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.master) ? has(oldSelf.spec.master) && self.spec.master == oldSelf.spec.master : !has(oldSelf.spec.master)) || (has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.phase) || (oldSelf.status.phase == 'Suspended' && oldSelf.status.replicas == 0)))",fieldPath=".spec.master",message="master cannot change while workers may run, because pods follow it only when they are created: set spec.suspend to true, wait for phase Suspended, change it, and set spec.suspend to false"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.roles) ? has(oldSelf.spec.roles) && self.spec.roles == oldSelf.spec.roles : !has(oldSelf.spec.roles)) || (has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.phase) || (oldSelf.status.phase == 'Suspended' && oldSelf.status.replicas == 0)))",fieldPath=".spec.roles",message="roles cannot change while workers may run, because pods follow them only when they are created: set spec.suspend to true, wait for phase Suspended, change them, and set spec.suspend to false"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.accelerator) ? has(oldSelf.spec.accelerator) && self.spec.accelerator == oldSelf.spec.accelerator : !has(oldSelf.spec.accelerator)) || (has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.phase) || (oldSelf.status.phase == 'Suspended' && oldSelf.status.replicas == 0)))",fieldPath=".spec.accelerator",message="accelerator cannot change while workers may run, because pods follow it only when they are created: set spec.suspend to true, wait for phase Suspended, change it, and set spec.suspend to false"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.networkTopology) ? has(oldSelf.spec.networkTopology) && self.spec.networkTopology == oldSelf.spec.networkTopology : !has(oldSelf.spec.networkTopology)) || (has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.phase) || (oldSelf.status.phase == 'Suspended' && oldSelf.status.replicas == 0)))",fieldPath=".spec.networkTopology",message="networkTopology cannot change while workers may run, because pods follow it only when they are created: set spec.suspend to true, wait for phase Suspended, change it, and set spec.suspend to false"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.checkpoint) ? has(oldSelf.spec.checkpoint) && self.spec.checkpoint == oldSelf.spec.checkpoint : !has(oldSelf.spec.checkpoint)) || (has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.phase) || (oldSelf.status.phase == 'Suspended' && oldSelf.status.replicas == 0)))",fieldPath=".spec.checkpoint",message="checkpoint cannot change while workers may run, because pods read it when they are created: set spec.suspend to true, wait for phase Suspended, change it, and set spec.suspend to false"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.dataSets) ? has(oldSelf.spec.dataSets) && self.spec.dataSets == oldSelf.spec.dataSets : !has(oldSelf.spec.dataSets)) || (has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.phase) || (oldSelf.status.phase == 'Suspended' && oldSelf.status.replicas == 0)))",fieldPath=".spec.dataSets",message="dataSets cannot change while workers may run, because pods mount them when they are created: set spec.suspend to true, wait for phase Suspended, change it, and set spec.suspend to false"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.networkPolicy) ? has(oldSelf.spec.networkPolicy) && self.spec.networkPolicy == oldSelf.spec.networkPolicy : !has(oldSelf.spec.networkPolicy)) || (has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.phase) || (oldSelf.status.phase == 'Suspended' && oldSelf.status.replicas == 0)))",fieldPath=".spec.networkPolicy",message="networkPolicy cannot change while workers may run, because it must be there before the first worker: set spec.suspend to true, wait for phase Suspended, change it, and set spec.suspend to false"
// +kubebuilder:validation:XValidation:rule="((has(self.spec.framework.type) ? has(oldSelf.spec.framework.type) && self.spec.framework.type == oldSelf.spec.framework.type : !has(oldSelf.spec.framework.type)) && (has(self.spec.framework.port) ? has(oldSelf.spec.framework.port) && self.spec.framework.port == oldSelf.spec.framework.port : !has(oldSelf.spec.framework.port)) && (has(self.spec.framework.ssh) ? has(oldSelf.spec.framework.ssh) && self.spec.framework.ssh == oldSelf.spec.framework.ssh : !has(oldSelf.spec.framework.ssh)) && (has(self.spec.framework.torchrun) ? has(oldSelf.spec.framework.torchrun) && self.spec.framework.torchrun == oldSelf.spec.framework.torchrun : !has(oldSelf.spec.framework.torchrun))) || (has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.phase) || (oldSelf.status.phase == 'Suspended' && oldSelf.status.replicas == 0)))",fieldPath=".spec.framework",message="framework cannot change while workers may run, nprocPerNode excepted, because they read it when they start: set spec.suspend to true, wait for phase Suspended, change it, and set spec.suspend to false"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.task) ? self.spec.task : self.metadata.name) == (has(oldSelf.spec.task) ? oldSelf.spec.task : self.metadata.name)",fieldPath=".spec.task",message="task cannot change, because the history of use belongs to it: delete the job and create it again"
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

// WantedReplicas is the number of workers to aim at: spec.replicas within the range for a job that was given a target, else
// spec.maxReplicas, lowered to minReplicas and a multiple of elasticity.step.
func (j *ElasticTrainingJob) WantedReplicas() int32 {
	return j.Spec.MinReplicas + j.WantedSurplus(j.Spec.MinReplicas, j.Spec.MaxReplicas)
}

// WantedSurplus is the number of surplus workers to aim at in whole steps, for workers that were started with this range: the
// range of the spec may have changed since.
func (j *ElasticTrainingJob) WantedSurplus(minimum, maximum int32) int32 {
	wanted := j.Spec.MaxReplicas
	if j.Status.Targeted || j.Spec.Replicas > NoTarget {
		wanted = min(max(j.Spec.Replicas, j.Spec.MinReplicas), wanted)
	}
	return j.Spec.Elasticity.WholeSteps(min(max(wanted, minimum), maximum) - minimum)
}

// EffectiveTier is the tier that the pods of the current attempt have; that of the next attempt, as the status has it, while
// the job is stopped; and before the first attempt the tier that the spec asks for, empty for a default.
func (j *ElasticTrainingJob) EffectiveTier() string {
	a := j.Status.Attempt
	switch {
	case a == nil, a.Tier == "":
		return j.Spec.Tier
	case meta.IsStatusConditionTrue(j.Status.Conditions, ConditionSuspended):
		return j.Status.Tier
	}
	return a.Tier
}
