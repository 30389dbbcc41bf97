package testutil

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Summary says how a job stands, in a few lines.
func Summary(job *v1beta1.ElasticTrainingJob) string {
	st := job.Status
	var b strings.Builder
	fmt.Fprintf(&b, "job %s: phase %q, workers %q, restarts %d, reason %q: %s\n",
		job.Name, st.Phase, st.Summary, st.Restarts, st.Reason, st.Message)
	for _, c := range st.Conditions {
		fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	if e := st.Elasticity; e != nil {
		fmt.Fprintf(&b, "  gave way to %v: %v, last at %v\n", e.GaveWayTo, e.Evicted, e.LastEvictionTime)
	}
	return b.String()
}

// describe says how everything in the namespace stands, for the report of a failed test.
func (s *Scenario) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "namespace %s at the end:\n", s.Namespace)
	jobs, merges := &v1beta1.ElasticTrainingJobList{}, &v1beta1.MergeJobList{}
	pods, groups, events := &corev1.PodList{}, &schedulingv1beta1.PodGroupList{}, &eventsv1.EventList{}
	for _, list := range []client.ObjectList{jobs, merges, pods, groups, events} {
		if err := s.Client.List(s.ctx, list, client.InNamespace(s.Namespace)); err != nil {
			fmt.Fprintf(&b, "cannot list %T: %v\n", list, err)
		}
	}
	for i := range jobs.Items {
		b.WriteString(Summary(&jobs.Items[i]))
	}
	for i := range merges.Items {
		b.WriteString(SummarizeMerge(&merges.Items[i]))
	}
	for _, p := range pods.Items {
		fmt.Fprintf(&b, "pod %s %s on %q, created %s, deleted %v\n", p.Name, p.Status.Phase, p.Spec.NodeName,
			p.CreationTimestamp.Format("15:04:05"), p.DeletionTimestamp)
	}
	for _, g := range groups.Items {
		fmt.Fprintf(&b, "PodGroup %s %s: %d running, min %d; %v\n", g.Name, g.Status.Phase, g.Status.Running, g.Spec.MinMember,
			g.Status.Conditions)
	}
	slices.SortFunc(events.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	for _, e := range events.Items {
		if e.ReportingController == "tideline" {
			fmt.Fprintf(&b, "event %s on %s: %s: %s\n", e.EventTime.Format("15:04:05.0"), e.Regarding.Name, e.Reason, e.Note)
		}
	}
	if s.Audit == nil {
		return b.String()
	}
	if requests, err := s.Audit.Select(Write); err == nil {
		b.WriteString("writes:\n")
		for _, r := range requests {
			fmt.Fprintf(&b, "  %s by %s\n", r, r.User[strings.LastIndexByte(r.User, ':')+1:])
		}
	}
	return b.String()
}

// Remains lists what exists in a namespace of the kinds that jobs consist of, as "Pod a-worker-0". Definitions that are not
// installed have no objects.
func (w *World) Remains(ctx context.Context, namespace string) ([]string, error) {
	var remains []string
	for kind, list := range map[string]client.ObjectList{
		v1beta1.ElasticTrainingJobKind: &v1beta1.ElasticTrainingJobList{},
		v1beta1.MergeJobKind:           &v1beta1.MergeJobList{},
		"Pod":                          &corev1.PodList{},
		"Service":                      &corev1.ServiceList{},
		"PodGroup":                     &schedulingv1beta1.PodGroupList{},
	} {
		if err := w.Client.List(ctx, list, client.InNamespace(namespace)); err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
		for _, name := range namesIn(list) {
			remains = append(remains, kind+" "+name)
		}
	}
	return remains, nil
}

// namesIn lists the names of the objects of a list.
func namesIn(list client.ObjectList) []string {
	var names []string
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if object, ok := o.(client.Object); ok {
			names = append(names, object.GetName())
		}
		return nil
	})
	return names
}
