package pytorchjob

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/cli/convert"
	"github.com/tideline-io/tideline/test/testutil"
)

// side is a namespace in which a PyTorchJob runs, by training-operator or, converted, by Tideline.
type side struct {
	*testutil.Scenario
	// ours is whether Tideline runs it.
	ours bool
	// given is the PyTorchJob.
	given *kubeflowv1.PyTorchJob
}

// submit gives a job to both, each on nodes of its own with so many GPUs.
func submit(job *kubeflowv1.PyTorchJob, gpus int64) (theirs, ours *side) {
	GinkgoHelper()
	theirs = &side{Scenario: shared.World.NewScenario(GinkgoT(), "theirs", gpus), given: job}
	ours = &side{Scenario: shared.World.NewScenario(GinkgoT(), "ours", gpus), given: job, ours: true}
	theirs.Create(inPool(job, theirs.Namespace))
	DeferCleanup(func() { // before the scenario's pods, which training-operator would create anew
		theirs.Delete(&kubeflowv1.PyTorchJob{ObjectMeta: inPool(job, theirs.Namespace).ObjectMeta})
	})
	ours.Create(converted(inPool(job, ours.Namespace)))
	return theirs, ours
}

// converted is what `tideline convert` prints for a job.
func converted(job *kubeflowv1.PyTorchJob) *v1beta1.ElasticTrainingJob {
	GinkgoHelper()
	written, err := yaml.Marshal(job)
	Expect(err).NotTo(HaveOccurred())
	var stdout, stderr bytes.Buffer
	program, args := cli.Root("tideline", convert.Command()), []string{"convert", "-f", "-"}
	code := cli.Execute(context.Background(), program, args, bytes.NewReader(written), &stdout, &stderr)
	Expect(code).To(BeZero(), stderr.String())
	result := &v1beta1.ElasticTrainingJob{}
	Expect(yaml.UnmarshalStrict(stdout.Bytes(), result)).To(Succeed())
	return result
}

// rank is the node rank that training-operator gives the pod, or the index that Tideline does.
func (s *side) rank(pod *corev1.Pod) int {
	label := kubeflowv1.ReplicaIndexLabel
	if s.ours {
		label = v1beta1.LabelWorkerIndex
	}
	i, err := strconv.Atoi(pod.Labels[label])
	if err != nil {
		return -1
	}
	if !s.ours && pod.Labels[kubeflowv1.ReplicaTypeLabel] == lower(worker) && s.given.Spec.PyTorchReplicaSpecs[master] != nil {
		i++
	}
	return i
}

// pods are those that are not leaving, by rank.
func (s *side) pods() (map[int]*corev1.Pod, error) { return s.PodsByRank(s.rank) }

// pod is the pod of a rank, which must be there.
func (s *side) pod(rank int) *corev1.Pod {
	GinkgoHelper()
	byRank, err := s.pods()
	Expect(err).NotTo(HaveOccurred())
	Expect(byRank).To(HaveKey(rank))
	return byRank[rank]
}

// uids are those of the pods by rank: who keeps its UID was not created anew.
func (s *side) uids() map[int]types.UID {
	GinkgoHelper()
	byRank, err := s.pods()
	Expect(err).NotTo(HaveOccurred())
	uids := map[int]types.UID{}
	for rank, pod := range byRank {
		uids[rank] = pod.UID
	}
	return uids
}

// running lists the ranks whose pods run, once the job says that it runs.
func (s *side) running() ([]int, error) {
	byRank, err := s.pods()
	maps.DeleteFunc(byRank, func(_ int, p *corev1.Pod) bool { return !testutil.Running(p) })
	if state, stateErr := s.state(); err != nil || stateErr != nil || state != runs {
		return nil, err
	}
	return slices.Sorted(maps.Keys(byRank)), err
}

// How a job stands.
const (
	waits     = "waits"
	runs      = "goes on"
	failed    = "failed"
	succeeded = "succeeded"
	suspended = "suspended"
	gone      = "gone"
)

// state is how the job stands.
func (s *side) state() (string, error) {
	state := s.theirState
	if s.ours {
		state = s.ourState
	}
	words, err := state()
	if apierrors.IsNotFound(err) {
		return gone, nil
	}
	return words, err
}

func (s *side) ourState() (string, error) {
	job, err := s.Fetch(jobName)()
	return map[v1beta1.JobPhase]string{
		"": waits, v1beta1.PhasePending: waits, v1beta1.PhaseRunning: runs, v1beta1.PhaseSuspended: suspended,
		v1beta1.PhaseSucceeded: succeeded, v1beta1.PhaseFailed: failed,
	}[job.Status.Phase], err
}

func (s *side) theirState() (string, error) {
	job := &kubeflowv1.PyTorchJob{}
	err := s.Client.Get(s.Context(), client.ObjectKey{Namespace: s.Namespace, Name: jobName}, job)
	is := func(conditions ...kubeflowv1.JobConditionType) bool {
		return slices.ContainsFunc(job.Status.Conditions, func(c kubeflowv1.JobCondition) bool {
			return c.Status == corev1.ConditionTrue && slices.Contains(conditions, c.Type)
		})
	}
	switch {
	case is(kubeflowv1.JobFailed):
		return failed, err
	case is(kubeflowv1.JobSucceeded):
		return succeeded, err
	case is(kubeflowv1.JobSuspended):
		return suspended, err
	case is(kubeflowv1.JobRunning, kubeflowv1.JobRestarting):
		return runs, err
	}
	return waits, err
}

// outcome says how the job stands, and what became of the pods that it had before.
func (s *side) outcome(before map[int]types.UID) (string, error) {
	words, err := s.state()
	if err != nil {
		return "", err
	}
	now, err := s.pods()
	if err != nil {
		return "", err
	}
	if words != waits && words != runs {
		left, err := s.left(now)
		return words + "; left: " + left, err
	}
	var anew, missing []int
	for rank, uid := range before {
		switch pod := now[rank]; {
		case pod == nil || pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodFailed:
			missing = append(missing, rank)
		case pod.UID != uid:
			anew = append(anew, rank)
		}
	}
	return words + ranks("; new pods: ", anew) + ranks("; not running: ", missing), nil
}

// ranks are words and the ranks that they are about, or nothing if there are none.
func ranks(words string, of []int) string {
	if len(of) == 0 {
		return ""
	}
	slices.Sort(of)
	return words + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(of), "[]")), ", ")
}

// left says what exists of a job beside itself.
func (s *side) left(pods map[int]*corev1.Pod) (string, error) {
	var words []string
	if len(pods) > 0 {
		words = append(words, ranks("pods ", slices.Collect(maps.Keys(pods))))
	}
	services, groups := &corev1.ServiceList{}, &schedulingv1beta1.PodGroupList{}
	in := client.InNamespace(s.Namespace)
	if err := s.Client.List(s.Context(), services, in); err != nil {
		return "", err
	}
	if err := s.Client.List(s.Context(), groups, in); err != nil {
		return "", err
	}
	if len(services.Items) > 0 {
		words = append(words, "Services")
	}
	if len(groups.Items) > 0 {
		words = append(words, "PodGroup")
	}
	if len(words) == 0 {
		return "nothing", nil
	}
	return strings.Join(words, ", "), nil
}

// exit does what a kubelet does when a pod's training container exits with last words: it starts the container again where the
// pod's restartPolicy says so, else the pod has ended.
func (s *side) exit(rank, code int, words string) {
	GinkgoHelper()
	pod := s.pod(rank)
	reason, phase, policy := "Error", corev1.PodFailed, pod.Spec.RestartPolicy
	if code == 0 {
		reason, phase = "Completed", corev1.PodSucceeded
	}
	again := policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && code != 0
	last := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, Message: words,
	}}
	for i := range pod.Status.ContainerStatuses {
		switch c := &pod.Status.ContainerStatuses[i]; {
		case !trains(c.Name):
		case again:
			c.RestartCount, c.LastTerminationState = c.RestartCount+1, last
		default:
			c.State, c.Ready, pod.Status.Phase = last, false, phase
		}
	}
	s.setStatus(pod, map[string]any{"phase": pod.Status.Phase, "containerStatuses": pod.Status.ContainerStatuses})
}

// termination is how long containers take to end; the simulated kubelet would not take any time.
const termination = time.Second

// remove deletes a pod, as somebody does.
func (s *side) remove(rank int) {
	GinkgoHelper()
	pod := s.pod(rank)
	s.Patch(pod, `{"metadata":{"finalizers":["tideline.io/test-termination"]}}`)
	s.Delete(pod)
	Consistently(s.Client.Get).WithArguments(s.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{}).
		WithTimeout(termination).Should(Succeed(), "the pod is there until its containers have ended")
	s.Patch(pod, `{"metadata":{"finalizers":null}}`)
}

func (s *side) setStatus(pod *corev1.Pod, status map[string]any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"status": status})
	Expect(err).NotTo(HaveOccurred())
	Expect(s.Client.Status().Patch(s.Context(), pod, client.RawPatch(types.StrategicMergePatchType, patch))).To(Succeed())
}

// found is the pod to which the cluster's DNS leads who asks for a host of the namespace: a Service of one pod, or a pod's host
// name within a Service.
func (s *side) found(host string) (string, error) {
	names := strings.SplitN(host, ".", 3)
	service, hostname := names[0], ""
	if len(names) > 1 {
		hostname, service = names[0], names[1]
	}
	list := &discoveryv1.EndpointSliceList{}
	err := s.Client.List(s.Context(), list, client.InNamespace(s.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: service})
	var pods []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if ptr.Deref(e.Hostname, "") == hostname && len(e.Addresses) > 0 {
				pods = append(pods, e.TargetRef.Name)
			}
		}
	}
	return strings.Join(pods, ", "), err
}

// suspend stops the job.
func (s *side) suspend() {
	GinkgoHelper()
	var job client.Object = &kubeflowv1.PyTorchJob{}
	patch := `{"spec":{"runPolicy":{"suspend":true}}}`
	if s.ours {
		job, patch = &v1beta1.ElasticTrainingJob{}, `{"spec":{"suspend":true}}`
	}
	job.SetNamespace(s.Namespace)
	job.SetName(jobName)
	s.Patch(job, patch)
}
