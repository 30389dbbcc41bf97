package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MergeJobSpec says which model to merge, when, and with what.
//
// +kubebuilder:validation:XValidation:rule="(has(self.minReplicas) ? self.minReplicas : 1) <= (has(self.maxReplicas) ? self.maxReplicas : 1)",fieldPath=".minReplicas",messageExpression="'minReplicas (%d) must not exceed maxReplicas (%d): lower minReplicas or raise maxReplicas'.format([(has(self.minReplicas) ? self.minReplicas : 1), (has(self.maxReplicas) ? self.maxReplicas : 1)])"
// +kubebuilder:validation:XValidation:rule="!has(self.window) || self.window <= (has(self.maxIncrementsPerRun) ? self.maxIncrementsPerRun : 5000)",fieldPath=".window",messageExpression="'window (%d) must not exceed maxIncrementsPerRun (%d): lower window or raise maxIncrementsPerRun'.format([self.window, (has(self.maxIncrementsPerRun) ? self.maxIncrementsPerRun : 5000)])"
type MergeJobSpec struct {
	// Model is the name of the model that is merged, as merge programs and people know it. Default: the name of the MergeJob.
	// It cannot change, because the history belongs to it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Model string `json:"model,omitempty"`

	// TrainingTask names the training whose increments are merged, for people and reports. Tideline does not touch that training.
	// Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TrainingTask string `json:"trainingTask,omitempty"`

	// Tier is the importance of the model: by default exploratory, small-traffic or main-traffic, in rising order; the operator's
	// configuration may define others. It decides the PriorityClass of the pods, and in the line each tier weighs twice the tier
	// before it once a merge is due. Default: the configuration's default tier, exploratory unless it names another. A change takes
	// effect at once, also for a run that has no place yet; a placed one keeps its tier. To raise it, a user needs the right to
	// `approve` on the profile of the namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Tier string `json:"tier,omitempty"`

	// Owner is the user who owns the merge, by the API server's name. Default: the user who creates it. To name another user
	// requires the right to `assign-owner` on mergejobs of the namespace, for CI and GitOps accounts. A change concerns
	// pods that are created from then on. If the operator runs without webhooks there is no default and the name is not checked,
	// as condition OwnerChecked says.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Owner string `json:"owner,omitempty"`

	// Submitter is the user who created the merge. A webhook records it, and restores it when an update leaves it out. Only a user
	// with the right to `assign-owner` may create a merge with another submitter, as when a backup is restored. If the operator
	// runs without webhooks it does not count.
	// +optional
	Submitter *Submitter `json:"submitter,omitempty"`

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

	// Store is where increments and full models are. It cannot change, because the history belongs to it; its credentials can, and
	// the new ones count from the next reading on.
	// +required
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

	// MinReplicas is the number of pods that a merge cannot run without. Volcano places them all together or not at all. `kubectl
	// scale` sets it, and a PodDisruptionBudget with maxUnavailable or a percentage counts from it. Default 1, range 1 to 4096.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the largest number of pods that the merge can use. Those beyond minReplicas are surplus: they are created once
	// the others run, use what is free, and give way to any gang that waits. Default 1, range 1 to 4096.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

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

	// Window has each run merge the last so many increments by name, also those that earlier runs merged, and begin without a full
	// model: what it makes is of the window alone, as an average of the last checkpoints is. What was written since the last run
	// counts as waiting; what is no longer among the last when a run begins is not merged any more. A store of more than 100,000
	// increments has no window. A change counts from the next run on. Default: each run merges what waits into the last full model.
	// Range 1 to 1000, and at most maxIncrementsPerRun.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Window *int32 `json:"window,omitempty"`

	// Template is the pod of the merge. All its containers get the variables TIDELINE_* and the file
	// /etc/tideline/increments/increments.gz with the names of the increments of the run. What Tideline decides is refused
	// here: schedulerName, priorityClassName, priority, preemptionPolicy, nodeName, schedulingGates, and a restartPolicy other
	// than Never; a terminationGracePeriodSeconds of more than limits.maxGraceSeconds of the operator's configuration; and a
	// container without an image. After a change, an attempt that still asks for its place is taken back and asks again; a placed
	// attempt continues unchanged. To name another ServiceAccount, or to change what runs as one, a user needs the same right to it
	// as at creation.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.schedulerName)",fieldPath=".spec.schedulerName",messageExpression="'schedulerName (' + self.spec.schedulerName + ') is set by Tideline, which schedules with Volcano: remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.priorityClassName)",fieldPath=".spec.priorityClassName",messageExpression="'priorityClassName (' + self.spec.priorityClassName + ') follows from the tier: remove it and set spec.tier'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.priority)",fieldPath=".spec.priority",messageExpression="'priority (%d) follows from the tier: remove it and set spec.tier'.format([self.spec.priority])"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.preemptionPolicy)",fieldPath=".spec.preemptionPolicy",messageExpression="'preemptionPolicy (' + self.spec.preemptionPolicy + ') follows from the tier: remove it and set spec.tier'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.nodeName)",fieldPath=".spec.nodeName",messageExpression="'nodeName (' + self.spec.nodeName + ') would bypass the scheduler: remove it and use nodeSelector'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.schedulingGates) || self.spec.schedulingGates.size() == 0",fieldPath=".spec.schedulingGates",messageExpression="'schedulingGates (' + self.spec.schedulingGates[0].name + ') keep the gang from being placed, because Volcano places no pod that a gate holds: remove schedulingGates; to hold the job back, set suspend'"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Never'",fieldPath=".spec.restartPolicy",messageExpression="'restartPolicy (' + self.spec.restartPolicy + ') must be Never, so that a merge that fails makes room for the next: remove it or set Never'"
	// +kubebuilder:validation:XValidation:rule="self.spec.containers.all(c, has(c.image) && c.image != '')",fieldPath=".spec.containers",messageExpression="'container %s has no image, without which Kubernetes refuses its pod: set its image'.format([self.spec.containers.filter(c, !has(c.image) || c.image == '')[0].name])"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.initContainers) || self.spec.initContainers.all(c, has(c.image) && c.image != '')",fieldPath=".spec.initContainers",messageExpression="'init container %s has no image, without which Kubernetes refuses its pod: set its image'.format([self.spec.initContainers.filter(c, !has(c.image) || c.image == '')[0].name])"
	// +kubebuilder:validation:XValidation:rule="self.spec.containers.all(c, !has(c.env) || c.env.all(e, !e.name.startsWith('TIDELINE_')))",fieldPath=".spec.containers",messageExpression="self.spec.containers.map(c, has(c.env) && c.env.exists(e, e.name.startsWith('TIDELINE_')), 'env %s of container %s is reserved: variables that begin with TIDELINE_ are set by Tideline; remove it'.format([c.env.filter(e, e.name.startsWith('TIDELINE_'))[0].name, c.name]))[0]"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !self.metadata.annotations.exists(k, k.startsWith('volcano.sh/') && !(k in ['volcano.sh/vgpu-mode', 'volcano.sh/vgpu-podgroup-policy', 'volcano.sh/numa-topology-policy']))",fieldPath=".metadata.annotations",messageExpression="'annotation %s is set by Tideline, which speaks to Volcano: remove it'.format([self.metadata.annotations.filter(k, k.startsWith('volcano.sh/') && !(k in ['volcano.sh/vgpu-mode', 'volcano.sh/vgpu-podgroup-policy', 'volcano.sh/numa-topology-policy']))[0]])"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !('volcano.sh/numa-topology-policy' in self.metadata.annotations) || self.metadata.annotations['volcano.sh/numa-topology-policy'] in ['none', 'best-effort', 'restricted', 'single-numa-node']",fieldPath=".metadata.annotations",messageExpression="'annotation volcano.sh/numa-topology-policy (' + self.metadata.annotations['volcano.sh/numa-topology-policy'] + ') must be none, best-effort, restricted or single-numa-node, which Volcano reads: correct it, or remove it'"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !self.metadata.annotations.exists(k, k.startsWith('scheduling.volcano.sh/') || k.startsWith('scheduling.k8s.io/'))",fieldPath=".metadata.annotations",messageExpression="'annotation %s is set by Tideline, which speaks to Volcano: remove it'.format([self.metadata.annotations.filter(k, k.startsWith('scheduling.volcano.sh/') || k.startsWith('scheduling.k8s.io/'))[0]])"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.labels) || !self.metadata.labels.exists(k, k.startsWith('volcano.sh/') || k.startsWith('tideline.io/'))",fieldPath=".metadata.labels",messageExpression="'label %s is set by Tideline: remove it'.format([self.metadata.labels.filter(k, k.startsWith('volcano.sh/') || k.startsWith('tideline.io/'))[0]])"
	Template corev1.PodTemplateSpec `json:"template"`

	FormerOwner `json:",inline"`
}

// MergeSchedule says how often a model is merged.
//
// +kubebuilder:validation:XValidation:rule="(has(self.interval) || has(self.cron) || has(self.increments)) && !(has(self.interval) && has(self.cron))",message="a schedule has an interval, a cron line or a number of increments: set one of them, but not both interval and cron, or leave schedule out to merge once"
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

	// Increments is how many increments must wait for the model to be due: alone, or beside interval or cron, whichever comes first.
	// So many give a weight of 100, as a full model does that is as old as the interval. Default: none. Range 1 to 5000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000
	Increments *int32 `json:"increments,omitempty"`
}

// IsByIncrements is true for a schedule of increments alone. The age of the full model does not count then.
func (s *MergeSchedule) IsByIncrements() bool {
	return s != nil && s.Increments != nil && s.Interval == nil && s.Cron == ""
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
// +kubebuilder:validation:XValidation:rule="has(self.s3) == (self.type == 'S3')",fieldPath=".s3",message="s3 goes with type S3, and with it alone: set type to S3 and describe the bucket in s3"
// +kubebuilder:validation:XValidation:rule="has(self.file) == (self.type == 'File')",fieldPath=".file",message="file goes with type File, and with it alone: set type to File and name the folder in file"
// +kubebuilder:validation:XValidation:rule="has(self.claim) == (self.type == 'Claim')",fieldPath=".claim",message="claim goes with type Claim, and with it alone: set type to Claim and name the PersistentVolumeClaim in claim"
// +kubebuilder:validation:XValidation:rule="has(self.increments) && has(self.full) && self.increments != self.full",fieldPath=".increments",messageExpression=`'increments (%s) must be a folder, and another than full (%s)'.format([has(self.increments) ? self.increments : "", has(self.full) ? self.full : ""])`
type ModelStore struct {
	// Type is S3; Claim, which is a volume that pods mount; or File, which is a folder of the operator's own file system, for tests
	// and demos; the operator must allow it (--allow-local-stores).
	// +required
	Type StoreType `json:"type"`

	// S3 describes the bucket of a store of type S3.
	// +optional
	S3 *S3Store `json:"s3,omitempty"`

	// File describes the folder of a store of type File.
	// +optional
	File *FileStore `json:"file,omitempty"`

	// Claim describes the volume of a store of type Claim.
	// +optional
	Claim *ClaimStore `json:"claim,omitempty"`

	// Prefix is the folder of the model in the bucket or folder. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9!_.*'()/=-]*$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !('..' in self.split('/'))",messageExpression="'prefix (' + self + ') must be a path in the bucket: without a slash at its beginning, and without ..'"
	Prefix string `json:"prefix,omitempty"`

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

	FormerStore `json:",inline"`
}

// S3Store is a bucket of a server that speaks S3.
type S3Store struct {
	// Bucket by its name.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]$')",messageExpression="'bucket (' + self + ') must be the name of a bucket: 3 to 63 lower-case letters, digits, dots and dashes'"
	Bucket string `json:"bucket"`

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

	// CredentialsRef names a Secret of this namespace with the keys AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if
	// the credentials have one, AWS_SESSION_TOKEN. The user who names it must have the right to read it. The
	// operator lists and reads objects with it, and writes none; its own identity is never used.
	// +required
	CredentialsRef ObjectRef `json:"credentialsRef"`
}

// FileStore is a folder of the operator's own file system.
type FileStore struct {
	// Path of the folder, from the root.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",messageExpression="'path (' + self + ') must be absolute'"
	Path string `json:"path"`
}

// ClaimStore is a volume. All containers of a merge mount it; the operator never does. It believes ConfigMap NAME-merge-store of
// the MergeJob's namespace, in which trainings and merges report what they wrote.
type ClaimStore struct {
	// Name of a PersistentVolumeClaim of this namespace, which all pods of the merge can mount at once.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// MountPath is where the containers have the volume. Default /models.
	// +optional
	// +kubebuilder:default="/models"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.size() > 1 && self.startsWith('/') && !self.contains(':') && !('..' in self.split('/'))",messageExpression="'mountPath (' + self + ') must be an absolute path below /, without colons and without ..'"
	MountPath string `json:"mountPath,omitempty"`
}

// ObjectRef names an object.
type ObjectRef struct {
	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// StoreType is the kind of a store.
//
// +kubebuilder:validation:Enum=S3;File;Claim
type StoreType string

const (
	// StoreS3 is a server that speaks S3.
	StoreS3 StoreType = "S3"
	// StoreFile is a folder of the operator's own file system.
	StoreFile StoreType = "File"
	// StoreClaim is a volume that pods mount. They report what they wrote.
	StoreClaim StoreType = "Claim"
)

// MergeJob merges the increments that a training writes into full models, in turn with the other merges of its pool.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Merge Job"
// +operator-sdk:csv:customresourcedefinitions:resources={{Pod,v1,""},{ConfigMap,v1,""},{Event,v1,""},{PodGroup,v1beta1,podgroups.scheduling.volcano.sh}}
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.minReplicas,statuspath=.status.run.minReplicas,selectorpath=.status.selector
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
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) + 7 + size(string((has(self.spec.maxReplicas) ? self.spec.maxReplicas : 1) - 1)) <= 63",fieldPath=".metadata.name",messageExpression="'name (%s) is too long (%s characters): the longest pod name, NAME-merge-%s, must not exceed 63 characters; shorten the name to %s characters or fewer'.format([self.metadata.name, string(size(self.metadata.name)), string((has(self.spec.maxReplicas) ? self.spec.maxReplicas : 1) - 1), string(56 - size(string((has(self.spec.maxReplicas) ? self.spec.maxReplicas : 1) - 1)))])"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata.name",messageExpression="'name (' + self.metadata.name + ') must be a DNS-1035 label, because it becomes part of host names: lower-case letters, digits and dashes, beginning with a letter, without dots'"
// +kubebuilder:validation:XValidation:rule="self.spec.store.type == oldSelf.spec.store.type && self.spec.store.increments == oldSelf.spec.store.increments && self.spec.store.full == oldSelf.spec.store.full && self.spec.store.completionMarker == oldSelf.spec.store.completionMarker && (has(self.spec.store.prefix) ? [self.spec.store.prefix] : []) == (has(oldSelf.spec.store.prefix) ? [oldSelf.spec.store.prefix] : []) && (has(self.spec.store.file) && has(self.spec.store.file.path) ? [self.spec.store.file.path] : []) == (has(oldSelf.spec.store.file) && has(oldSelf.spec.store.file.path) ? [oldSelf.spec.store.file.path] : []) && (has(self.spec.store.s3) && has(self.spec.store.s3.bucket) ? [self.spec.store.s3.bucket] : []) == (has(oldSelf.spec.store.s3) && has(oldSelf.spec.store.s3.bucket) ? [oldSelf.spec.store.s3.bucket] : []) && (has(self.spec.store.s3) && has(self.spec.store.s3.region) ? [self.spec.store.s3.region] : []) == (has(oldSelf.spec.store.s3) && has(oldSelf.spec.store.s3.region) ? [oldSelf.spec.store.s3.region] : []) && (has(self.spec.store.s3) && has(self.spec.store.s3.endpoint) ? [self.spec.store.s3.endpoint] : []) == (has(oldSelf.spec.store.s3) && has(oldSelf.spec.store.s3.endpoint) ? [oldSelf.spec.store.s3.endpoint] : []) && (has(self.spec.store.claim) && has(self.spec.store.claim.name) ? [self.spec.store.claim.name] : []) == (has(oldSelf.spec.store.claim) && has(oldSelf.spec.store.claim.name) ? [oldSelf.spec.store.claim.name] : []) && (has(self.spec.store.claim) && has(self.spec.store.claim.mountPath) ? [self.spec.store.claim.mountPath] : []) == (has(oldSelf.spec.store.claim) && has(oldSelf.spec.store.claim.mountPath) ? [oldSelf.spec.store.claim.mountPath] : [])",fieldPath=".spec.store",message="store cannot change, credentialsRef excepted, because the history belongs to it: delete the job and create it again"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.model) ? self.spec.model : self.metadata.name) == (has(oldSelf.spec.model) ? oldSelf.spec.model : self.metadata.name)",fieldPath=".spec.model",message="model cannot change, because the history belongs to it: delete the job and create it again"
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

// Place is the bucket, folder or claim of the store; empty for one that the schema refuses.
func (s *ModelStore) Place() string {
	switch {
	case s.S3 != nil:
		return s.S3.Bucket
	case s.File != nil:
		return s.File.Path
	case s.Claim != nil:
		return s.Claim.Name
	}
	return ""
}

// Server is the endpoint and the region of a store of type S3; empty for what its defaults give, and for other types.
func (s *ModelStore) Server() (endpoint, region string) {
	if s.S3 == nil {
		return "", ""
	}
	return s.S3.Endpoint, s.S3.Region
}

// CredentialsSecret is the name of the Secret by which the store is read; empty for a store that needs none.
func (s *ModelStore) CredentialsSecret() string {
	if s.S3 == nil {
		return ""
	}
	return s.S3.CredentialsRef.Name
}

// EffectiveTier is the tier that the pods of a placed run have, or else the tier that the spec asks for; empty for a default.
func (j *MergeJob) EffectiveTier() string {
	if run := j.Status.Run; run != nil && run.PlaceTime != nil && run.Tier != "" {
		return run.Tier
	}
	return j.Spec.Tier
}
