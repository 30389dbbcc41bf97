// Package view makes what pages of the console say from what is in the caches: for one reader, who sees the jobs of some
// namespaces by name and all others in sums only.
package view

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Model is the cluster as it was at one moment. Its objects are those of the caches: they are read and never changed.
type Model struct {
	Jobs     []*v1beta1.ElasticTrainingJob
	Merges   []*v1beta1.MergeJob
	Profiles []*v1beta1.ResourceQuotaProfile
	Nodes    []Node
}

// Node is a node with accelerators.
type Node struct {
	Name string
	// Device is the model of its accelerators; empty where no label names it.
	Device string
	// Out is true for a node that is not ready or takes no pods.
	Out bool
	// Total is how many accelerators it has, in thousandths.
	Total int64
	// Held are its accelerators that are in use, by job.
	Held []Holding
}

// Holding is what the pods of one job hold on a node.
type Holding struct {
	// Job is the job or merge; its name is empty for pods of other workloads, which are one holding for each namespace.
	Job types.NamespacedName
	// Accelerators in thousandths.
	Accelerators int64
}

// Namespaces are those with trainings or merges, in order of name, and which of them have merges.
func (m *Model) Namespaces() (all []string, merging map[string]bool) {
	there, merging := map[string]bool{}, map[string]bool{}
	for _, j := range m.Jobs {
		there[j.Namespace] = true
	}
	for _, j := range m.Merges {
		there[j.Namespace], merging[j.Namespace] = true, true
	}
	return slices.Sorted(maps.Keys(there)), merging
}

// Sight is what a reader may see, by the cluster's own rules. The zero Sight shows sums only.
type Sight struct {
	// User is the reader's name.
	User string
	// AllJobs and AllMerges are for readers who may list them in every namespace.
	AllJobs, AllMerges bool
	// Jobs and Merges are the namespaces in which the reader may list them.
	Jobs, Merges map[string]bool
	// Profiles and Nodes tell whether the reader may list those.
	Profiles, Nodes bool
	// Unasked is how many namespaces have not been asked about yet, because one page asks about a bounded number.
	Unasked int
}

// SeesJobs is true if the reader may see the trainings of a namespace by name.
func (s *Sight) SeesJobs(namespace string) bool { return s.AllJobs || s.Jobs[namespace] }

// SeesMerges is SeesJobs for merges.
func (s *Sight) SeesMerges(namespace string) bool { return s.AllMerges || s.Merges[namespace] }

// seesHolder is true if what holds accelerators may be named: a job of either kind. Other workloads never are.
func (s *Sight) seesHolder(of types.NamespacedName) bool {
	return of.Name != "" && s.SeesJobs(of.Namespace) && s.SeesMerges(of.Namespace)
}

// standing is what a job does, in the order in which lists have it.
type standing int

const (
	waiting standing = iota
	running
	ended
)

// standingOf is a job's standing. A job that was stopped waits too: for its user, or for room.
func standingOf(j *v1beta1.ElasticTrainingJob) standing {
	switch j.Status.Phase {
	case v1beta1.PhaseRunning:
		return running
	case v1beta1.PhaseSucceeded, v1beta1.PhaseFailed:
		return ended
	default:
		return waiting
	}
}

// sinceOf is since when a job has been as it is: since the last change of its conditions, or its creation.
func sinceOf(j *v1beta1.ElasticTrainingJob) time.Time {
	for _, kind := range []string{
		v1beta1.ConditionFailed, v1beta1.ConditionSucceeded, v1beta1.ConditionSuspended, v1beta1.ConditionReady,
	} {
		if c := meta.FindStatusCondition(j.Status.Conditions, kind); c != nil {
			return c.LastTransitionTime.Time
		}
	}
	return j.CreationTimestamp.Time
}

// sortJobs puts those that wait first, by queue and place; then those that run, the largest first; then those that ended, the
// last first. It changes only the order of the slice.
func sortJobs(jobs []*v1beta1.ElasticTrainingJob) {
	slices.SortFunc(jobs, func(a, b *v1beta1.ElasticTrainingJob) int {
		s := standingOf(a)
		if order := cmp.Compare(s, standingOf(b)); order != 0 {
			return order
		}
		var order int
		switch s {
		case waiting:
			order = cmp.Or(cmp.Compare(a.Status.Queue, b.Status.Queue), comparePlaces(a.Status.Place, b.Status.Place),
				a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
		case running:
			order = cmp.Compare(b.Status.Accelerators, a.Status.Accelerators)
		case ended:
			order = endOf(b).Compare(endOf(a))
		}
		return cmp.Or(order, cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func endOf(j *v1beta1.ElasticTrainingJob) time.Time {
	if t := j.Status.CompletionTime; t != nil {
		return t.Time
	}
	return time.Time{}
}

// comparePlaces orders places in a queue; 0, for a job without one, comes last.
func comparePlaces(a, b int32) int {
	switch {
	case a == b:
		return 0
	case a == 0:
		return 1
	case b == 0:
		return -1
	}
	return cmp.Compare(a, b)
}
