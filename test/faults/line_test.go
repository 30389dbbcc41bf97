package faults

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// mergeRecord is what watches told of the MergeJobs of an environment and of their pods, every change of them.
type mergeRecord struct {
	mu    sync.Mutex
	jobs  map[string]*v1beta1.MergeJob
	pods  map[types.UID]*corev1.Pod
	runs  []begunRun
	wrong []string
}

// begunRun is a run of a merge.
type begunRun struct{ merge, id string }

// recordMerges watches the merges of the environment past its proxy, until the run ends.
func (env *environment) recordMerges() *mergeRecord {
	r := &mergeRecord{jobs: map[string]*v1beta1.MergeJob{}, pods: map[types.UID]*corev1.Pod{}}
	env.watch(r.see, &v1beta1.MergeJobList{}, &corev1.PodList{})
	return r
}

// watch watches what is in the namespace past its proxy, until the run ends.
func (env *environment) watch(see func(watch.Event), lists ...client.ObjectList) {
	for _, list := range lists {
		w, err := env.Client.Watch(env.t.Context(), list, client.InNamespace(env.Namespace))
		env.Expect(err).NotTo(HaveOccurred(), "the namespace is watched")
		var watching sync.WaitGroup
		watching.Go(func() {
			for e := range w.ResultChan() {
				see(e)
			}
		})
		env.t.Cleanup(func() { w.Stop(); watching.Wait() })
	}
}

func (r *mergeRecord) see(e watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o := e.Object.(type) {
	case *v1beta1.MergeJob:
		r.seeJob(o, e.Type == watch.Deleted)
	case *corev1.Pod:
		r.seePod(o, e.Type == watch.Deleted)
	default:
		r.wrong = append(r.wrong, fmt.Sprintf("a watch ended: %v", e.Object))
	}
}

// seeJob holds a change of a merge to what must be at all times: one asks at a time, and runs follow one another.
func (r *mergeRecord) seeJob(job *v1beta1.MergeJob, gone bool) {
	before := r.jobs[job.Name]
	if r.jobs[job.Name] = job; gone {
		delete(r.jobs, job.Name)
		return
	}
	run := job.Status.Run
	if run == nil {
		return
	}
	if begun := (begunRun{job.Name, run.ID}); !slices.Contains(r.runs, begun) {
		r.runs = append(r.runs, begun)
	}
	if before != nil && before.UID == job.UID && before.Status.Run != nil {
		switch was := before.Status.Run; {
		case was.ID != run.ID && (was.Outcome == "" || was.Outcome == v1beta1.OutcomeWithdrawn):
			r.wrong = append(r.wrong, fmt.Sprintf("run %s of %s began before %s was over", run.ID, job.Name, was.ID))
		case was.ID == run.ID && (run.Attempt < was.Attempt || run.Attempt > was.Attempt+1):
			r.wrong = append(r.wrong, fmt.Sprintf("attempt %d of %s came after %d", run.Attempt, job.Name, was.Attempt))
		}
	}
	var asking []string
	for name, other := range r.jobs {
		if run := other.Status.Run; run != nil && run.Outcome == "" && run.PlaceTime == nil {
			asking = append(asking, name)
		}
	}
	if len(asking) > 1 {
		r.wrong = append(r.wrong, fmt.Sprintf("%q ask at once", asking))
	}
}

// seePod holds a change of a pod to what must be at all times: all pods of a merge are of one attempt, those that leave included.
func (r *mergeRecord) seePod(pod *corev1.Pod, gone bool) {
	merge, attempt := pod.Labels[v1beta1.LabelMerge], pod.Labels[v1beta1.LabelAttempt]
	if merge == "" {
		return
	}
	if r.pods[pod.UID] = pod; gone {
		delete(r.pods, pod.UID)
		return
	}
	for _, other := range r.pods {
		if other.Labels[v1beta1.LabelMerge] == merge && other.Labels[v1beta1.LabelAttempt] != attempt {
			r.wrong = append(r.wrong, fmt.Sprintf("pod %s of attempt %s beside %s of %s", pod.Name, attempt, other.Name,
				other.Labels[v1beta1.LabelAttempt]))
		}
	}
}

// told returns the runs in the order in which they began, and what must never have been.
func (r *mergeRecord) told() (runs []begunRun, wrong []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.runs), slices.Clone(r.wrong)
}

// keepsTheLine checks that the merges of the story had the runs they must have, in the order of the line, and left nothing.
func (env *environment) keepsTheLine() {
	runs, wrong := env.merges.told()
	env.Expect(wrong).To(BeEmpty(), "one asks at a time, and has one attempt at a time")
	var merges []string
	for _, run := range runs {
		merges = append(merges, run.merge)
	}
	env.Expect(merges).To(Equal(env.story.runs), "no run is missing, none is made twice, and nobody loses a place")
	env.Eventually(func() ([]string, error) {
		maps := &corev1.ConfigMapList{}
		err := env.Client.List(env.t.Context(), maps, client.InNamespace(env.Namespace), client.HasLabels{v1beta1.LabelMerge})
		var names []string
		for _, m := range maps.Items {
			names = append(names, m.Name)
		}
		return names, err
	}).Should(BeEmpty(), "no list of increments is left")
}

// describeMerges writes the statuses of all merges, with the runs numbered as they began.
func (env *environment) describeMerges(b *strings.Builder) error {
	if env.merges == nil {
		return nil
	}
	merges := &v1beta1.MergeJobList{}
	if err := env.Client.List(env.t.Context(), merges, client.InNamespace(env.Namespace)); err != nil {
		return err
	}
	runs, _ := env.merges.told()
	for i := range merges.Items {
		status, err := json.Marshal(merges.Items[i].Status)
		if err != nil {
			return err
		}
		for n, run := range runs {
			status = []byte(strings.ReplaceAll(string(status), run.id, fmt.Sprintf("run-%d", n+1)))
		}
		status = writtenTime.ReplaceAll(status, []byte(someTime.UTC().Format("2006-01-02T15:04:05Z")))
		status = duration.ReplaceAll(status, []byte(" in some time"))
		lines, err := yaml.JSONToYAML(status)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "MergeJob %s:\n%s", merges.Items[i].Name, lines)
	}
	return nil
}

// What differs between two runs in the status of a merge: times, and how long a run took.
var (
	writtenTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|\+00:00)`)
	duration    = regexp.MustCompile(` in (\d+m)?\d+s`)
)
