package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MergeJobSpec says which model to merge, when, and with what.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",messageExpression="'minReplicas (%d) must not exceed maxReplicas (%d): lower minReplicas or raise maxReplicas'.format([self.minReplicas, self.maxReplicas])"
// +kubebuilder:validation:XValidation:rule="has(self.tier) == has(oldSelf.tier)",fieldPath=".tier",message="tier cannot be added or removed later, because pods carry its priority class from their creation: delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="has(self.owner) == has(oldSelf.owner)",fieldPath=".owner",message="owner cannot be added or removed later, because it is checked when the job is created: delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="has(self.ownerGroups) == has(oldSelf.ownerGroups)",fieldPath=".ownerGroups",message="ownerGroups cannot be added or removed later, because it records the owner's groups when the job was created: leave it unchanged, or delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="has(self.model) == has(oldSelf.model)",fieldPath=".model",message="model cannot be added or removed later, because the job's history belongs to it: delete the job and create it again"
type MergeJobSpec struct {
	// Model is the name of the model that is merged, as merge programs and people know it. Default: the name of the MergeJob.
	// Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="model is immutable: delete the job and create it again"
	Model string `json:"model,omitempty"`

	// TrainingTask names the training whose increments are merged, for people and reports. Tideline does not touch that training.
	// Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TrainingTask string `json:"trainingTask,omitempty"`

	// Tier is the importance of the model: by default exploratory, small-traffic or main-traffic, in rising order; the operator's
	// configuration may define others. It decides the PriorityClass of the pods, and in the line each tier weighs twice the tier
	// before it once a merge is due. Default: the configuration's default tier, exploratory unless it names another. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="tier is immutable, because pods carry its priority class from their creation: delete the job and create it again"
	Tier string `json:"tier,omitempty"`

	// Owner is the user who owns the job, by the API server's name. Default: the user who creates it. To name another user
	// requires the right to `assign-owner` on mergejobs of the namespace, for CI and GitOps accounts. If the operator runs
	// without webhooks there is no default and the name is not checked, as condition OwnerChecked says. Immutable.
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

	// Pool is the Volcano Queue in which merges take turns; the operator's configuration lists the allowed ones. A run stays
	// in the pool in which it began. Default tideline-merge.
	// +optional
	// +kubebuilder:default="tideline-merge"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Pool string `json:"pool,omitempty"`

	// Schedule says how often the model is merged. Default: once.
	// +optional
	Schedule *MergeSchedule `json:"schedule,omitempty"`

	// Store is where increments and full models are. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="store is immutable, because Tideline checks the creator's right to its Secret only once, and the history belongs to this store: delete the job and create it again"
	Store ModelStore `json:"store"`

	// Weight adds to the weight that the age of the full model gives.
	// +optional
	// +kubebuilder:default={}
	Weight MergeWeight `json:"weight,omitempty"`

	// Threshold is the weight from which the merge is due and joins the line of its pool. A full model as old as the
	// schedule's interval gives 100, so a lower threshold merges earlier. Default 100, range 1 to 1000.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Threshold *int32 `json:"threshold,omitempty"`

	// MinReplicas is the number of pods that a merge cannot run without. Volcano places them all together or not at all. Default 1,
	// range 1 to 4096.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MinReplicas int32 `json:"minReplicas"`

	// MaxReplicas is the largest number of pods that the merge can use. Those beyond minReplicas are surplus: they are created once
	// the others run, use what is free, and give way to any gang that waits. Default 1, range 1 to 4096.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MaxReplicas int32 `json:"maxReplicas"`

	// RunTimeoutSeconds is how long a merge may run, in seconds, counted from when all its pods run. Then Tideline stops it
	// (TimedOut) and tries again after a back-off. Default 7200, range 1 to 604800 (a week).
	// +optional
	// +kubebuilder:default=7200
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	RunTimeoutSeconds *int32 `json:"runTimeoutSeconds,omitempty"`

	// StartTimeoutSeconds is the time from when pods are placed until all must run, in seconds. After it Tideline takes the
	// pods back, and the merge asks again before any other. The run fails the third time in a row. Default 300, range 1 to
	// 86400.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	StartTimeoutSeconds *int32 `json:"startTimeoutSeconds,omitempty"`

	// Sizing chooses whether Tideline recommends or sets requests by what the pods used. A change takes effect when the next
	// attempt asks for its place.
	// +optional
	Sizing *JobSizing `json:"sizing,omitempty"`

	// Suspend stops the merge if it runs, and keeps it out of the line. Default false.
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// BackoffSeconds is how long a merge stays out of the line after it failed or timed out, in seconds; it doubles with each
	// failure in a row, up to 32 times as long. Default 60, range 1 to 86400.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	BackoffSeconds *int32 `json:"backoffSeconds,omitempty"`

	// MaxIncrementsPerRun is how many increments a run merges at most; the rest is merged next time. Default 5000, range 1 to 5000.
	// +optional
	// +kubebuilder:default=5000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000
	MaxIncrementsPerRun *int32 `json:"maxIncrementsPerRun,omitempty"`

	// Template is the pod of the merge. All its containers get the variables TIDELINE_* and the file
	// /etc/tideline/increments/increments.gz with the names of the increments of the run. What Tideline decides is refused
	// here: schedulerName, priorityClassName, priority, preemptionPolicy, nodeName, schedulingGates, and a restartPolicy other
	// than Never; and a terminationGracePeriodSeconds of more than limits.maxGraceSeconds of the operator's configuration.
	// After a change, an attempt that still asks for its place is taken back and asks again; a placed attempt continues
	// unchanged. The ServiceAccount cannot change.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.spec.serviceAccountName) ? self.spec.serviceAccountName : '') == (has(oldSelf.spec.serviceAccountName) ? oldSelf.spec.serviceAccountName : '') && (has(self.spec.serviceAccount) ? self.spec.serviceAccount : '') == (has(oldSelf.spec.serviceAccount) ? oldSelf.spec.serviceAccount : '')",fieldPath=".spec.serviceAccountName",message="serviceAccountName cannot change, because Tideline checks the creator's right to it only once: delete the job and create it again"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.schedulerName)",fieldPath=".spec.schedulerName",messageExpression="'schedulerName (' + self.spec.schedulerName + ') is set by Tideline, which schedules with Volcano: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.priorityClassName)",fieldPath=".spec.priorityClassName",messageExpression="'priorityClassName (' + self.spec.priorityClassName + ') follows from the tier: remove it and set spec.tier'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.priority)",fieldPath=".spec.priority",messageExpression="'priority (%d) follows from the tier: remove it and set spec.tier'.format([self.spec.priority])"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.preemptionPolicy)",fieldPath=".spec.preemptionPolicy",messageExpression="'preemptionPolicy (' + self.spec.preemptionPolicy + ') follows from the tier: remove it and set spec.tier'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.nodeName)",fieldPath=".spec.nodeName",messageExpression="'nodeName (' + self.spec.nodeName + ') would bypass the scheduler: remove it and use nodeSelector'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.schedulingGates) || self.spec.schedulingGates.size() == 0",fieldPath=".spec.schedulingGates",messageExpression="'schedulingGates (' + self.spec.schedulingGates[0].name + ') keep the gang from being placed, because Volcano places no pod that a gate holds: remove schedulingGates; to hold the job back, set suspend'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Never'",fieldPath=".spec.restartPolicy",messageExpression="'restartPolicy (' + self.spec.restartPolicy + ') must be Never, so that a merge that fails makes room for the next: remove it or set Never'"
	// +kubebuilder:validation:XValidation:rule="self.spec.containers.all(c, !has(c.env) || c.env.all(e, !e.name.startsWith('TIDELINE_')))",fieldPath=".spec.containers",messageExpression="self.spec.containers.map(c, has(c.env) && c.env.exists(e, e.name.startsWith('TIDELINE_')), 'env %s of container %s is reserved: variables that begin with TIDELINE_ are set by Tideline; remove it'.format([c.env.filter(e, e.name.startsWith('TIDELINE_'))[0].name, c.name]))[0]"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !self.metadata.annotations.exists(k, k.startsWith('volcano.sh/') || k.startsWith('scheduling.volcano.sh/') || k.startsWith('scheduling.k8s.io/'))",fieldPath=".metadata.annotations",messageExpression="'annotation %s is set by Tideline, which speaks to Volcano: remove it'.format([self.metadata.annotations.filter(k, k.startsWith('volcano.sh/') || k.startsWith('scheduling.volcano.sh/') || k.startsWith('scheduling.k8s.io/'))[0]])"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.labels) || !self.metadata.labels.exists(k, k.startsWith('volcano.sh/') || k.startsWith('tideline.io/'))",fieldPath=".metadata.labels",messageExpression="'label %s is set by Tideline: remove it'.format([self.metadata.labels.filter(k, k.startsWith('volcano.sh/') || k.startsWith('tideline.io/'))[0]])"
	Template corev1.PodTemplateSpec `json:"template"`
}

// MergeSchedule says how often a model is merged.
//
// +kubebuilder:validation:XValidation:rule="has(self.interval) != has(self.cron)",message="a schedule has either an interval or a cron line: set one of them, or leave schedule out to merge once"
// +kubebuilder:validation:XValidation:rule="!has(self.timeZone) || has(self.cron)",fieldPath=".timeZone",messageExpression="'timeZone (' + self.timeZone + ') goes with cron: remove it, or set cron'"
type MergeSchedule struct {
	// Interval is the age of the full model at which it is merged again, in hours, minutes and seconds, for example 10h or 1h30m;
	// from 10s to 8760h (a year).
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('10s') && self <= duration('8760h')",message="interval must be from 10s to 8760h"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Cron is a line of five fields, or @daily and the like; the model is due at the first of its times after the full model was
	// made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="the time zone has a field of its own: set timeZone"
	Cron string `json:"cron,omitempty"`

	// TimeZone of the cron line, for example Europe/Berlin. Default: UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// MergeWeight adds to the weight that the age of the full model gives. Both together add at most 1000.
type MergeWeight struct {
	// PerIncrement is what each increment that waits to be merged adds. Default 0, range 0 to 100.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	PerIncrement int32 `json:"perIncrement,omitempty"`

	// Boost is added to the weight, to merge a model before others for a while. Default 0, range 0 to 1000.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Boost int32 `json:"boost,omitempty"`
}

// ModelStore is where the increments and the full models of one model are.
//
// +kubebuilder:validation:XValidation:rule="self.provider != 's3' || has(self.credentialsSecretName)",fieldPath=".credentialsSecretName",message="a store of provider s3 needs credentialsSecretName: name a Secret of this namespace with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; the operator's own identity is never used"
// +kubebuilder:validation:XValidation:rule="self.provider == 's3' || !(has(self.region) || has(self.endpoint) || has(self.credentialsSecretName))",fieldPath=".provider",messageExpression="'region, endpoint and credentialsSecretName are for provider s3 and not for provider ' + self.provider + ': remove them'"
// +kubebuilder:validation:XValidation:rule="self.provider != 'file' || self.bucket.startsWith('/')",fieldPath=".bucket",messageExpression="'bucket (' + self.bucket + ') must be an absolute path for provider file'"
// +kubebuilder:validation:XValidation:rule="self.provider != 's3' || self.bucket.matches('^[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]$')",fieldPath=".bucket",messageExpression="'bucket (' + self.bucket + ') must be the name of a bucket for provider s3: 3 to 63 lower-case letters, digits, dots and dashes'"
// +kubebuilder:validation:XValidation:rule="has(self.increments) && has(self.full) && self.increments != self.full",fieldPath=".increments",messageExpression=`'increments (%s) must be a folder, and another than full (%s)'.format([has(self.increments) ? self.increments : "", has(self.full) ? self.full : ""])`
type ModelStore struct {
	// Provider is s3, or file, where a bucket is a folder of the operator's own file system, for tests and demos; the operator must
	// allow it (--allow-local-stores).
	// +required
	Provider StoreProvider `json:"provider"`

	// Bucket of the store.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Bucket string `json:"bucket"`

	// Prefix is the folder of the model in the bucket. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9!_.*'()/=-]*$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !('..' in self.split('/'))",messageExpression="'prefix (' + self + ') must be a path in the bucket: without a slash at its beginning, and without ..'"
	Prefix string `json:"prefix,omitempty"`

	// Region of the bucket. Default: us-east-1.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	Region string `json:"region,omitempty"`

	// Endpoint is the URL of an S3 server, of those that the operator's configuration allows. Default: AWS's own.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.\[\]:-]+/?$`
	Endpoint string `json:"endpoint,omitempty"`

	// CredentialsSecretName names a Secret of this namespace with the keys AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if
	// the credentials have one, AWS_SESSION_TOKEN. The user who creates the MergeJob must have the right to read it. The
	// operator lists and reads objects with it, and writes none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`

	// Increments is the folder of increments under prefix: each object is one, and their names rise. Default inc/.
	// +optional
	// +kubebuilder:default="inc/"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9!_.*'()=-]*(/[A-Za-z0-9!_*'()=-][A-Za-z0-9!_.*'()=-]*)*/$`
	Increments string `json:"increments,omitempty"`

	// Full is the folder of full models under prefix. Each is a directory; a run creates one under its run id. Default full/.
	// +optional
	// +kubebuilder:default="full/"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9!_.*'()=-]*(/[A-Za-z0-9!_*'()=-][A-Za-z0-9!_.*'()=-]*)*/$`
	Full string `json:"full,omitempty"`

	// CompletionMarker is the object in a full model's directory that says that it is complete. Default _SUCCESS.
	// +optional
	// +kubebuilder:default="_SUCCESS"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9!_.*'()=-]*$`
	CompletionMarker string `json:"completionMarker,omitempty"`
}

// StoreProvider is the kind of a store.
//
// +kubebuilder:validation:Enum=s3;file
type StoreProvider string

const (
	// StoreS3 is a server that speaks S3.
	StoreS3 StoreProvider = "s3"
	// StoreFile is a folder of the operator's own file system.
	StoreFile StoreProvider = "file"
)

// MergeJob merges the increments that a training writes into full models, in turn with the other merges of its pool.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Merge Job"
// +operator-sdk:csv:customresourcedefinitions:resources={{Pod,v1,""},{ConfigMap,v1,""},{Event,v1,""},{PodGroup,v1beta1,podgroups.scheduling.volcano.sh}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mj,categories=tideline,path=mergejobs,singular=mergejob
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.status.model`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="Position",type=integer,JSONPath=`.status.position`,description="place in the line of the pool"
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.status.weight`,description="weight when the status was last written"
// +kubebuilder:printcolumn:name="Full-Age",type=date,JSONPath=`.status.lastFull.time`,description="age of the newest full model"
// +kubebuilder:printcolumn:name="Increments",type=integer,JSONPath=`.status.increments`,description="increments that are not merged"
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.status.pool`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Owner",type=string,priority=1,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Tier",type=string,priority=1,JSONPath=`.status.tier`
// +kubebuilder:printcolumn:name="Last",type=string,priority=1,JSONPath=`.status.history[0].outcome`,description="how the last run ended"
// +kubebuilder:printcolumn:name="Sized",type=string,priority=1,JSONPath=`.status.sizing.summary`,description="what containers request or could request, by what earlier runs used"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) + 7 + size(string(self.spec.maxReplicas - 1)) <= 63",fieldPath=".metadata.name",messageExpression="'name (%s) is too long (%s characters): the longest pod name, NAME-merge-%s, must not exceed 63 characters; shorten the name to %s characters or fewer'.format([self.metadata.name, string(size(self.metadata.name)), string(self.spec.maxReplicas - 1), string(56 - size(string(self.spec.maxReplicas - 1)))])"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') must be a DNS-1035 label, because it becomes part of host names: lower-case letters, digits and dashes, beginning with a letter, without dots'"
type MergeJob struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which model to merge, when, and with what.
	// +required
	Spec MergeJobSpec `json:"spec"`

	// Status is the state of the merges.
	// +optional
	Status MergeJobStatus `json:"status,omitempty"`
}

// MergeJobList is a list of MergeJobs.
//
// +kubebuilder:object:root=true
type MergeJobList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MergeJob `json:"items"`
}
