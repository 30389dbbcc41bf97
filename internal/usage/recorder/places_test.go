package recorder

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

func TestWhereAPodIs(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme, gang.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	profile := &v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "team-ads"},
		Spec: v1beta1.ResourceQuotaProfileSpec{
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "ads"}},
		},
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(profile,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ads", Labels: map[string]string{"team": "ads"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "alone"}},
		gang.Group{Namespace: "ads", Name: "ctr", Queue: "night"}.PodGroup(),
	).Build()
	nodes := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	labels := map[string]string{"nvidia.com/gpu.product": "A100"}
	g.Expect(nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}})).To(Succeed())
	now := noon
	p := &places{
		reader: reader, nodes: nodes, now: func() time.Time { return now },
		volcano: kube.NewKinds(meta.NewDefaultRESTMapper(nil), logr.Discard()),
	}
	in := func(namespace string) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Namespace = namespace } }
	member := annotated("scheduling.k8s.io/group-name", "ctr")
	g.Expect(p.findPlace(t.Context(), newPod("a", member))).To(Equal(Place{Profile: "team-ads", Queue: "night", Node: labels}))
	g.Expect(p.findPlace(t.Context(), newPod("a", in("alone"), member))).To(Equal(Place{Node: labels}), "its PodGroup is gone")
	g.Expect(p.findPlace(t.Context(), newPod("a", in("gone"), waiting))).To(Equal(Place{}))

	g.Expect(reader.Delete(t.Context(), profile)).To(Succeed())
	now = now.Add(profilesInterval - time.Second)
	g.Expect(p.findPlace(t.Context(), newPod("a")).Profile).To(Equal("team-ads"), "it is not looked at for each pod")
	now = now.Add(time.Second)
	g.Expect(p.findPlace(t.Context(), newPod("a")).Profile).To(BeEmpty())
	g.Expect(reader.Create(t.Context(), cleared(profile))).To(Succeed())
	now = noon
	g.Expect(p.findPlace(t.Context(), newPod("a")).Profile).To(Equal("team-ads"), "a clock that is set back keeps nothing for long")
}

func cleared(profile *v1beta1.ResourceQuotaProfile) client.Object {
	profile.ResourceVersion = ""
	return profile
}

func TestWithoutVolcanoThereAreNoQueues(t *testing.T) {
	g := NewWithT(t)
	volcano := kube.NewKinds(meta.NewDefaultRESTMapper(nil), logr.Discard(), gang.VolcanoKinds()...)
	g.Expect(volcano.LookForKinds()).To(Succeed())
	p := &places{volcano: volcano} // it has no reader that could be asked
	g.Expect(p.queueOf(t.Context(), newPod("a", annotated("scheduling.k8s.io/group-name", "ctr")))).To(BeEmpty())
}

// Claims and templates go before the ledger has read how a pod ended.
func TestAPodKeepsTheDevicesThatItWasSeenToHave(t *testing.T) {
	g := NewWithT(t)
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "eight"}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{
		Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 8},
	}}
	reader := fake.NewClientBuilder().WithObjects(template).Build()
	now, cfg := noon, config.DefaultConfiguration()
	p := &places{now: func() time.Time { return now }, claims: claimcache.NewReader(reader, cfg.DeviceClasses)}
	claiming := func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: ptr.To("eight")}}
	}
	pod, other := newPod("a", claiming), newPod("b", claiming)
	pod.UID, other.UID = "a", "b"
	place := Place{Profile: "team-ads", Claimed: p.claimedBy(t.Context(), pod)}
	g.Expect(IsCounted(pod, place)).To(BeTrue())
	g.Expect(StayOf(pod, place, cfg, noon).Resources).To(HaveKeyWithValue("nvidia.com/gpu", int64(9000)),
		"beside the one that it requests")

	g.Expect(reader.Delete(t.Context(), template)).To(Succeed())
	pod.Status.Phase = corev1.PodSucceeded
	g.Expect(p.claimedBy(t.Context(), pod)).To(Equal(place.Claimed))
	g.Expect(p.claimedBy(t.Context(), other)).To(BeNil())
	now = now.Add(heldFor + time.Second)
	g.Expect(p.claimedBy(t.Context(), other)).To(BeNil())
	g.Expect(p.devices).To(HaveLen(1), "a pod that is gone is forgotten")
}
