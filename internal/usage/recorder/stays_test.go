package recorder

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const gpu = "nvidia.com/gpu"

// noon is when pods of tests are bound.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// a pod of somebody else with a GPU, bound at noon.
func newPod(name string, with ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)},
		}},
	}
	asks(gpu, "1")(pod)
	for _, f := range with {
		f(pod)
	}
	return pod
}

func asks(name corev1.ResourceName, quantity string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		requests := &pod.Spec.Containers[0].Resources.Requests
		if *requests == nil {
			*requests = corev1.ResourceList{}
		}
		(*requests)[name] = resource.MustParse(quantity)
	}
}

func boundOn(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(at) }
}

func waiting(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Conditions = "", nil }

func labelled(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value) }
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value) }
}

func of(group, kind, name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: name, Controller: ptr.To(true)}}
	}
}

// phase ends a pod, and says when its container did if at is set.
func phase(phase corev1.PodPhase, at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = phase
		if !at.IsZero() {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)}}},
			}
		}
	}
}

// readyUntil is what the node controller says of a pod whose node is lost.
func readyUntil(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(at),
		})
	}
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }

func TestWhatCounts(t *testing.T) {
	ads := Place{Profile: "ads"}
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		place  Place
		counts bool
	}{
		"of a job":                    {newPod("a", of("tideline.io/v1beta1", "ElasticTrainingJob", "ctr")), Place{}, true},
		"of a merge, without a GPU":   {newPod("a", asks(gpu, "0"), of("tideline.io/v1beta1", "MergeJob", "ctr")), Place{}, true},
		"of a job, not bound":         {newPod("a", of("tideline.io/v1beta1", "ElasticTrainingJob", "ctr"), waiting), ads, false},
		"of others in a profile":      {newPod("a"), ads, true},
		"of others in no profile":     {newPod("a"), Place{}, false},
		"of others, not bound":        {newPod("a", waiting), ads, false},
		"of others without a GPU":     {newPod("a", asks(gpu, "0"), asks("cpu", "4")), ads, true},
		"of others, a device unknown": {newPod("a", asks(gpu, "0"), asks("example.com/npu", "1")), ads, true},
		"of others, AMD":              {newPod("a", asks(gpu, "0"), asks("amd.com/gpu", "1")), ads, true},
		"of a kind of the same name":  {newPod("a", of("example.com/v1", "MergeJob", "ctr")), Place{}, false},
	} {
		NewWithT(t).Expect(IsCounted(c.pod, c.place)).To(Equal(c.counts), name)
	}
}

func TestStayOfAWorker(t *testing.T) {
	pod := newPod("ctr-worker-3", of("tideline.io/v1beta1", "ElasticTrainingJob", "ctr"),
		annotated("tideline.io/owner", "alice@example.com"), labelled("tideline.io/attempt", "2-1"),
		labelled("tideline.io/part", "surplus"), labelled("tideline.io/owner", "bob"),
		asks("cpu", "1500m"), asks("memory", "1500000"), asks("ephemeral-storage", "1Gi"), asks("hugepages-2Mi", "4Mi"))
	pod.Spec.Priority = ptr.To[int32](-300)
	place := Place{Profile: "ads", Queue: "ads-queue", Node: map[string]string{"nvidia.com/gpu.product": "A100"}}
	g := NewWithT(t)
	g.Expect(StayOf(pod, place, config.DefaultConfiguration(), noon.Add(time.Minute))).To(Equal(ledger.Stay{
		Pod: ledger.Pod{
			UID: "uid-ctr-worker-3", Namespace: "ads", Name: "ctr-worker-3", Node: "n1", Profile: "ads", Queue: "ads-queue",
			User: "alice@example.com", Tier: "exploratory", Kind: "ElasticTrainingJob", Task: "ctr", Run: "2-1", Role: "surplus",
			Model: "A100", Resources: ledger.Resources{
				gpu: 1000, "cpu": 1500, "memory": 2, "ephemeral-storage": 1024, "hugepages-2Mi": 4,
			},
		},
		Begin: noon, End: noon.Add(time.Minute),
	}))
	server := newPod("ctr-ps-1", of("tideline.io/v1beta1", "ElasticTrainingJob", "ctr"), labelled("tideline.io/part", "core"),
		labelled("tideline.io/role", "ps"))
	g.Expect(StayOf(server, place, config.DefaultConfiguration(), noon).Role).To(Equal("ps"), "a role says more than that it "+
		"is core")
	merges := newPod("m", of("tideline.io/v1beta1", "MergeJob", "ctr"), labelled("tideline.io/run", "7"),
		labelled("tideline.io/attempt", "7-1"))
	g.Expect(StayOf(merges, Place{}, config.DefaultConfiguration(), noon).Run).To(Equal("7"))
}

// A name with an @ is no value of a label.
func TestTheUserOfAPodOfSomebodyElse(t *testing.T) {
	for name, c := range map[string]struct {
		with []func(*corev1.Pod)
		user string
	}{
		"by a label":       {[]func(*corev1.Pod){labelled("tideline.io/owner", "alice")}, "alice"},
		"by an annotation": {[]func(*corev1.Pod){annotated("tideline.io/owner", "alice@example.com")}, "alice@example.com"},
		"by both, and the name wins": {[]func(*corev1.Pod){labelled("tideline.io/owner", "alice"),
			annotated("tideline.io/owner", "alice@example.com")}, "alice@example.com"},
		"by nothing": {nil, ""},
	} {
		NewWithT(t).Expect(UserOf(newPod("p", c.with...), config.DefaultConfiguration())).To(Equal(c.user), name)
	}
}

// Whoever may create pods may write labels and annotations: on a pod of somebody else ours say nothing.
func TestStayOfAPodOfSomebodyElse(t *testing.T) {
	cfg := config.DefaultConfiguration()
	cfg.Ledger.UserLabel = "example.com/user"
	forged := []func(*corev1.Pod){
		annotated("tideline.io/owner", "bob"), labelled("tideline.io/part", "surplus"), labelled("tideline.io/attempt", "1-1"),
		labelled("example.com/user", "alice"),
	}
	for name, c := range map[string]struct {
		with       func(*corev1.Pod)
		kind, task string
	}{
		"by itself":                  {func(*corev1.Pod) {}, "Pod", "p"},
		"of a controller":            {of("apps/v1", "StatefulSet", "notebook"), "StatefulSet", "notebook"},
		"of a kind of the same name": {of("example.com/v1", "ElasticTrainingJob", "ctr"), "ElasticTrainingJob (example.com/v1)", "ctr"},
	} {
		g := NewWithT(t)
		s := StayOf(newPod("p", append(forged, c.with)...), Place{Profile: "ads"}, cfg, noon)
		g.Expect([]string{s.Kind, s.Task, s.User, s.Role, s.Run, s.Tier}).To(Equal([]string{c.kind, c.task, "alice", "", "", ""}), name)
	}
}

func TestPartsOfDevicesAreKeptAsParts(t *testing.T) {
	g := NewWithT(t)
	cfg := config.DefaultConfiguration()
	cfg.Sharing = config.Sharing{{Resource: "volcano.sh/gpu-memory", CountsAs: gpu, Whole: 40960}}
	pod := newPod("p", asks(gpu, "0"), asks("volcano.sh/gpu-memory", "10240"))
	place := Place{Profile: "ads", Node: map[string]string{"nvidia.com/gpu.product": "A100"}}
	g.Expect(IsCounted(pod, place)).To(BeTrue())
	s := StayOf(pod, place, cfg, noon)
	g.Expect(s.Resources).To(Equal(ledger.Resources{gpu: 250, "volcano.sh/gpu-memory": 10_240_000}))
	g.Expect(s.Model).To(Equal("A100"))
}

func TestTierIsThatOfThePriority(t *testing.T) {
	for priority, tier := range map[int32]string{
		100000: "main-traffic", -100: "main-traffic", 1000: "exploratory", -200: "small-traffic", 0: "", 7: "",
	} {
		pod := newPod("a")
		pod.Spec.Priority = &priority
		NewWithT(t).Expect(StayOf(pod, Place{}, config.DefaultConfiguration(), noon).Tier).To(Equal(tier), "%d", priority)
	}
}

func TestModelIsThatOfTheFirstAccelerator(t *testing.T) {
	g := NewWithT(t)
	node := Place{Node: map[string]string{"nvidia.com/gpu.product": "A100", "amd.com/gpu.product-name": "MI300"}}
	g.Expect(StayOf(newPod("a", asks("amd.com/gpu", "1")), node, config.DefaultConfiguration(), noon).Model).To(Equal("MI300"))
	g.Expect(StayOf(newPod("a", asks("amd.com/gpu", "0")), node, config.DefaultConfiguration(), noon).Model).To(Equal("A100"))
	g.Expect(StayOf(newPod("a", asks(gpu, "0")), node, config.DefaultConfiguration(), noon).Model).To(BeEmpty())
	g.Expect(StayOf(newPod("a"), Place{}, config.DefaultConfiguration(), noon).Model).To(BeEmpty(), "a node that is gone")
}

func TestBeginAndEnd(t *testing.T) {
	seen, done := noon.Add(time.Hour), noon.Add(10*time.Second)
	cfg := config.DefaultConfiguration()
	unscheduled := newPod("a")
	unscheduled.Status.Conditions = nil
	NewWithT(t).Expect(StayOf(unscheduled, Place{}, cfg, seen).Begin).To(Equal(noon.Add(-time.Hour)), "when it was created")
	// One of two containers says when it ended; the other's node was lost.
	half := newPod("a", phase(corev1.PodFailed, done))
	half.Spec.Containers = append(half.Spec.Containers, corev1.Container{})
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	for name, c := range map[string]struct {
		pod       *corev1.Pod
		how       end
		outcome   ledger.Outcome
		end       time.Time
		uncertain bool
	}{
		"it runs":                     {newPod("a"), StayOf, "", seen, false},
		"it succeeded":                {newPod("a", phase(corev1.PodSucceeded, done)), StayOf, ledger.Succeeded, done, false},
		"it failed":                   {newPod("a", phase(corev1.PodFailed, done)), StayOf, ledger.Failed, done, false},
		"it does not say when":        {newPod("a", phase(corev1.PodFailed, time.Time{})), StayOf, ledger.Failed, seen, false},
		"not all of it says when":     {half, StayOf, ledger.Failed, seen, false},
		"its node's clock is ahead":   {newPod("a", phase(corev1.PodFailed, seen.Add(time.Hour))), StayOf, ledger.Failed, seen, false},
		"it was told to end":          {newPod("a", phase(corev1.PodSucceeded, done), deleted), StayOf, ledger.Deleted, done, false},
		"it was deleted while it ran": {newPod("a"), EndedStay, ledger.Deleted, seen, false},
		"it was deleted at its end":   {newPod("a", phase(corev1.PodSucceeded, done)), EndedStay, ledger.Succeeded, done, false},
		"its deletion was missed":     {newPod("a"), missedStay, ledger.Lost, seen, true},
		"its end was missed, it says": {newPod("a", phase(corev1.PodFailed, done)), pastEnd(at(7)), ledger.Failed, done, false},
		"its end was missed, the ledger saw it run": {
			newPod("a", phase(corev1.PodFailed, time.Time{}), readyUntil(at(9))), pastEnd(at(7)), ledger.Failed, at(7), true,
		},
		"the ledger saw it by a clock that was ahead": {
			newPod("a", phase(corev1.PodFailed, time.Time{})), pastEnd(seen.Add(time.Hour)), ledger.Failed, seen, true,
		},
		"its end was missed, a container says": {half, pastEnd(time.Time{}), ledger.Failed, done, true},
		"its end was missed, a condition says": {
			newPod("a", phase(corev1.PodFailed, time.Time{}), readyUntil(at(9))), pastEnd(time.Time{}), ledger.Failed, at(9), true,
		},
		"its end was missed, and nothing says": {
			newPod("a", phase(corev1.PodFailed, time.Time{})), pastEnd(time.Time{}), ledger.Failed, noon, true,
		},
		"its end was missed, and what it says was before it was bound": {
			newPod("a", phase(corev1.PodFailed, time.Time{}), readyUntil(at(-9))), pastEnd(time.Time{}), ledger.Failed, noon, true,
		},
	} {
		g := NewWithT(t)
		s := c.how(c.pod, Place{}, cfg, seen)
		g.Expect(s.Begin).To(Equal(noon), name)
		g.Expect(s.Final).To(Equal(c.outcome != ""), name)
		g.Expect(s.Outcome).To(Equal(c.outcome), name)
		g.Expect(s.End).To(Equal(c.end), name)
		g.Expect(s.Uncertain).To(Equal(c.uncertain), name)
	}
}
