package convert

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
)

// trainerVersion is the version of the kinds of trainer.
var trainerVersion = schema.GroupVersion{Group: "trainer.kubeflow.org", Version: "v1alpha1"}

// Kinds of trainer.
const (
	trainJobKind       = "TrainJob"
	runtimeKind        = "TrainingRuntime"
	clusterRuntimeKind = "ClusterTrainingRuntime"
)

// TrainJob has all fields of a TrainJob (trainer.kubeflow.org/v1alpha1) of trainer 2.0 to 2.3. What nothing here reads is any.
type TrainJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TrainJobSpec `json:"spec,omitempty"`
	Status            struct {
		Conditions    []metav1.Condition `json:"conditions,omitempty"`
		JobsStatus    any                `json:"jobsStatus,omitempty"`
		TrainerStatus any                `json:"trainerStatus,omitempty"`
	} `json:"status,omitzero"`
}

// DeepCopyObject returns a copy that shares nothing.
func (j *TrainJob) DeepCopyObject() runtime.Object { return copyOf(j) }

// TrainJobSpec says what to train, by which runtime.
type TrainJobSpec struct {
	RuntimeRef           RuntimeRef            `json:"runtimeRef,omitempty"`
	Initializer          *Initializer          `json:"initializer,omitempty"`
	Trainer              *Trainer              `json:"trainer,omitempty"`
	RuntimePatches       []RuntimePatch        `json:"runtimePatches,omitempty"`
	PodTemplateOverrides []PodTemplateOverride `json:"podTemplateOverrides,omitempty"` // until trainer 2.2
	Labels               map[string]string     `json:"labels,omitempty"`               // until trainer 2.2, for JobSet and its pods
	Annotations          map[string]string     `json:"annotations,omitempty"`          // as labels
	Suspend              *bool                 `json:"suspend,omitempty"`
	// ActiveDeadlineSeconds is 0 for no limit.
	ActiveDeadlineSeconds int64   `json:"activeDeadlineSeconds,omitempty"`
	ManagedBy             *string `json:"managedBy,omitempty"`
}

// RuntimeRef names a runtime, by default a ClusterTrainingRuntime.
type RuntimeRef struct {
	Name     string  `json:"name,omitempty"`
	APIGroup *string `json:"apiGroup,omitempty"`
	Kind     *string `json:"kind,omitempty"`
}

// Initializer is what loads data before the training.
type Initializer struct {
	Dataset any `json:"dataset,omitempty"`
	Model   any `json:"model,omitempty"`
}

// Trainer is what a TrainJob says of the container node of its runtime.
type Trainer struct {
	Image            *string                      `json:"image,omitempty"`
	Command          []string                     `json:"command,omitempty"`
	Args             []string                     `json:"args,omitempty"`
	Env              []corev1.EnvVar              `json:"env,omitempty"`
	NumNodes         *int32                       `json:"numNodes,omitempty"`
	ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode,omitempty"`
	NumProcPerNode   *intstr.IntOrString          `json:"numProcPerNode,omitempty"`
}

// RuntimePatch is what one manager changes of a runtime.
type RuntimePatch struct {
	Manager             string `json:"manager,omitempty"`
	Time                any    `json:"time,omitempty"`
	TrainingRuntimeSpec *struct {
		Template *struct {
			Metadata *metav1.ObjectMeta `json:"metadata,omitempty"`
			Spec     *struct {
				ReplicatedJobs []ReplicatedJobPatch `json:"replicatedJobs,omitempty"`
			} `json:"spec,omitempty"`
		} `json:"template,omitempty"`
	} `json:"trainingRuntimeSpec,omitempty"`
}

// ReplicatedJobPatch is what is changed of one replicated job.
type ReplicatedJobPatch struct {
	Name     string `json:"name,omitempty"`
	Template *struct {
		Metadata *metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec     *struct {
			Template *PodTemplatePatch `json:"template,omitempty"`
		} `json:"spec,omitempty"`
	} `json:"template,omitempty"`
}

// PodTemplateOverride is what was a RuntimePatch before trainer 2.2.
type PodTemplateOverride struct {
	TargetJobs []struct {
		Name string `json:"name,omitempty"`
	} `json:"targetJobs,omitempty"`
	PodTemplatePatch `json:",inline"`
}

// PodTemplatePatch is merged into a pod template, strategically.
type PodTemplatePatch struct {
	Metadata *PatchedMetadata `json:"metadata,omitempty"`
	Spec     *PodSpecPatch    `json:"spec,omitempty"`
}

// PatchedMetadata are labels and annotations.
type PatchedMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodSpecPatch is what a patch may change of pods.
type PodSpecPatch struct {
	ServiceAccountName            *string                       `json:"serviceAccountName,omitempty"`
	Volumes                       []corev1.Volume               `json:"volumes,omitempty"`
	InitContainers                []ContainerPatch              `json:"initContainers,omitempty"`
	Containers                    []ContainerPatch              `json:"containers,omitempty"`
	ImagePullSecrets              []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	SecurityContext               *corev1.PodSecurityContext    `json:"securityContext,omitempty"`
	NodeSelector                  map[string]string             `json:"nodeSelector,omitempty"`
	Affinity                      *corev1.Affinity              `json:"affinity,omitempty"`
	Tolerations                   []corev1.Toleration           `json:"tolerations,omitempty"`
	SchedulingGates               []corev1.PodSchedulingGate    `json:"schedulingGates,omitempty"`
	TerminationGracePeriodSeconds *int64                        `json:"terminationGracePeriodSeconds,omitempty"`
}

// ContainerPatch is what a patch may change of a container.
type ContainerPatch struct {
	Name            string                  `json:"name,omitempty"`
	Env             []corev1.EnvVar         `json:"env,omitempty"`
	VolumeMounts    []corev1.VolumeMount    `json:"volumeMounts,omitempty"`
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}

// TrainingRuntime is a TrainingRuntime or a ClusterTrainingRuntime, as its kind says.
type TrainingRuntime struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TrainingRuntimeSpec `json:"spec,omitempty"`
	Status            any                 `json:"status,omitempty"`
}

// DeepCopyObject returns a copy that shares nothing.
func (r *TrainingRuntime) DeepCopyObject() runtime.Object { return copyOf(r) }

// TrainingRuntimeSpec is how jobs of a runtime are run.
type TrainingRuntimeSpec struct {
	MLPolicy       *MLPolicy       `json:"mlPolicy,omitempty"`
	PodGroupPolicy *PodGroupPolicy `json:"podGroupPolicy,omitempty"`
	Template       struct {
		Metadata metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec     JobSetSpec        `json:"spec,omitempty"`
	} `json:"template,omitempty"`
}

// MLPolicy is a framework, one at most, and how many nodes there are.
type MLPolicy struct {
	NumNodes *int32 `json:"numNodes,omitempty"`
	Torch    *struct {
		EnvInjection   any                 `json:"envInjection,omitempty"`
		NumProcPerNode *intstr.IntOrString `json:"numProcPerNode,omitempty"` // until trainer 2.2
		ElasticPolicy  any                 `json:"elasticPolicy,omitempty"`  // until trainer 2.2, which did nothing with it
	} `json:"torch,omitempty"`
	JAX     any `json:"jax,omitempty"`
	MPI     any `json:"mpi,omitempty"`
	Flux    any `json:"flux,omitempty"`
	XGBoost any `json:"xgboost,omitempty"`
}

// PodGroupPolicy is how a gang is placed.
type PodGroupPolicy struct {
	Coscheduling any `json:"coscheduling,omitempty"`
	Volcano      *struct {
		NetworkTopology *batch.NetworkTopologySpec `json:"networkTopology,omitempty"`
	} `json:"volcano,omitempty"`
}

// JobSetSpec is that of a JobSet (jobset.x-k8s.io/v1alpha2).
type JobSetSpec struct {
	ReplicatedJobs          []ReplicatedJob `json:"replicatedJobs,omitempty"`
	Network                 any             `json:"network,omitempty"`
	SuccessPolicy           any             `json:"successPolicy,omitempty"`
	FailurePolicy           any             `json:"failurePolicy,omitempty"`
	StartupPolicy           any             `json:"startupPolicy,omitempty"`
	Suspend                 any             `json:"suspend,omitempty"`
	Coordinator             any             `json:"coordinator,omitempty"`
	ManagedBy               any             `json:"managedBy,omitempty"`
	TTLSecondsAfterFinished any             `json:"ttlSecondsAfterFinished,omitempty"`
	VolumeClaimPolicies     any             `json:"volumeClaimPolicies,omitempty"`
}

// ReplicatedJob is one job of a JobSet.
type ReplicatedJob struct {
	Name      string                  `json:"name,omitempty"`
	GroupName any                     `json:"groupName,omitempty"`
	Replicas  any                     `json:"replicas,omitempty"` // trainer sets 1
	Template  batchv1.JobTemplateSpec `json:"template,omitempty"`
	DependsOn any                     `json:"dependsOn,omitempty"`
}

// copyOf is a deep copy of an object that can be written as JSON.
func copyOf[T any](in *T) *T {
	out := new(T)
	written, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(written, out)
	}
	if err != nil {
		panic(err) // Only for types that no object of Kubernetes has.
	}
	return out
}
