package faults

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// snapshot says line by line what there is of jobs, without times, UIDs and the environment's name, so that the ends of two runs
// can be compared: every pod, PodGroup, Service, Ingress, ConfigMap, Secret and NetworkPolicy of their namespace, the statuses of
// all jobs and merges, and of what the environment has outside of the namespace: profiles, their Queues, what holds room for
// them, PriorityClasses, reports.
func (env *environment) snapshot() ([]string, error) {
	var b strings.Builder
	for _, describe := range []func(*strings.Builder) error{
		env.describePods, env.describeGroups, env.describeServices, env.describePages, env.describeConfigMaps, env.describeUnread,
		env.describeStatuses, env.describeMerges, env.describeTeams, env.describeClasses, env.describeReports,
	} {
		if err := describe(&b); err != nil {
			return nil, err
		}
	}
	return strings.Split(env.nameless(b.String()), "\n"), nil
}

// nameless has the same words in every environment.
func (env *environment) nameless(said string) string {
	return unreadName.ReplaceAllString(strings.ReplaceAll(said, env.Namespace, "environment"), "$1")
}

// unreadName is a name without its end that follows from a UID: of Secrets, NetworkPolicies and what holds room for reservations.
var unreadName = regexp.MustCompile(`(-ssh|-isolated|environment-[a-z]+-[a-z]+)-[0-9a-f]+\b`)

func (env *environment) describePods(b *strings.Builder) error {
	pods := &corev1.PodList{}
	err := env.Client.List(env.t.Context(), pods, client.InNamespace(env.Namespace))
	describe(b, pods.Items)
	return err
}

func describe(b *strings.Builder, pods []corev1.Pod) {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range pods {
		p := &pods[i]
		leaving := ""
		if p.DeletionTimestamp != nil {
			leaving = ", leaving"
		}
		fmt.Fprintf(b, "pod %s of group %s: %s, bound %t%s\n", p.Name, p.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey],
			p.Status.Phase, testutil.Bound(p), leaving)
	}
}

func (env *environment) describeGroups(b *strings.Builder) error {
	groups := &schedulingv1beta1.PodGroupList{}
	err := env.Client.List(env.t.Context(), groups, client.InNamespace(env.Namespace))
	describeGroups(b, groups.Items)
	return err
}

func describeGroups(b *strings.Builder, groups []schedulingv1beta1.PodGroup) {
	slices.SortFunc(groups, func(a, b schedulingv1beta1.PodGroup) int { return strings.Compare(a.Name, b.Name) })
	for _, g := range groups {
		asks := resource.Quantity{}
		if g.Spec.MinResources != nil {
			asks = (*g.Spec.MinResources)[testutil.GPUResource]
		}
		fmt.Fprintf(b, "PodGroup %s: queue %s, at least %d, %s GPUs, class %s\n", g.Name, g.Spec.Queue, g.Spec.MinMember,
			asks.String(), g.Spec.PriorityClassName)
	}
}

func (env *environment) describeServices(b *strings.Builder) error {
	services := &corev1.ServiceList{}
	err := env.Client.List(env.t.Context(), services, client.InNamespace(env.Namespace))
	for _, service := range services.Items {
		fmt.Fprintf(b, "Service %s\n", service.Name)
	}
	return err
}

// describePages tells where routes to pages lead. That of a job which ended, or lost its pages, must be gone.
func (env *environment) describePages(b *strings.Builder) error {
	routes := &networkingv1.IngressList{}
	err := env.Client.List(env.t.Context(), routes, client.InNamespace(env.Namespace))
	for i := range routes.Items {
		route := &routes.Items[i]
		for _, p := range route.Spec.Rules[0].HTTP.Paths {
			fmt.Fprintf(b, "Ingress %s: %s to %s\n", route.Name, p.Path, p.Backend.Service.Name)
		}
	}
	return err
}

func (env *environment) describeConfigMaps(b *strings.Builder) error {
	maps := &corev1.ConfigMapList{}
	err := env.Client.List(env.t.Context(), maps, client.InNamespace(env.Namespace))
	for _, m := range maps.Items {
		if m.Name != "kube-root-ca.crt" { // which Kubernetes puts into every namespace
			fmt.Fprintf(b, "ConfigMap %s: %q\n", m.Name, m.Data)
		}
	}
	return err
}

// describeUnread tells no names of what the operator does not read, because they follow from UIDs.
func (env *environment) describeUnread(b *strings.Builder) error {
	secrets, policies := &corev1.SecretList{}, &networkingv1.NetworkPolicyList{}
	err := errors.Join(env.Client.List(env.t.Context(), secrets, client.InNamespace(env.Namespace)),
		env.Client.List(env.t.Context(), policies, client.InNamespace(env.Namespace)))
	for _, secret := range secrets.Items {
		fmt.Fprintf(b, "Secret of type %s\n", secret.Type)
	}
	for i := range policies.Items {
		fmt.Fprintf(b, "NetworkPolicy for %v\n", policies.Items[i].Spec.PodSelector.MatchLabels)
	}
	return err
}

func (env *environment) describeStatuses(b *strings.Builder) error {
	jobs := &v1beta1.ElasticTrainingJobList{}
	err := env.Client.List(env.t.Context(), jobs, client.InNamespace(env.Namespace))
	for i := range jobs.Items {
		err = errors.Join(err, write(b, "ElasticTrainingJob "+jobs.Items[i].Name, env.comparable(jobs.Items[i].Status)))
	}
	return err
}

// write writes something with all its fields.
func write(b *strings.Builder, title string, of any) error {
	fields, err := yaml.Marshal(of)
	fmt.Fprintf(b, "%s:\n%s", title, fields)
	return err
}

// describeTeams tells what profiles and their Queues say, and what holds room for them.
func (env *environment) describeTeams(b *strings.Builder) error {
	profiles, queues := &v1beta1.ResourceQuotaProfileList{}, &schedulingv1beta1.QueueList{}
	pods, groups := &corev1.PodList{}, &schedulingv1beta1.PodGroupList{}
	err := errors.Join(env.Client.List(env.t.Context(), profiles), env.Client.List(env.t.Context(), queues),
		env.Client.List(env.t.Context(), pods, env.rooms()...), env.Client.List(env.t.Context(), groups, env.rooms()...))
	for i := range profiles.Items {
		if p := &profiles.Items[i]; env.proxy.owns(p.Name) {
			err = errors.Join(err, write(b, "ResourceQuotaProfile "+p.Name, lasting(p.Status)))
		}
	}
	for i := range queues.Items {
		if q := &queues.Items[i]; env.proxy.owns(q.Name) {
			err = errors.Join(err, write(b, "Queue "+q.Name, q.Spec))
		}
	}
	describe(b, pods.Items)
	describeGroups(b, groups.Items)
	return err
}

// lasting is a status without times, and without what is looked at once a minute only; and without figures of what is used, which
// are held back for long, outside of the full grid.
func lasting(st v1beta1.ResourceQuotaProfileStatus) v1beta1.ResourceQuotaProfileStatus {
	st = *st.DeepCopy()
	st.Available = nil
	if !fullGrid {
		st.Used, st.Borrowed, st.Lent, st.Accelerators, st.Tiers, st.Users = nil, nil, nil, "", nil, nil
		st.Running, st.Waiting, st.AwaitingApproval = 0, 0, 0
		for i := range st.Reservations {
			st.Reservations[i].Placed = 0
		}
	}
	for i := range st.Conditions {
		st.Conditions[i].LastTransitionTime = someTime
	}
	for i := range st.Reservations {
		st.Reservations[i].Since = someTime
	}
	return st
}

// comparable is a status as it compares to that of another run. An operator that was away may have missed why workers were
// evicted, and says so; one that was there has no excuse.
func (env *environment) comparable(st v1beta1.ElasticTrainingJobStatus) v1beta1.ElasticTrainingJobStatus {
	st = timeless(st)
	if env.missed() && st.Elasticity != nil && st.Elasticity.LastEvictionReason == "Unseen" {
		st.Elasticity.LastEvictionReason = corev1.PodReasonPreemptionByScheduler
	}
	return st
}

// timeless is a status without what differs between two runs: times, UIDs, how long the job waited, and who is before it.
func timeless(st v1beta1.ElasticTrainingJobStatus) v1beta1.ElasticTrainingJobStatus {
	st = *st.DeepCopy()
	st.Message = placeInLine.ReplaceAllString(st.Message, "")
	for _, t := range []*metav1.Time{st.StartTime, st.RunningSince, st.BelowMinSince, st.MasterCompletionTime, st.CompletionTime} {
		if t != nil {
			*t = someTime
		}
	}
	if st.Attempt != nil {
		st.Attempt.StartTime = someTime
		st.Attempt.Checked = "" // The template names the environment.
	}
	if st.WaitSeconds != nil {
		*st.WaitSeconds = 0
	}
	if st.LastFailure != nil {
		st.LastFailure.Time = someTime
		if st.LastFailure.LostSince != nil {
			*st.LastFailure.LostSince = someTime
		}
	}
	if e := st.Elasticity; e != nil {
		for _, t := range []*metav1.Time{
			e.LastEvictionTime, e.LastGrowthTime, e.NextGrowthTime, e.BudgetTime, e.LastRestartTime,
		} {
			if t != nil {
				*t = someTime
			}
		}
	}
	for i := range st.RestartTimes {
		st.RestartTimes[i] = someTime
	}
	if st.Incident != nil {
		st.Incident.Time = someTime
	}
	st.ActiveSeconds = 0
	st.StrandedTime = nil
	for i := range st.Members {
		m := &st.Members[i]
		m.UID = "some"
		if m.IsStranded() {
			m.State = "" // It may have come just before worker 0 was lost, or after.
		}
	}
	for i := range st.Retries {
		st.Retries[i].Time = someTime
	}
	for i := range st.Conditions {
		st.Conditions[i].LastTransitionTime = someTime
		st.Conditions[i].Message = placeInLine.ReplaceAllString(st.Conditions[i].Message, "")
	}
	return st
}

// placeInLine is what a job says of its place in the line under a cap, which is written once a minute.
var placeInLine = regexp.MustCompile(
	` (Position \d+ in the queue for this limit, after \S+|The job starts by itself when enough is released\.)$`)

var someTime = metav1.Unix(0, 0)
