package testutil

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// workers are the pods of the jobs in a namespace, as kubelets, schedulers and users deal with them.
type workers struct{ admin }

// WorkerName is the name of worker i's pod.
func WorkerName(job string, i int) string { return job + "-worker-" + strconv.Itoa(i) }

// Pods lists every pod of a job's name, by index, those of an earlier job and those that are leaving included.
func (w *workers) Pods(job string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := w.Client.List(w.ctx, list, client.InNamespace(w.Namespace), client.MatchingLabels{v1beta1.LabelJob: job})
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(indexOf(&a), indexOf(&b)) })
	return list.Items, err
}

func indexOf(pod *corev1.Pod) int {
	i, err := strconv.Atoi(pod.Labels[v1beta1.LabelWorkerIndex])
	if err != nil {
		return -1
	}
	return i
}

// Workers returns a function that lists the indices of the job's workers that the conditions hold for, for Eventually and
// Consistently. Pods that are leaving do not count.
func (w *workers) Workers(job string, conditions ...func(*corev1.Pod) bool) func() ([]int, error) {
	return func() ([]int, error) {
		pods, err := w.Pods(job)
		indices := []int{}
		for i := range pods {
			p := &pods[i]
			if p.DeletionTimestamp == nil && !slices.ContainsFunc(conditions, func(c func(*corev1.Pod) bool) bool { return !c(p) }) {
				indices = append(indices, indexOf(p))
			}
		}
		return indices, err
	}
}

// Running holds for pods whose containers run.
func Running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

// Bound holds for pods that have a node.
func Bound(p *corev1.Pod) bool { return p.Spec.NodeName != "" }

// Waiting holds for pods that have no node.
func Waiting(p *corev1.Pod) bool { return !Bound(p) }

// UIDs returns the UIDs of the job's workers that are not leaving, by index: who keeps its UID was not created anew.
func (w *workers) UIDs(job string) map[int]types.UID {
	w.t.Helper()
	pods, err := w.Pods(job)
	w.must(err, "list the pods of "+job)
	uids := map[int]types.UID{}
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			uids[indexOf(&pods[i])] = pods[i].UID
		}
	}
	return uids
}

// Worker reads worker i's pod.
func (w *workers) Worker(job string, i int) *corev1.Pod {
	w.t.Helper()
	return get(&w.admin, &corev1.Pod{}, w.pod(job, i).Name)
}

// DeleteWorker deletes worker i's pod, as a user does.
func (w *workers) DeleteWorker(job string, i int) {
	w.t.Helper()
	w.Delete(w.pod(job, i))
}

// Evict evicts worker i's pod, as a drain or a scheduler does: with a condition that says so, and then a deletion.
func (w *workers) Evict(job string, i int) {
	w.t.Helper()
	pod := w.Worker(job, i)
	w.announce(pod, corev1.PodReasonPreemptionByScheduler)
	w.Delete(pod)
}

// announce writes on a pod why it is about to be deleted.
func (w *workers) announce(pod *corev1.Pod, reason string) {
	w.t.Helper()
	// Without a time, Kubernetes would take the announcement for one that came to nothing long ago, and take it back.
	patch := client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":%q,"lastTransitionTime":%q}]}}`,
		reason, time.Now().UTC().Format(time.RFC3339)))
	w.must(w.Client.Status().Patch(w.ctx, pod, patch), "announce the end of "+pod.Name)
}

// holder is a finalizer that keeps a deleted pod's object, as one who collects logs does.
const holder = "tideline.io/test-held"

// Hold keeps the object of worker i's pod from going before Release, even if the pod is deleted.
func (w *workers) Hold(job string, i int) {
	w.t.Helper()
	w.Patch(w.pod(job, i), fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, holder))
}

// Release lets the object of worker i's pod go.
func (w *workers) Release(job string, i int) {
	w.t.Helper()
	w.Patch(w.pod(job, i), `{"metadata":{"finalizers":null}}`)
}

// pod names worker i's pod: by its label where a job has roles, which are part of its pods' names.
func (w *workers) pod(job string, i int) *corev1.Pod {
	w.t.Helper()
	name := WorkerName(job, i)
	pods, err := w.Pods(job)
	w.must(err, "list the pods of "+job)
	for p := range pods {
		if pods[p].Labels[v1beta1.LabelRole] != "" && indexOf(&pods[p]) == i {
			name = pods[p].Name
		}
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
}

// Succeed ends worker i with exit code 0.
func (w *workers) Succeed(job string, i int) {
	w.t.Helper()
	w.setStatus(job, i, corev1.PodSucceeded, `{"type":"Ready","status":"False","reason":"PodCompleted"}`, terminated(0, ""))
}

// SucceedAll ends every worker of a job with exit code 0, worker 0 last.
func (w *workers) SucceedAll(job string) {
	w.t.Helper()
	running, err := w.Workers(job, Running)()
	w.must(err, "list the workers of "+job)
	slices.Reverse(running)
	for _, i := range running {
		w.Succeed(job, i)
	}
}

// Fail ends worker i with an exit code other than 0 and last words.
func (w *workers) Fail(job string, i int, exitCode int, lastWords string) {
	w.t.Helper()
	w.setStatus(job, i, corev1.PodFailed, `{"type":"Ready","status":"False","reason":"PodFailed"}`, terminated(exitCode, lastWords))
}

func terminated(exitCode int, message string) string {
	reason := "Error"
	if exitCode == 0 {
		reason = "Completed"
	}
	return fmt.Sprintf(`{"terminated":{"exitCode":%d,"reason":%q,"message":%s}}`, exitCode, reason, inJSON(message))
}

// inJSON quotes any text, also one that Go quotes in another way.
func inJSON(text string) []byte {
	quoted, _ := json.Marshal(text) // A string cannot fail to be written.
	return quoted
}

// setStatus changes a pod's phase, conditions and the state of the container trainer.
func (w *workers) setStatus(job string, i int, phase corev1.PodPhase, conditions, state string) {
	w.t.Helper()
	fields := []string{fmt.Sprintf(`"phase":%q,"conditions":[%s]`, phase, conditions)}
	if state != "" {
		fields = append(fields, fmt.Sprintf(
			`"containerStatuses":[{"name":"trainer","image":"trainer","imageID":"","ready":false,"restartCount":0,"state":%s}]`, state))
	}
	w.PatchStatus(job, i, strings.Join(fields, ","))
}

// PatchStatus merges fields into the status of worker i's pod, as a kubelet does. They are the inner of a JSON object.
func (w *workers) PatchStatus(job string, i int, fields string) {
	w.t.Helper()
	pod := w.pod(job, i)
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{`+fields+`}}`))
	w.must(w.Client.Status().Patch(w.ctx, pod, patch), fmt.Sprintf("set %s of %s", fields, pod.Name))
}
