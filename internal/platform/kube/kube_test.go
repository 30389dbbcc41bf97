package kube

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

var pods = schema.GroupResource{Resource: "pods"}

func TestDiagnose(t *testing.T) {
	forbidden := func(s string) error { return apierrors.NewForbidden(pods, "p", errors.New(s)) }
	for name, c := range map[string]struct {
		err    error
		class  Class
		reason string
	}{
		"name taken":        {&NameTakenError{Kind: "Service", Name: "s"}, Terminal, "NameTaken"},
		"predecessor":       {&NameTakenError{Kind: "Pod", Name: "p", Predecessor: true}, Wait, "PredecessorLeaving"},
		"still leaving":     {&NameTakenError{Kind: "Pod", Name: "p", Leaving: true}, Wait, "PredecessorLeaving"},
		"no kind":           {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "PodGroup"}}, Wait, "VolcanoMissing"},
		"no priority class": {forbidden("no PriorityClass with name x was found"), Wait, "PriorityClassMissing"},
		"quota":             {forbidden("exceeded quota: q, requested: pods=1"), Wait, "QuotaExceeded"},
		"pod security":      {forbidden(`violates PodSecurity "restricted"`), Terminal, "Rejected"},
		"uninstalled":       {apierrors.NewGenericServerResponse(404, "post", pods, "p", "", 0, true), Wait, "VolcanoMissing"},
		"no account":        {forbidden(`error looking up service account ads/x: serviceaccount "x" not found`), Retry, "APIError"},
		"no right":          {forbidden(`User "x" cannot create resource "pods" in API group ""`), Wait, "APIError"},
		"invalid":           {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), Terminal, "Rejected"},
		"timeout":           {apierrors.NewTimeoutError("later", 1), Retry, "APIError"},
		"webhook down":      {apierrors.NewInternalError(errors.New("failed calling webhook")), Retry, "APIError"},
		"unknown":           {errors.New("connection refused"), Retry, "APIError"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := DiagnoseError(c.err, "create pod p")
			g.Expect(d.Class).To(Equal(c.class))
			g.Expect(d.Reason).To(Equal(c.reason))
			g.Expect(d.Message).To(HavePrefix("Cannot create pod p: "))
			g.Expect(d.Message).To(ContainSubstring(c.err.Error()))
		})
	}
}

func owned(name string, uid types.UID) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "tideline.io/v1beta1", Kind: "ElasticTrainingJob", Name: "ctr", UID: uid, Controller: ptr.To(true),
	}}}}
}

func TestCreateTakesNothingOver(t *testing.T) {
	leaving := owned("s", "new")
	leaving.DeletionTimestamp, leaving.Finalizers = ptr.To(metav1.Now()), []string{"example.com/hold"}
	for name, c := range map[string]struct {
		existing *corev1.Service
		taken    *NameTakenError
	}{
		"free":          {owned("other", "old"), nil},
		"ours already":  {owned("s", "new"), nil},
		"ours, leaving": {leaving, &NameTakenError{Kind: "Service", Name: "s", Leaving: true}},
		"predecessor's": {owned("s", "old"), &NameTakenError{Kind: "Service", Name: "s", Predecessor: true}},
		"a user's": {
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "s"}}, &NameTakenError{Kind: "Service", Name: "s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cl := fake.NewClientBuilder().WithObjects(c.existing).Build()
			child := owned("s", "new")
			err := Creator{Client: cl, Live: cl, Scheme: scheme.Scheme}.Create(t.Context(), child)
			if c.taken == nil {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(child.ResourceVersion).NotTo(BeEmpty(), "the write can be noted")
				return
			}
			var taken *NameTakenError
			g.Expect(errors.As(err, &taken)).To(BeTrue(), "%v", err)
			g.Expect(taken).To(Equal(c.taken))
			after := &corev1.Service{}
			g.Expect(cl.Get(t.Context(), client.ObjectKeyFromObject(c.existing), after)).To(Succeed())
			g.Expect(after.OwnerReferences).To(Equal(c.existing.OwnerReferences), "untouched")
		})
	}
}

func TestPacer(t *testing.T) {
	g := NewWithT(t)
	p, key := NewPacer(), types.NamespacedName{Name: "a"}
	start := time.Unix(1000, 0)
	noticed, written := p.NoteDifference(key, 1, start)
	g.Expect(noticed).To(Equal(start))
	g.Expect(written.IsZero()).To(BeTrue())
	noticed, _ = p.NoteDifference(key, 1, start.Add(time.Second))
	g.Expect(noticed).To(Equal(start), "since when it differs, not when it was looked at")
	noticed, _ = p.NoteDifference(key, 2, start.Add(1500*time.Millisecond))
	g.Expect(noticed).To(Equal(start.Add(1500*time.Millisecond)), "this is more urgent")
	p.NoteAgreement(key)
	noticed, _ = p.NoteDifference(key, 1, start.Add(2*time.Second))
	g.Expect(noticed).To(Equal(start.Add(2 * time.Second)))
	p.NoteWrite(key, start.Add(3*time.Second))
	noticed, written = p.NoteDifference(key, 1, start.Add(4*time.Second))
	g.Expect(noticed).To(Equal(start.Add(4 * time.Second)))
	g.Expect(written).To(Equal(start.Add(3 * time.Second)))
	back := start.Add(-time.Hour)
	noticed, written = p.NoteDifference(key, 1, back)
	g.Expect([]time.Time{noticed, written}).To(Equal([]time.Time{back, back}), "a clock that was set back makes nobody wait for it")
	noticed, written = p.NoteDifference(key, 1, back.Add(time.Second))
	g.Expect([]time.Time{noticed, written}).To(Equal([]time.Time{back, back}), "and the wait goes on")
	p.ForgetObject(key)
	_, written = p.NoteDifference(key, 1, start)
	g.Expect(written.IsZero()).To(BeTrue())
}

func TestStripPodKeepsWhatIsRead(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Labels: map[string]string{"a": "b", "tideline.io/job": "ctr"}, Annotations: map[string]string{"big": "x"},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
			OwnerReferences: owned("p", "job").OwnerReferences, DeletionGracePeriodSeconds: ptr.To[int64](60),
		},
		Spec: corev1.PodSpec{
			NodeName: "n", Containers: []corev1.Container{{Name: "c"}}, TerminationGracePeriodSeconds: ptr.To[int64](90),
		},
		Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "running"}, {Name: "dead", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}},
		}},
	}
	strip := StripPod("example.com/user")
	o, err := strip(pod)
	g.Expect(err).NotTo(HaveOccurred())
	stripped, _ := o.(*corev1.Pod)
	g.Expect(stripped.Labels).To(Equal(map[string]string{"tideline.io/job": "ctr", "a": "b"}), "others may have rules about it")
	g.Expect(stripped.Annotations).To(BeNil())
	g.Expect(stripped.ManagedFields).To(BeNil())
	g.Expect(stripped.Spec.NodeName).To(Equal("n"))
	g.Expect(stripped.DeletionGracePeriodSeconds).To(HaveValue(BeEquivalentTo(60)))
	g.Expect(stripped.Spec.TerminationGracePeriodSeconds).To(HaveValue(BeEquivalentTo(90)))
	g.Expect(stripped.Spec.Containers[0].Name).To(BeEmpty(), "only what it requests is read")
	g.Expect(stripped.Status.ContainerStatuses).To(HaveLen(1))

	for _, c := range []struct {
		group, kind string
		name        string
	}{
		{"tideline.io/v1beta1", v1beta1.MergeJobKind, "dead"}, {"tideline.io/v2", v1beta1.ElasticTrainingJobKind, "dead"},
		{"batch/v1", "Job", ""}, {"example.com/v1", v1beta1.MergeJobKind, ""},
	} {
		pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = c.group, c.kind
		o, err = strip(pod)
		g.Expect(err).NotTo(HaveOccurred())
		stripped, _ = o.(*corev1.Pod)
		g.Expect(stripped.Status.ContainerStatuses[0].Name).To(Equal(c.name), "%s of %s", c.kind, c.group)
	}
}

// What is read of a pod is what the cache keeps of it.
func TestAnUnhealthyDeviceIsSeenThroughTheCache(t *testing.T) {
	g := NewWithT(t)
	device := func(id string, health corev1.ResourceHealthStatus) corev1.ResourceHealth {
		return corev1.ResourceHealth{ResourceID: corev1.ResourceID(id), Health: health}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", OwnerReferences: owned("p", "job").OwnerReferences},
		Spec:       corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "trainer", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
			AllocatedResourcesStatus: []corev1.ResourceStatus{{Name: "nvidia.com/gpu", Resources: []corev1.ResourceHealth{
				device("GPU-0", corev1.ResourceHealthStatusHealthy), device("GPU-1", corev1.ResourceHealthStatusUnhealthy),
			}}},
		}}},
	}
	for i := range 100 {
		pod.Status.ContainerStatuses[0].AllocatedResourcesStatus[0].Resources = append(
			pod.Status.ContainerStatuses[0].AllocatedResourcesStatus[0].Resources, device(fmt.Sprint("x", i), "Unhealthy"))
	}
	o, err := StripPod("example.com/user")(pod)
	g.Expect(err).NotTo(HaveOccurred())
	stripped, _ := o.(*corev1.Pod)
	worker := podstate.ReadWorker(stripped, 0)
	g.Expect(worker.Rejected).To(BeTrue())
	g.Expect(worker.Failure.Message).To(And(ContainSubstring("nvidia.com/gpu GPU-1"), Not(ContainSubstring("GPU-0"))))
	g.Expect(stripped.Status.ContainerStatuses[0].AllocatedResourcesStatus).To(HaveLen(mostUnhealthy))
}

func TestStripPodKeepsWhatAPodRequestsAsAWhole(t *testing.T) {
	g := NewWithT(t)
	asked := corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("3")}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{
		Requests: asked, Limits: corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("4")},
	}}}
	o, err := StripPod("example.com/user")(pod)
	g.Expect(err).NotTo(HaveOccurred())
	kept := o.(*corev1.Pod).Spec.Resources
	g.Expect(equality.Semantic.DeepEqual(kept, &corev1.ResourceRequirements{Requests: asked})).To(BeTrue(), "%v", kept)
}

// Evaluations sum up what a cached pod requests again and again.
func TestWhatAPodRequestsAsAWholeStaysTheSame(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceMemory: apiresource.MustParse("1.5Gi"), corev1.ResourceCPU: apiresource.MustParse("1500m"),
		}},
		Overhead: corev1.ResourceList{corev1.ResourceMemory: apiresource.MustParse("0.5Gi")},
	}}
	o, err := StripPod("example.com/user")(pod)
	g.Expect(err).NotTo(HaveOccurred())
	for range 2 {
		sum := resource.PodRequests(o.(*corev1.Pod), resource.PodResourcesOptions{})
		g.Expect(sum.Memory().Value()).To(BeEquivalentTo(2 << 30))
		g.Expect(sum.Cpu().MilliValue()).To(BeEquivalentTo(1500))
	}
}

func TestStripPodKeepsOfAPodOfSomebodyElseWhatTheLedgerSays(t *testing.T) {
	g := NewWithT(t)
	bound, ended := metav1.Unix(1000, 0), metav1.Unix(2000, 0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Labels: map[string]string{"example.com/user": "alice", "a": "b"},
			Annotations: map[string]string{v1beta1.AnnotationOwner: "bob", "big": "x", "example.com/user": "alice@example.com"},
		},
		Spec: corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ended, Message: "long"},
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: bound, Message: "long"},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "a", Image: "long",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ended, Message: "long"}},
			}},
		},
	}
	strip := func() *corev1.Pod {
		o, err := StripPod("example.com/user")(pod)
		g.Expect(err).NotTo(HaveOccurred())
		stripped, _ := o.(*corev1.Pod)
		return stripped
	}
	stripped := strip()
	g.Expect(stripped.Labels).To(Equal(map[string]string{"example.com/user": "alice", "a": "b"}))
	g.Expect(stripped.Annotations).To(Equal(map[string]string{
		v1beta1.AnnotationOwner: "bob", "example.com/user": "alice@example.com",
	}))
	g.Expect(stripped.Status.Conditions).To(Equal([]corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: bound},
	}))
	g.Expect(stripped.Status.ContainerStatuses).To(BeEmpty(), "it may run on")
	pod.Status.Phase = corev1.PodSucceeded
	g.Expect(strip().Status.Conditions).To(Equal([]corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ended},
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: bound},
	}))
	g.Expect(strip().Status.ContainerStatuses).To(Equal([]corev1.ContainerStatus{
		{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ended}}},
	}))
}

func TestStripPodKeepsOfAPodThatWaitsWhereItMayGo(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{"gpu": "a100"}, Tolerations: []corev1.Toleration{{Key: "team"}}, HostNetwork: true,
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}, Volumes: []corev1.Volume{{Name: "data"}},
		SchedulingGates: []corev1.PodSchedulingGate{{Name: "later"}},
		InitContainers:  []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: 9001}}}},
		Containers:      []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: 9000}}}},
	}}
	whole := pod.DeepCopy()
	whole.Spec.Containers[0].Name, whole.Spec.InitContainers[0].Name = "c", "init"
	g := NewWithT(t)
	strip := StripPod("user")
	stripped, err := strip(whole)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stripped).To(Equal(pod))
	g.Expect(strip(stripped)).To(BeIdenticalTo(stripped), "a list passes there twice")
}

func TestStripPodKeepsOfAPodOnANodeWhatKeepsOthersOut(t *testing.T) {
	g := NewWithT(t)
	apart := []corev1.PodAffinityTerm{{TopologyKey: "zone"}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		NodeName: "n", HostNetwork: true,
		Affinity: &corev1.Affinity{
			NodeAffinity:    &corev1.NodeAffinity{},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: apart},
		},
		Containers: []corev1.Container{{
			Name: "c", Ports: []corev1.ContainerPort{{Name: "x", ContainerPort: 1}, {Name: "y", HostPort: 2}},
		}},
	}}
	for i := range 100 {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, fmt.Sprintf("l%02d", i), "x")
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, "tideline.io/job", "ctr")
	o, err := StripPod("user")(pod)
	g.Expect(err).NotTo(HaveOccurred())
	stripped, _ := o.(*corev1.Pod)
	g.Expect(stripped.Spec.Affinity).To(Equal(&corev1.Affinity{
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: apart},
	}))
	g.Expect(stripped.Spec.Containers[0].Ports).To(Equal([]corev1.ContainerPort{{HostPort: 2}}))
	g.Expect(stripped.Spec.HostNetwork).To(BeTrue())
	g.Expect(stripped.Labels).To(And(HaveLen(33), HaveKey("l00"), HaveKey("l31"), HaveKey("tideline.io/job")))
}

func TestStripNodeKeepsWhatIsRead(t *testing.T) {
	g := NewWithT(t)
	read := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"gpu": "a100"}},
		Spec:       corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "team"}}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourcePods: apiresource.MustParse("110")},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
			}},
		},
	}
	node := read.DeepCopy()
	node.Annotations = map[string]string{"big": "x"}
	node.Spec.ProviderID = "cloud"
	node.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"large"}}}
	g.Expect(StripNode(node)).To(Equal(read))
}

func TestStripVolumesKeepsWhatIsRead(t *testing.T) {
	g := NewWithT(t)
	read := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "data", UID: "c", ResourceVersion: "7"},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "v", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	claim := read.DeepCopy()
	claim.Annotations, claim.Spec.StorageClassName = map[string]string{"big": "x"}, ptr.To("nfs")
	g.Expect(StripVolumeClaim(claim)).To(Equal(read))

	there := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "v", UID: "v", ResourceVersion: "8", Labels: map[string]string{corev1.LabelTopologyZone: "a"},
		},
		Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name"}}}},
		}}},
	}
	volume := there.DeepCopy()
	volume.Labels["big"], volume.Spec.StorageClassName = "x", "local"
	g.Expect(StripVolume(volume)).To(Equal(there))
}
