package gang

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/internal/platform/weight"
)

// Whatever a PodGroup has, the cache holds what is read of it: the same state and the same place in its queue.
func TestPodGroupsWithoutEndTakeNoMemory(t *testing.T) {
	g := NewWithT(t)
	usual := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: "a", UID: "u", Annotations: map[string]string{lastCheckpoint: "2026-11-20T10:00:00Z"},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			MinMember: 2, Queue: "q", PriorityClassName: "high", MinResources: &corev1.ResourceList{"cpu": resource.MustParse("1")},
			NetworkTopology: &schedulingv1beta1.NetworkTopologySpec{
				Mode: schedulingv1beta1.HardNetworkTopologyMode, HighestTierAllowed: ptr.To(2),
			},
			SubGroupPolicy: []schedulingv1beta1.SubGroupPolicySpec{
				{Name: "x"}, {NetworkTopology: &schedulingv1beta1.NetworkTopologySpec{Mode: "hard"}},
			},
		},
	}
	for i := range 40 {
		kind := schedulingv1beta1.PodGroupUnschedulableType
		if i%2 == 0 {
			kind = schedulingv1beta1.PodGroupScheduled
		}
		usual.Status.Conditions = append(usual.Status.Conditions, schedulingv1beta1.PodGroupCondition{
			Type: kind, Status: corev1.ConditionTrue, Message: fmt.Sprint("word ", i),
			LastTransitionTime: metav1.NewTime(time.Unix(int64(i), 0)),
		})
	}
	stripped, ok := Strip(usual.DeepCopy(), unshared).(*schedulingv1beta1.PodGroup)
	g.Expect(ok).To(BeTrue())
	g.Expect(StateOf(stripped)).To(Equal(StateOf(usual)))
	g.Expect(MembershipOf(stripped)).To(Equal(MembershipOf(usual)))

	large := usual.DeepCopy()
	large.Spec.MinTaskMember, large.Spec.MinResources = map[string]int32{}, &corev1.ResourceList{}
	for i := range 20_000 {
		large.Spec.MinTaskMember[strconv.Itoa(i)] = 1
		(*large.Spec.MinResources)[corev1.ResourceName(strconv.Itoa(i))] = resource.MustParse("1")
	}
	large.Spec.PriorityClassName = strings.Repeat("x", 1<<20)
	large.Spec.NetworkTopology.HighestTierName = strings.Repeat("x", 1<<20)
	large.Status.Conditions[39].Message = strings.Repeat("x", 1<<20)
	g.Expect(weight.Of(Strip(large, unshared))).To(BeNumerically("<", 20<<10))
	kept, _ := Strip(large, unshared).(*schedulingv1beta1.PodGroup)
	g.Expect(MembershipOf(kept).PriorityClass).To(HaveSuffix("..."), "no class has that name")
	g.Expect(Strip("another", unshared)).To(Equal("another"))
}

func unshared(list corev1.ResourceList) corev1.ResourceList { return list }
