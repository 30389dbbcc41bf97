package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/test/testutil"
)

// picture says line by line what there is of jobs, without times and UIDs, so that the ends of two runs can be compared: every
// pod, PodGroup, Service, ConfigMap, Secret and NetworkPolicy of their namespace, and the statuses of the job and of all merges.
func (s *site) picture() ([]string, error) {
	var b strings.Builder
	for _, describe := range []func(*strings.Builder) error{
		s.describePods, s.describeMergePods, s.describeGroups, s.describeServices, s.describeConfigMaps, s.describeUnread,
		s.describeStatus, s.describeMerges,
	} {
		if err := describe(&b); err != nil {
			return nil, err
		}
	}
	return strings.Split(b.String(), "\n"), nil
}

func (s *site) describePods(b *strings.Builder) error {
	pods, err := s.Pods(jobName)
	describe(b, pods)
	return err
}

func (s *site) describeMergePods(b *strings.Builder) error {
	pods := &corev1.PodList{}
	err := s.Client.List(s.t.Context(), pods, client.InNamespace(s.Namespace), client.HasLabels{v1alpha1.LabelMerge})
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	describe(b, pods.Items)
	return err
}

func describe(b *strings.Builder, pods []corev1.Pod) {
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

func (s *site) describeGroups(b *strings.Builder) error {
	groups := &schedulingv1beta1.PodGroupList{}
	err := s.Client.List(s.t.Context(), groups, client.InNamespace(s.Namespace))
	slices.SortFunc(groups.Items, func(a, b schedulingv1beta1.PodGroup) int { return strings.Compare(a.Name, b.Name) })
	for _, g := range groups.Items {
		asks := resource.Quantity{}
		if g.Spec.MinResources != nil {
			asks = (*g.Spec.MinResources)[testutil.GPUResource]
		}
		fmt.Fprintf(b, "PodGroup %s: queue %s, at least %d, %s GPUs, class %s\n", g.Name, g.Spec.Queue, g.Spec.MinMember,
			asks.String(), g.Spec.PriorityClassName)
	}
	return err
}

func (s *site) describeServices(b *strings.Builder) error {
	services := &corev1.ServiceList{}
	err := s.Client.List(s.t.Context(), services, client.InNamespace(s.Namespace))
	for _, service := range services.Items {
		fmt.Fprintf(b, "Service %s\n", service.Name)
	}
	return err
}

func (s *site) describeConfigMaps(b *strings.Builder) error {
	maps := &corev1.ConfigMapList{}
	err := s.Client.List(s.t.Context(), maps, client.InNamespace(s.Namespace))
	for _, m := range maps.Items {
		if m.Name != "kube-root-ca.crt" { // which Kubernetes puts into every namespace
			fmt.Fprintf(b, "ConfigMap %s: %q\n", m.Name, m.Data)
		}
	}
	return err
}

// describeUnread tells no names of what the operator does not read, because they follow from UIDs.
func (s *site) describeUnread(b *strings.Builder) error {
	secrets, policies := &corev1.SecretList{}, &networkingv1.NetworkPolicyList{}
	err := errors.Join(s.Client.List(s.t.Context(), secrets, client.InNamespace(s.Namespace)),
		s.Client.List(s.t.Context(), policies, client.InNamespace(s.Namespace)))
	for _, secret := range secrets.Items {
		fmt.Fprintf(b, "Secret of type %s\n", secret.Type)
	}
	for i := range policies.Items {
		fmt.Fprintf(b, "NetworkPolicy for %v\n", policies.Items[i].Spec.PodSelector.MatchLabels)
	}
	return err
}

func (s *site) describeStatus(b *strings.Builder) error {
	job, err := s.Fetch(jobName)()
	if apierrors.IsNotFound(err) {
		b.WriteString("no job\n")
		return nil
	}
	if err != nil {
		return err
	}
	status, err := yaml.Marshal(s.comparable(job.Status))
	b.Write(status)
	return err
}

// comparable is a status as it compares to that of another run. An operator that was away may have missed why workers were
// evicted, and says so; one that was there has no excuse.
func (s *site) comparable(st v1alpha1.ElasticTrainingJobStatus) v1alpha1.ElasticTrainingJobStatus {
	st = timeless(st)
	if s.missed() && st.Elasticity != nil && st.Elasticity.LastEvictionReason == "Unseen" {
		st.Elasticity.LastEvictionReason = corev1.PodReasonPreemptionByScheduler
	}
	return st
}

// timeless is a status without what differs between two runs: times, UIDs, and how long the job waited.
func timeless(st v1alpha1.ElasticTrainingJobStatus) v1alpha1.ElasticTrainingJobStatus {
	st = *st.DeepCopy()
	for _, t := range []*metav1.Time{st.StartTime, st.RunningSince, st.BelowMinSince, st.MasterCompletionTime, st.CompletionTime} {
		if t != nil {
			*t = someTime
		}
	}
	if st.Attempt != nil {
		st.Attempt.StartTime = someTime
	}
	if st.WaitSeconds != nil {
		*st.WaitSeconds = 0
	}
	if st.LastFailure != nil {
		st.LastFailure.Time = someTime
	}
	if st.Elasticity != nil && st.Elasticity.LastEvictionTime != nil {
		*st.Elasticity.LastEvictionTime = someTime
	}
	for i := range st.RestartTimes {
		st.RestartTimes[i] = someTime
	}
	if st.Incident != nil {
		st.Incident.Time = someTime
	}
	st.ActiveSeconds = 0
	for i := range st.Members {
		st.Members[i].UID = "some"
		if st.Members[i].RetryTime != nil {
			*st.Members[i].RetryTime = someTime
		}
	}
	for i := range st.Conditions {
		st.Conditions[i].LastTransitionTime = someTime
	}
	return st
}

var someTime = metav1.Unix(0, 0)
