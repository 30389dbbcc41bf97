package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceQuotaProfileSpec names a team's namespaces and its share of the cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.stopIdleAfter) || duration(self.stopIdleAfter) >= (has(self.idleAfter) ? duration(self.idleAfter) : duration('24h'))",fieldPath=".stopIdleAfter",message="stopIdleAfter must be at least idleAfter (24h by default), from which on notebooks are named: raise stopIdleAfter or lower idleAfter"
type ResourceQuotaProfileSpec struct {
	// NamespaceSelector chooses the team's namespaces by their labels. If several profiles select a namespace, it belongs to
	// the oldest, and condition NamespaceConflict of the others says so. It must not be empty.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="namespaceSelector must not be empty, because it would choose every namespace of the cluster: set matchLabels or matchExpressions"
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`

	// Queue is the Volcano Queue of the profile. It has the profile's name.
	// +optional
	// +kubebuilder:default={}
	Queue ProfileQueue `json:"queue,omitempty"`

	// Tiers that the team's jobs may use. Default: all of the operator's configuration.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.filter(t, has(t.default) && t.default).size() <= 1",message="one tier at most may be the default: leave default out of the others"
	Tiers []ProfileTier `json:"tiers,omitempty"`

	// Members give users a standing, which orders waiting jobs, and a highest tier. A user in no entry has standing Staff and
	// may use all tiers of the profile. For a user in several entries the highest standing and the highest tier count.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Members []ProfileMember `json:"members,omitempty"`

	// Caps are what one user and one job may hold at a time. Default: none.
	// +optional
	Caps *ProfileCaps `json:"caps,omitempty"`

	// Order decides which of the team's trainings goes first while GPUs are short, also without caps. Default: Volcano's, which is
	// by tier and age.
	// +optional
	Order *ProfileOrder `json:"order,omitempty"`

	// Reservations are room that is gathered and held together until a training of the team takes it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Reservations []ProfileReservation `json:"reservations,omitempty"`

	// Sizing chooses whether Tideline recommends or sets requests by what the team's tasks used. Default: Recommend.
	// +optional
	Sizing *ProfileSizing `json:"sizing,omitempty"`

	// Merges are what the team's MergeJobs may use.
	// +optional
	Merges *ProfileMerges `json:"merges,omitempty"`

	// DataSets are data that the team's trainings name instead of a volume, at most 16. Who may edit the profile's reservations may
	// edit them too, since a name gives no right to read. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	DataSets []ProfileDataSet `json:"dataSets,omitempty"`

	// IdleAfter is after which time without use the accelerators of pods outside Tideline's jobs, such as notebooks, are named in
	// condition AcceleratorsIdle. It takes a ledger and Prometheus. Default 24h, range 1h to 720h.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('720h')",message="idleAfter must be from 1h to 720h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	IdleAfter *metav1.Duration `json:"idleAfter,omitempty"`

	// StopIdleAfter is after which time without use of their accelerators the operator stops Notebooks of Kubeflow, which their
	// users can start again. It must be at least idleAfter, and takes a ledger, Prometheus and component notebook-culling. Default:
	// none is stopped. Range 1h to 720h.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('720h')",message="stopIdleAfter must be from 1h to 720h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	StopIdleAfter *metav1.Duration `json:"stopIdleAfter,omitempty"`
}

// ProfileQueue is the Volcano Queue of a profile. Tideline keeps fields of the Queue that other clients set.
//
// +kubebuilder:validation:XValidation:rule="!has(self.guarantee) || !has(self.deserved) || self.guarantee.all(r, !(r in self.deserved) || quantity(string(self.guarantee[r])).compareTo(quantity(string(self.deserved[r]))) <= 0)",fieldPath=".guarantee",message="guarantee must not exceed deserved of the same resource: lower guarantee or raise deserved"
// +kubebuilder:validation:XValidation:rule="!has(self.guarantee) || !has(self.capability) || self.guarantee.all(r, !(r in self.capability) || quantity(string(self.guarantee[r])).compareTo(quantity(string(self.capability[r]))) <= 0)",fieldPath=".guarantee",message="guarantee must not exceed capability of the same resource: lower guarantee or raise capability"
// +kubebuilder:validation:XValidation:rule="!has(self.deserved) || !has(self.capability) || self.deserved.all(r, !(r in self.capability) || quantity(string(self.deserved[r])).compareTo(quantity(string(self.capability[r]))) <= 0)",fieldPath=".deserved",message="deserved must not exceed capability of the same resource: lower deserved or raise capability"
type ProfileQueue struct {
	// Weight is the profile's part of what is left after all guarantees, relative to the weights of the other profiles: with 3
	// and 1, a profile gets three quarters. Default 1, range 1 to 1000.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight,omitempty"`

	// Guarantee is kept free for the queue, also while it does not use it. Default: none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(r, quantity(string(self[r])).compareTo(quantity('0')) >= 0)",message="guarantee must not be negative: set 0 or more, or leave the resource out"
	Guarantee corev1.ResourceList `json:"guarantee,omitempty"`

	// Deserved is the queue's share. Up to it the queue may reclaim resources from others; beyond it others may reclaim from
	// the queue. Default, for each resource: its guarantee, and by weight a part of what is left after all guarantees.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(r, quantity(string(self[r])).compareTo(quantity('0')) >= 0)",message="deserved must not be negative: set 0 or more, or leave the resource out"
	Deserved corev1.ResourceList `json:"deserved,omitempty"`

	// Capability is the most that the queue may use, also of what others leave idle. Default, for each resource: no limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(r, quantity(string(self[r])).compareTo(quantity('0')) >= 0)",message="capability must not be negative: set 0 or more, or leave the resource out"
	Capability corev1.ResourceList `json:"capability,omitempty"`

	// Parent is the Queue below which this one stands, where Volcano's plugin capacity has a hierarchy. It must exist and hold no
	// jobs of its own, because a job in a Queue with children stops all scheduling. Default: Volcano's, which is root.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Parent string `json:"parent,omitempty"`

	// SurplusSharing chooses whether waiting surplus of a queue below its share takes the places of surplus of queues above theirs.
	// Excluded leaves this queue out, in both directions. Default Fair.
	// +optional
	// +kubebuilder:default=Fair
	SurplusSharing SurplusSharing `json:"surplusSharing,omitempty"`

	// Repacking chooses what is done if a gang of any queue would have its place once surplus of this queue moved to other nodes.
	// Advise: the waiting job says which. Move: the operator also moves it, unless its job may not grow yet
	// (growth.cooldownSeconds). Default Advise.
	// +optional
	// +kubebuilder:default=Advise
	Repacking Repacking `json:"repacking,omitempty"`

	// Reclaimable is false for a queue from which other queues cannot reclaim resources, however much it uses. Default true.
	// +optional
	// +kubebuilder:default=true
	Reclaimable *bool `json:"reclaimable,omitempty"`

	FormerQueue `json:",inline"`
}

// SurplusSharing chooses whether surplus of a queue takes part in fair sharing.
//
// +kubebuilder:validation:Enum=Fair;Excluded
type SurplusSharing string

const (
	// SurplusFair lets surplus take part.
	SurplusFair SurplusSharing = "Fair"
	// SurplusExcluded leaves it out.
	SurplusExcluded SurplusSharing = "Excluded"
)

// Repacking chooses whether the operator moves surplus.
//
// +kubebuilder:validation:Enum=Advise;Move
type Repacking string

const (
	// RepackingAdvise leaves it to people.
	RepackingAdvise Repacking = "Advise"
	// RepackingMove has the operator move surplus.
	RepackingMove Repacking = "Move"
)

// ProfileTier is a tier that the team's jobs may have.
type ProfileTier struct {
	// Name of a tier of the operator's configuration.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Default marks the tier of jobs that name none. Default: the first tier of the operator's configuration that is listed.
	// +optional
	// +kubebuilder:default=false
	Default bool `json:"default,omitempty"`

	// RequiresApproval makes jobs of the tier wait until a user with the right to approve on the profile approves them. Jobs
	// that have begun continue. Default false.
	// +optional
	// +kubebuilder:default=false
	RequiresApproval bool `json:"requiresApproval,omitempty"`
}

// ProfileMerges are what the team's MergeJobs may use.
type ProfileMerges struct {
	// Pools are the Volcano Queues in which the team's merges may take turns, of those that the operator's configuration lists
	// (merges.pools). Default: all of them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Pools []string `json:"pools,omitempty"`
}

// ResourceQuotaProfile is a team's share of the cluster: the jobs of its namespaces land in its Volcano Queue.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Resource Quota Profile"
// +operator-sdk:csv:customresourcedefinitions:resources={{Queue,v1beta1,queues.scheduling.volcano.sh},{Event,v1,""},{Pod,v1,""},{PodGroup,v1beta1,podgroups.scheduling.volcano.sh}}
// +operator-sdk:csv:customresourcedefinitions:resources={{PriorityClass,v1,""}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rqp,scope=Cluster,path=resourcequotaprofiles,singular=resourcequotaprofile
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.status.queue`
// +kubebuilder:printcolumn:name="GPU",type=string,JSONPath=`.status.accelerators`,description="accelerators used/deserved/capability"
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waiting`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Awaiting",type=integer,priority=1,JSONPath=`.status.awaitingApproval`,description="jobs that wait for approval"
// +kubebuilder:printcolumn:name="Namespaces",type=integer,priority=1,JSONPath=`.status.namespaceCount`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') must be a DNS-1123 label, because it is the value of labels: at most 63 lower-case letters, digits and dashes, without dots'"
// +kubebuilder:validation:XValidation:rule="!(self.metadata.name in ['root', 'default'])",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') is that of a Queue of Volcano itself: choose another name'"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.queue) || !has(self.spec.queue.parent) || self.spec.queue.parent != self.metadata.name",fieldPath=".spec.queue.parent",messageExpression="'parent (' + self.spec.queue.parent + ') is the profile\\'s own queue: name another, or leave parent out'"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.dataSets) || !oldSelf.status.dataSets.exists(u, u.jobs > 0 && has(oldSelf.spec.dataSets) && oldSelf.spec.dataSets.exists(d, d.name == u.name && d.versions.exists(v, v.version == u.version)) && !(has(self.spec.dataSets) && self.spec.dataSets.exists(d, d.name == u.name && d.versions.exists(v, v.version == u.version))))",fieldPath=".spec.dataSets",message="a version of a data set that jobs use cannot be removed, and status.dataSets says which jobs use what: wait until they have ended, or delete them"
type ResourceQuotaProfile struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which namespaces are the team's, and what is its share.
	// +required
	Spec ResourceQuotaProfileSpec `json:"spec"`

	// Status is the state of the profile, and what the team uses.
	// +optional
	Status ResourceQuotaProfileStatus `json:"status,omitempty"`
}

// ResourceQuotaProfileList is a list of ResourceQuotaProfiles.
//
// +kubebuilder:object:root=true
type ResourceQuotaProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceQuotaProfile `json:"items"`
}
