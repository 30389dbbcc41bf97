package testutil

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/cluster"
)

// GPUResource is the extended resource of which the cluster's nodes have some.
const GPUResource corev1.ResourceName = "nvidia.com/gpu"

// JobBuilder builds an ElasticTrainingJob, field by field, in the order in which one would say it.
type JobBuilder struct{ job *v1beta1.ElasticTrainingJob }

// Job begins with the smallest job that is valid: one worker with one container that asks for nothing.
func Job(name string) *JobBuilder {
	return &JobBuilder{&v1beta1.ElasticTrainingJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: v1beta1.ElasticTrainingJobSpec{
			MinReplicas: 1, MaxReplicas: 1,
			// Most scenarios are about surplus that is there at once, and that waits where there is no room.
			Elasticity: v1beta1.Elasticity{Growth: v1beta1.Growth{Mode: v1beta1.GrowthAlways}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "trainer", Image: "registry.example/trainer:1", Command: []string{"torchrun", "train.py"},
			}}}},
		},
	}}
}

// Obj returns a copy of the job as built so far.
func (b *JobBuilder) Obj() *v1beta1.ElasticTrainingJob { return b.job.DeepCopy() }

// In sets the namespace.
func (b *JobBuilder) In(namespace string) *JobBuilder {
	b.job.Namespace = namespace
	return b
}

// Range sets minReplicas and maxReplicas.
func (b *JobBuilder) Range(minimum, maximum int32) *JobBuilder {
	b.job.Spec.MinReplicas, b.job.Spec.MaxReplicas = minimum, maximum
	return b
}

// GPUs has each worker ask for n GPUs.
func (b *JobBuilder) GPUs(n int64) *JobBuilder {
	b.trainer().Resources.Limits = corev1.ResourceList{GPUResource: *resource.NewQuantity(n, resource.DecimalSI)}
	return b
}

// Tier sets the tier.
func (b *JobBuilder) Tier(tier string) *JobBuilder {
	b.job.Spec.Tier = tier
	return b
}

// Owner names an owner.
func (b *JobBuilder) Owner(owner string) *JobBuilder {
	b.job.Spec.Owner = owner
	return b
}

// Cooldown sets elasticity.growth.cooldownSeconds. Without it the API's default holds.
func (b *JobBuilder) Cooldown(d time.Duration) *JobBuilder {
	b.job.Spec.Elasticity.Growth.CooldownSeconds = seconds(d)
	return b
}

// MinSurplusRun sets elasticity.shrink.minRunSeconds.
func (b *JobBuilder) MinSurplusRun(d time.Duration) *JobBuilder {
	b.job.Spec.Elasticity.Shrink.MinRunSeconds = seconds(d)
	return b
}

// Starvation sets elasticity.shrink.starvationSeconds.
func (b *JobBuilder) Starvation(d time.Duration) *JobBuilder {
	b.job.Spec.Elasticity.Shrink.StarvationSeconds = seconds(d)
	return b
}

// ShrinkBy sets elasticity.shrink.initiator.
func (b *JobBuilder) ShrinkBy(by v1beta1.ShrinkInitiator) *JobBuilder {
	b.job.Spec.Elasticity.Shrink.Initiator = by
	return b
}

// Fitting has the job create only the surplus that fits.
func (b *JobBuilder) Fitting() *JobBuilder {
	b.job.Spec.Elasticity.Growth.Mode = v1beta1.GrowthOnlyIfFits
	return b
}

// Paying has the job grow only if that pays, with restarts that are taken to last for d.
func (b *JobBuilder) Paying(d time.Duration) *JobBuilder {
	b.job.Spec.Elasticity.Growth.Mode, b.job.Spec.Elasticity.Growth.OutageSeconds = v1beta1.GrowthOnlyIfPays, seconds(d)
	return b
}

// Step sets elasticity.step.
func (b *JobBuilder) Step(n int32) *JobBuilder {
	b.job.Spec.Elasticity.Step = n
	return b
}

// CPUs has each worker ask for n cores.
func (b *JobBuilder) CPUs(n int64) *JobBuilder {
	b.trainer().Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
	return b
}

// Asks has each worker ask for CPU and memory, as a tier that is Guaranteed wants it.
func (b *JobBuilder) Asks(cpu, memory string) *JobBuilder {
	b.trainer().Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}
	return b
}

// CompletionGrace sets successPolicy.completionGraceSeconds.
func (b *JobBuilder) CompletionGrace(d time.Duration) *JobBuilder {
	b.job.Spec.SuccessPolicy.CompletionGraceSeconds = seconds(d)
	return b
}

// CleanPods sets cleanup.podPolicy.
func (b *JobBuilder) CleanPods(policy v1beta1.CleanPodPolicy) *JobBuilder {
	b.job.Spec.Cleanup.PodPolicy = policy
	return b
}

// Pool confines the workers to the nodes of a pool (see [NewNode]).
func (b *JobBuilder) Pool(pool string) *JobBuilder {
	b.job.Spec.Template.Spec.NodeSelector = map[string]string{PoolLabel: pool}
	return b
}

// Manual keeps KWOK from making the workers Running: the test drives their status itself.
func (b *JobBuilder) Manual() *JobBuilder {
	return b.Template(func(t *corev1.PodTemplateSpec) {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, cluster.ManualAnnotation, strconv.FormatBool(true))
	})
}

// Template changes the pod template.
func (b *JobBuilder) Template(change func(*corev1.PodTemplateSpec)) *JobBuilder {
	change(&b.job.Spec.Template)
	return b
}

// Mounts mounts a claim in all workers.
func (b *JobBuilder) Mounts(claim string) *JobBuilder {
	spec := &b.job.Spec.Template.Spec
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
	trainer := b.trainer()
	trainer.VolumeMounts = append(trainer.VolumeMounts, corev1.VolumeMount{Name: claim, MountPath: "/" + claim})
	return b
}

// With changes anything else.
func (b *JobBuilder) With(change func(*v1beta1.ElasticTrainingJob)) *JobBuilder {
	change(b.job)
	return b
}

func (b *JobBuilder) trainer() *corev1.Container { return &b.job.Spec.Template.Spec.Containers[0] }

func seconds(d time.Duration) *int32 { return ptr.To(int32(d / time.Second)) }
