package testutil

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// MergeBuilder builds a MergeJob, field by field, in the order in which one would say it.
type MergeBuilder struct{ job *v1beta1.MergeJob }

// Merge begins with a merge of one pod that is due every ten hours.
func Merge(name string) *MergeBuilder {
	return &MergeBuilder{&v1beta1.MergeJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: v1beta1.MergeJobSpec{
			Schedule:    &v1beta1.MergeSchedule{Interval: &metav1.Duration{Duration: 10 * time.Hour}},
			MinReplicas: 1, MaxReplicas: 1,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "merge", Image: "registry.example/merge:1",
			}}}},
		},
	}}
}

// Obj returns a copy of the job as built so far.
func (b *MergeBuilder) Obj() *v1beta1.MergeJob { return b.job.DeepCopy() }

// With changes the spec.
func (b *MergeBuilder) With(change func(*v1beta1.MergeJobSpec)) *MergeBuilder {
	change(&b.job.Spec)
	return b
}

// In sets the namespace.
func (b *MergeBuilder) In(namespace string) *MergeBuilder {
	b.job.Namespace = namespace
	return b
}

// Pods sets minReplicas and maxReplicas.
func (b *MergeBuilder) Pods(minimum, maximum int32) *MergeBuilder {
	b.job.Spec.MinReplicas, b.job.Spec.MaxReplicas = minimum, maximum
	return b
}

// GPUs has each pod ask for n GPUs.
func (b *MergeBuilder) GPUs(n int64) *MergeBuilder {
	gpus := corev1.ResourceList{GPUResource: *resource.NewQuantity(n, resource.DecimalSI)}
	b.job.Spec.Template.Spec.Containers[0].Resources.Limits = gpus
	return b
}

// Asks has each pod ask for CPU and memory, as a tier that is Guaranteed wants it.
func (b *MergeBuilder) Asks(cpu, memory string) *MergeBuilder {
	b.job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}
	return b
}

// Nodes has the pods run on the nodes of a scenario.
func (b *MergeBuilder) Nodes(label string) *MergeBuilder {
	b.job.Spec.Template.Spec.NodeSelector = map[string]string{PoolLabel: label}
	return b
}

// Pool sets the Queue.
func (b *MergeBuilder) Pool(queue string) *MergeBuilder {
	b.job.Spec.Pool = queue
	return b
}

// Store sets the store.
func (b *MergeBuilder) Store(store v1beta1.ModelStore) *MergeBuilder {
	b.job.Spec.Store = store
	return b
}

// Backoff sets the back-off.
func (b *MergeBuilder) Backoff(seconds int32) *MergeBuilder {
	b.job.Spec.BackoffSeconds = ptr.To(seconds)
	return b
}

// MergePod is the name of pod i of a merge.
func MergePod(merge string, i int) string { return merge + "-merge-" + strconv.Itoa(i) }

// FetchMerge returns a function that reads a MergeJob, for Eventually and Consistently.
func (s *Scenario) FetchMerge(name string) func() (*v1beta1.MergeJob, error) {
	return func() (*v1beta1.MergeJob, error) {
		o := &v1beta1.MergeJob{}
		return o, s.Client.Get(s.ctx, s.key(name), o)
	}
}

// ReadMerge reads a MergeJob once.
func (s *Scenario) ReadMerge(name string) *v1beta1.MergeJob {
	s.t.Helper()
	return Get(s, &v1beta1.MergeJob{}, name)
}

// MergePods lists the pods of a merge by index; those that leave do not count.
func (s *Scenario) MergePods(ctx context.Context, merge string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := s.Client.List(ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{v1beta1.LabelMerge: merge})
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(indexOf(&a), indexOf(&b)) })
	return pods, err
}

// ExitMerge has the pods of a merge that run end with exit code 0.
func (s *Scenario) ExitMerge(ctx context.Context, merge string) error {
	return s.EndMerge(ctx, merge, `{"status":{"phase":"Succeeded"}}`)
}

// EndMerge gives the pods of a merge that run the status with which they end.
func (s *Scenario) EndMerge(ctx context.Context, merge, status string) error {
	pods, err := s.MergePods(ctx, merge)
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning {
			if err := s.Client.Status().Patch(ctx, &pods[i], client.RawPatch(types.MergePatchType, []byte(status))); err != nil {
				return err
			}
		}
	}
	return err
}

// SummarizeMerge says how a merge stands, in a few lines.
func SummarizeMerge(job *v1beta1.MergeJob) string {
	st := &job.Status
	var b strings.Builder
	fmt.Fprintf(&b, "merge %s: %q, reason %q: %s\n  run %+v\n", job.Name, st.Summary, st.Reason, st.Message, st.Run)
	for _, r := range st.History {
		fmt.Fprintf(&b, "  %s %s: %s\n", r.Run, r.Outcome, r.Message)
	}
	for _, c := range st.Conditions {
		fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}
