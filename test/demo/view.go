package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// sample is a job of config/samples.
type sample struct {
	// file is its path from the root of the repository.
	file                       string
	name, namespace            string
	minimum, maximum, cooldown int32
}

func readSample(root, file string) (sample, error) {
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return sample{}, err
	}
	job := &v1beta1.ElasticTrainingJob{}
	if err := yaml.UnmarshalStrict(content, job); err != nil {
		return sample{}, fmt.Errorf("read %s: %w", file, err)
	}
	s := sample{
		file: file, name: job.Name, namespace: job.Namespace, minimum: job.Spec.MinReplicas, maximum: job.Spec.MaxReplicas,
	}
	if c := job.Spec.Elasticity.Growth.CooldownSeconds; c != nil {
		s.cooldown = *c
	}
	return s, nil
}

// view is what the cluster's watches have told of one namespace, by name.
type view struct {
	jobs   map[string]*v1beta1.ElasticTrainingJob
	pods   map[string]*corev1.Pod
	events map[string]*eventsv1.Event
}

func newView() view {
	return view{
		jobs: map[string]*v1beta1.ElasticTrainingJob{}, pods: map[string]*corev1.Pod{}, events: map[string]*eventsv1.Event{},
	}
}

// clone copies the maps; nobody changes the objects.
func (v view) clone() view {
	return view{jobs: maps.Clone(v.jobs), pods: maps.Clone(v.pods), events: maps.Clone(v.events)}
}

func (v view) put(object any) {
	switch o := object.(type) {
	case *v1beta1.ElasticTrainingJob:
		v.jobs[o.Name] = o
	case *corev1.Pod:
		v.pods[o.Name] = o
	case *eventsv1.Event:
		v.events[o.Name] = o
	}
}

func (v view) drop(object any) {
	switch o := object.(type) {
	case *v1beta1.ElasticTrainingJob:
		delete(v.jobs, o.Name)
	case *corev1.Pod:
		delete(v.pods, o.Name)
	case *eventsv1.Event:
		delete(v.events, o.Name)
	}
}

// existing lists the worker pods of a job.
func (v view) existing(job string) []string {
	return v.workers(job, func(*corev1.Pod) bool { return true })
}

// placed lists the worker pods of a job that hold a node, whose GPU nobody else can have.
func (v view) placed(job string) []string {
	return v.workers(job, func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil &&
			pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
	})
}

func (v view) workers(job string, that func(*corev1.Pod) bool) []string {
	var names []string
	for name, pod := range v.pods {
		if pod.Labels[v1beta1.LabelJob] == job && that(pod) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// core is the job's core by the pods it has now.
func (v view) core(job sample) map[types.UID]bool {
	core := map[types.UID]bool{}
	for _, name := range v.existing(job.name) {
		if pod := v.pods[name]; pod.Labels[v1beta1.LabelPart] == v1beta1.PartCore {
			core[pod.UID] = true
		}
	}
	return core
}

// cooldown is the job's cooldown in seconds as the API server stored it, defaults included.
func (v view) cooldown(job sample) int32 {
	if o := v.jobs[job.name]; o != nil && o.Spec.Elasticity.Growth.CooldownSeconds != nil {
		return *o.Spec.Elasticity.Growth.CooldownSeconds
	}
	return 0
}

// told lists the reasons of a job's events.
func (v view) told(job sample) []string {
	var reasons []string
	for _, e := range v.events {
		if e.Regarding.Kind == v1beta1.ElasticTrainingJobKind && e.Regarding.Name == job.name {
			reasons = append(reasons, e.Reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// goal is something that the story waits for.
type goal = goalOf[view]

// ofJob is a goal about a job's status.
func ofJob(job sample, what string, met func(*v1beta1.ElasticTrainingJobStatus) bool) goal {
	return goal{job.name + " " + what, func(v view) (bool, string) {
		o, ok := v.jobs[job.name]
		if !ok {
			return false, "there is no job " + job.name
		}
		st := &o.Status
		return met(st), fmt.Sprintf("it is %s with %s workers (%s): %s", st.Phase, st.Summary, st.Reason, st.Message)
	}}
}

func fullSize(job sample) goal {
	return ofJob(job, fmt.Sprintf("has %d ready workers", job.maximum), func(st *v1beta1.ElasticTrainingJobStatus) bool {
		return st.ReadyReplicas == job.maximum
	})
}

func trains(job sample) goal {
	return ofJob(job, "trains", func(st *v1beta1.ElasticTrainingJobStatus) bool { return st.Phase == v1beta1.PhaseRunning })
}

func succeeded(job sample) goal {
	return ofJob(job, "succeeds", func(st *v1beta1.ElasticTrainingJobStatus) bool { return st.Phase == v1beta1.PhaseSucceeded })
}

// told is the goal that a job has so many events of a reason.
func told(job sample, reason string, times int) goal {
	return goal{fmt.Sprintf("%s has %d events %s", job.name, times, reason), func(v view) (bool, string) {
		events := v.told(job)
		return count(events, reason) >= times, "it has the events " + strings.Join(events, ", ")
	}}
}

func count(words []string, word string) int {
	return len(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w != word }))
}

// unharmed returns an error if the job lost a worker of its core, or counted a restart.
func unharmed(v view, job sample, core map[types.UID]bool) error {
	switch now := v.core(job); {
	case len(core) != int(job.minimum):
		return fmt.Errorf("%s had a core of %d workers, not of %d", job.name, len(core), job.minimum)
	case !maps.Equal(core, now):
		return fmt.Errorf("the core of %s changed its pods: it was %v and is %v", job.name, core, now)
	}
	if restarts := v.jobs[job.name].Status.Restarts; restarts != 0 {
		return fmt.Errorf("%s counted %d restarts, though nobody lost a worker", job.name, restarts)
	}
	return nil
}
