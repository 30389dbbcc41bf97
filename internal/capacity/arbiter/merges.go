package arbiter

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// merge takes in a MergeJob: its core, whose PodGroup is known already, and whether it matters that it could never fit.
func (c *collector) merge(job *v1alpha1.MergeJob) {
	key := client.ObjectKeyFromObject(job)
	c.merges[key] = job
	core := coreOf(key)
	if g, there := c.groups[core]; there && g.Owner != nil && g.Owner.UID == job.UID {
		c.in.mergeCores[core] = key
	}
	if !asksForCeiling(job) {
		return
	}
	pool, workers := job.Status.Pool, job.Spec.MinReplicas
	if pool == "" {
		pool = job.Spec.Pool
	}
	if run := job.Status.Run; run != nil && run.Outcome == "" {
		workers = run.MinReplicas
	}
	gang := &capacity.Gang{Job: key, Queue: pool, Workers: workers, Shape: c.mergeShape(job, 1)}
	switch {
	case !trainingpod.OwnMergeMaster(job):
	case workers == 1:
		gang.Shape = c.mergeShape(job, 0)
	default:
		gang.Apart = []capacity.Shape{c.mergeShape(job, 0)}
	}
	c.in.ceilings = append(c.in.ceilings, gang)
}

func (c *collector) mergeShape(job *v1alpha1.MergeJob, i int32) capacity.Shape {
	return c.admitted(job.Namespace, trainingpod.MergeSpec(job, i))
}

// asksForCeiling tells whether it matters that the merge may never fit: it stands in the line, could join it, or was set aside.
func asksForCeiling(job *v1alpha1.MergeJob) bool {
	st := &job.Status
	switch {
	case job.DeletionTimestamp != nil || job.Spec.Suspend:
		return false
	case st.Phase == v1alpha1.MergeQueued || st.Reason == v1alpha1.ReasonNeverFits:
		return true
	}
	return st.Run == nil && due(job)
}

// due tells whether the merge weighed enough for the line when its status was written.
func due(job *v1alpha1.MergeJob) bool {
	weight := job.Status.Weight
	return weight != nil && *weight >= int64(ptr.Deref(job.Spec.Threshold, v1alpha1.DefaultMergeThreshold))
}

// coreOf is the PodGroup of a merge's core. Surplus of the merge goes by that name too, because a training may have the name of
// the merge.
func coreOf(key types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: mergepod.CoreName(key.Name)}
}

// mergeSurplus tells of which merge the pod is surplus; nil for a pod that is none, and where Volcano does not let surplus give
// way: the operator tells that of merges never to leave.
func (c *collector) mergeSurplus(p *corev1.Pod) *capacity.Surplus {
	owner := metav1.GetControllerOf(p)
	if owner == nil || !c.served {
		return nil
	}
	key := types.NamespacedName{Namespace: p.Namespace, Name: owner.Name}
	job := c.merges[key]
	if job == nil || job.UID != owner.UID || job.Status.Run == nil {
		return nil
	}
	index, ok := mergepod.PodIndex(job.Name, p.Name)
	if !ok || index < job.Status.Run.MinReplicas {
		return nil
	}
	tier, _ := c.arbiter.config.Tiers.InEffect(job.Spec.Tier, job.Status.Tier)
	return &capacity.Surplus{
		Job: coreOf(key), UID: p.UID, Index: index, Tier: tier.Priority, Created: job.CreationTimestamp.Time,
	}
}

// splitMerges moves the verdicts of merges' cores out of those of all gangs, to their MergeJobs, and adds to that of a
// merge that could never fit what there would be at most.
func splitMerges(in *inputs, model *capacity.Model, judged verdicts) verdicts {
	merges := verdicts{}
	for core, job := range in.mergeCores {
		if v, ok := judged[core]; ok {
			merges[job] = v
			delete(judged, core)
		}
	}
	for _, g := range in.ceilings {
		if never := model.Ceiling(g); never != nil {
			v := merges[g.Job]
			v.Never = never
			merges[g.Job] = v
		}
	}
	return merges
}
