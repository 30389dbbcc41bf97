// Package mergepod makes the objects of a MergeJob's run: the pods of one attempt, their PodGroups and the ConfigMap with the
// names of the increments. It joins what gang says to Volcano, and what the run merges, to the user's template.
package mergepod

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/serverurl"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// incrementsVolume is the volume of the ConfigMap with the names of the increments.
const incrementsVolume = "tideline-increments"

// Blueprint makes the objects of one attempt of a run. It reads the run's id, attempt, replicas, increments and base.
type Blueprint struct {
	Job  *v1beta1.MergeJob
	Run  *v1beta1.MergeRun
	Tier config.Tier
	// Pool is the Volcano Queue that the attempt asks.
	Pool string
}

// PodName is the name of pod i.
func PodName(job string, i int32) string { return job + "-merge-" + strconv.Itoa(int(i)) }

// PodIndex is the index of the job's pod with that name; false if the job has no pod of that name.
func PodIndex(job, pod string) (int32, bool) {
	i, err := strconv.ParseInt(strings.TrimPrefix(pod, job+"-merge-"), 10, 32)
	if err != nil || i < 0 || i >= v1beta1.MaxWorkers || pod != PodName(job, int32(i)) {
		return 0, false
	}
	return int32(i), true
}

// CoreName is the name of the PodGroup of the core.
func CoreName(job string) string { return gang.CoreName(job + "-merge") }

// SurplusName is the name of the PodGroup of the surplus.
func SurplusName(job string) string { return gang.SurplusName(job + "-merge") }

// IncrementsName is the name of the ConfigMap with the names of the increments.
func IncrementsName(job string) string { return job + "-merge-increments" }

// ReportName is the name of the ConfigMap with the report of a job's volume. The operator creates none and changes none.
func ReportName(job string) string { return job + "-merge-store" }

// ReportOf is the job whose volume a ConfigMap reports of, by its name and its label; false for another ConfigMap. Whoever sets
// the label says that the operator may repeat what is in it.
func ReportOf(o metav1.Object) (job string, ok bool) {
	job = o.GetLabels()[v1beta1.LabelJob]
	return job, job != "" && o.GetName() == ReportName(job)
}

// AttemptName names the attempt of the run, among all of the job, as label attempt has it.
func AttemptName(run *v1beta1.MergeRun) string { return run.ID + "-" + strconv.Itoa(int(run.Attempt)) }

// ModelName is the name of the model that the job merges.
func ModelName(job *v1beta1.MergeJob) string {
	if job.Spec.Model != "" {
		return job.Spec.Model
	}
	return job.Name
}

// ModelHash tells where the job's full models are, however that is written: the first 16 hexadecimal digits of a SHA-256. What
// the job calls its model does not matter.
func ModelHash(job *v1beta1.MergeJob) string { return placeHash(job, job.Spec.Store.Full) }

// PlaceHashes are where the job's full models and its increments are, each as ModelHash tells it. Two jobs that share one of them
// would take each other's full models for their own, or merge increments twice.
func PlaceHashes(job *v1beta1.MergeJob) []string {
	return []string{ModelHash(job), placeHash(job, job.Spec.Store.Increments)}
}

func placeHash(job *v1beta1.MergeJob, folder string) string {
	s := &job.Spec.Store
	endpoint, _ := s.Server()
	// Normal forms, so that a slash more or the default port in one of two jobs does not hide that they share a place.
	holder := path.Clean(s.Place())
	if s.Type == v1beta1.StoreClaim {
		holder = job.Namespace + "/" + holder // Claims of one name in two namespaces are two.
	}
	place := []string{string(s.Type), serverurl.NormalizeURL(endpoint), holder, path.Join("/", s.Prefix, folder)}
	if p := partition(s); p != "" {
		place = append(place, p)
	}
	sum := sha256.Sum256([]byte(strings.Join(place, "\n"))) // None of them has a line break.
	return hex.EncodeToString(sum[:8])
}

// partition is in which of AWS's worlds beside the commercial one a store of AWS's own is; empty for all others. In each a
// bucket's name is given once, whatever its region: two jobs that name one bucket in two regions still share it. Servers other
// than AWS's take a region for no more than the signature.
func partition(s *v1beta1.ModelStore) string {
	endpoint, region := s.Server()
	if endpoint != "" {
		return ""
	}
	for _, world := range []string{"cn-", "us-gov-", "us-iso-", "us-isob-", "us-isof-", "eu-isoe-", "eusc-"} {
		if strings.HasPrefix(region, world) {
			return world
		}
	}
	return ""
}

// NewPod returns pod i. What it needs to reach the store is the template's matter: a container that names the store's Secret in
// its envFrom has the credentials under the names that clients of S3 read. Tideline shows no Secret to a container by itself.
func (b Blueprint) NewPod(i int32) *corev1.Pod {
	template := &b.Job.Spec.Template
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       b.Job.Namespace,
			Name:            PodName(b.Job.Name, i),
			Labels:          b.podLabels(i, template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			OwnerReferences: []metav1.OwnerReference{b.ownerReference()},
		},
		Spec: *trainingpod.MergeSpec(b.Job, i),
	}
	trainingpod.SetOwner(pod, b.Job.Spec.Owner)
	trainingpod.ApplyQoS(&pod.Spec, b.Tier.QoS)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: incrementsVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: IncrementsName(b.Job.Name)},
		},
	}})
	vars := b.containerEnv(i)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for c := range containers {
			prepareContainer(&containers[c], vars)
			trainingpod.MountStore(&containers[c], claimPath(b.Job.Spec.Store.Claim))
		}
	}
	b.groupMember(i).JoinGang(pod)
	return pod
}

// prepareContainer adds variables, and the volume with the list of increments, to a container.
func prepareContainer(c *corev1.Container, vars []corev1.EnvVar) {
	// Tideline's variables come first, so that the user's may refer to them, as in $(TIDELINE_OUTPUT_PATH)part. A variable of the
	// template with the same name is dropped.
	c.Env = append(append([]corev1.EnvVar(nil), vars...), rendezvous.MissingVars(c.Env, vars)...)
	trainingpod.MountVolume(c, incrementsVolume, path.Dir(v1beta1.IncrementsFile))
	if c.TerminationMessagePolicy == "" {
		// The last lines of a container that failed become its message, which the job's status repeats.
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
}

func (b Blueprint) groupMember(i int32) gang.Member {
	if i < b.Run.MinReplicas {
		return gang.Member{Group: CoreName(b.Job.Name), Index: i, PriorityClass: b.Tier.ClassName()}
	}
	return gang.Member{Group: SurplusName(b.Job.Name), Index: i, PriorityClass: b.Tier.SurplusClassName(), Preemptable: true}
}

// CoreGroup returns the PodGroup of the core: all of it is placed together or nothing.
func (b Blueprint) CoreGroup() gang.Group {
	g := b.podGroup(CoreName(b.Job.Name), b.Tier.ClassName())
	g.MinMember, g.MinResources = b.Run.MinReplicas, trainingpod.MergeRequests(b.Job, b.Run.MinReplicas)
	return g
}

// SurplusGroup returns the PodGroup of the surplus: each member is placed by itself.
func (b Blueprint) SurplusGroup() gang.Group {
	return b.podGroup(SurplusName(b.Job.Name), b.Tier.SurplusClassName())
}

func (b Blueprint) podGroup(name, class string) gang.Group {
	labels := b.labels()
	labels[v1beta1.LabelAttempt] = AttemptName(b.Run)
	return gang.Group{
		Namespace: b.Job.Namespace, Name: name, Labels: labels, Owner: b.ownerReference(), Queue: b.Pool, PriorityClass: class,
	}
}

// IncrementsMap returns the ConfigMap with the names of the increments of the run, gzipped, one a line; all attempts share it. A
// kubelet shows the content of an immutable ConfigMap as long as any pod on its node refers to that name
// (pkg/kubelet/util/manager/watch_based_manager.go in Kubernetes), so that another run's must not be created before all pods of
// this one are gone.
func (b Blueprint) IncrementsMap(list []byte) *corev1.ConfigMap {
	labels := b.labels()
	labels[v1beta1.LabelJob] = b.Job.Name // The operator's cache holds only ConfigMaps with this label.
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.Job.Namespace, Name: IncrementsName(b.Job.Name), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{b.ownerReference()},
		},
		Immutable:  ptr.To(true),
		BinaryData: map[string][]byte{path.Base(v1beta1.IncrementsFile): list},
	}
}

func (b Blueprint) ownerReference() metav1.OwnerReference {
	return v1beta1.ControllerReference(b.Job, v1beta1.MergeJobKind)
}

func (b Blueprint) labels() map[string]string {
	return map[string]string{v1beta1.LabelMerge: b.Job.Name, v1beta1.LabelRun: b.Run.ID}
}

func (b Blueprint) podLabels(i int32, template map[string]string) map[string]string {
	labels := maps.Clone(template)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, LookOf(b.Job))
	maps.Copy(labels, b.labels())
	labels[v1beta1.LabelWorkerIndex] = strconv.Itoa(int(i))
	labels[v1beta1.LabelAttempt] = AttemptName(b.Run)
	labels[v1beta1.LabelPart] = trainingpod.PartOf(i, b.Run.MinReplicas)
	return labels
}

// LookOf are the labels of a merge's pods but for those that differ between them or from run to run.
func LookOf(job *v1beta1.MergeJob) map[string]string {
	labels := maps.Clone(job.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1beta1.LabelMerge], labels[v1beta1.LabelModelHash] = job.Name, ModelHash(job)
	if owner := job.Spec.Owner; owner != "" {
		labels[v1beta1.LabelOwnerHash] = trainingpod.OwnerHash(owner)
	}
	return labels
}
