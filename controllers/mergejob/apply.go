package mergejob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

// step is one write for a job of a pool.
type step struct {
	doing string
	do    func(context.Context) error
}

// apply carries out the decision about one job in its order, and stops at the first problem.
func (r *Reconciler) apply(ctx context.Context, pool types.NamespacedName, d *merging.JobDecision) *kube.Problem {
	for _, s := range r.applySteps(pool, d) {
		if err := s.do(ctx); err != nil {
			return kube.ProblemOf(err, s.doing)
		}
	}
	return nil
}

func (r *Reconciler) applySteps(pool types.NamespacedName, d *merging.JobDecision) []step {
	name, namespace := d.Job.Object.Name, d.Job.Object.Namespace
	var steps []step
	add := func(doing string, do func(context.Context) error) { steps = append(steps, step{doing, do}) }
	deleted := func(kind string, o client.Object, name string, uid types.UID, options ...client.DeleteOption) {
		o.SetNamespace(namespace)
		o.SetName(name)
		o.SetUID(uid)
		add("delete "+kind+" "+name, func(ctx context.Context) error { return r.applier.Delete(ctx, pool, o, options...) })
	}
	created := func(kind string, o client.Object) {
		add("create "+kind+" "+o.GetName(), func(ctx context.Context) error { return r.applier.Create(ctx, pool, o) })
	}
	for i := range d.DeletePods {
		w := &d.DeletePods[i]
		deleted("pod", &corev1.Pod{}, mergepod.PodName(name, w.Index), w.UID, client.GracePeriodSeconds(merging.StopGraceSeconds))
	}
	for _, g := range d.DeleteGroups {
		deleted("PodGroup", gang.NewPodGroup(), g.Name, g.UID)
	}
	if d.DeleteList != "" {
		deleted("ConfigMap", &corev1.ConfigMap{}, mergepod.IncrementsName(name), d.DeleteList)
	}
	if d.CreateList != nil {
		created("ConfigMap", d.Blueprint.IncrementsMap(d.CreateList))
	}
	for _, g := range d.CreateGroups {
		created("PodGroup", g.PodGroup())
	}
	for _, restore := range d.RestoreGroups {
		add("restore PodGroup "+restore.Group.Name, func(ctx context.Context) error {
			content, err := restore.Group.RestorePatch(restore.UID)
			if err != nil {
				return err
			}
			return r.applier.Apply(ctx, pool, content, gang.NewPodGroup())
		})
	}
	for _, i := range d.CreatePods {
		created("pod", d.Blueprint.NewPod(i))
	}
	if d.CreateLast != nil {
		created("PodGroup", d.CreateLast.PodGroup())
	}
	return steps
}
