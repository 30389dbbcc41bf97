package resourcequotaprofile

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/quota"
)

// kubeflowV1beta1 is the version of Notebooks that the API server of tests prefers.
var kubeflowV1beta1 = schema.GroupVersion{Group: "kubeflow.org", Version: "v1beta1"}

// controlledBy is the reference of an object to its controller.
func controlledBy(apiVersion, kind, name, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-of-" + uid), Controller: ptr.To(true),
	}}
}

// fixture is the notebook nb of alice with its StatefulSet and pod, as they are at the API server.
type fixture struct {
	pod      *corev1.Pod
	set      *appsv1.StatefulSet
	notebook *unstructured.Unstructured
	// refuse answers a patch; nil for a patch that is accepted.
	refuse error
	// served is false for an API server without Notebooks, and forbidden is the verb that the operator may not use.
	served    bool
	forbidden string
}

func newFixture() *fixture {
	f := &fixture{
		pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: "nb-0", UID: "uid-of-pod",
			Labels:          map[string]string{notebookLabel: "nb", "tideline.io/owner": "alice"},
			OwnerReferences: controlledBy("apps/v1", "StatefulSet", "nb", "set"),
		}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-50 * time.Hour)),
		}}}},
		set: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: "nb", UID: "uid-of-set",
			OwnerReferences: controlledBy("kubeflow.org/v1", "Notebook", "nb", "notebook"),
		}},
		notebook: &unstructured.Unstructured{}, served: true,
	}
	f.notebook.SetGroupVersionKind(kubeflowV1beta1.WithKind("Notebook"))
	f.notebook.SetNamespace("ads")
	f.notebook.SetName("nb")
	f.notebook.SetUID("uid-of-notebook")
	f.notebook.SetAnnotations(map[string]string{"a": "b"})
	return f
}

// reconciler is one that talks to the fixture's API server.
func (f *fixture) reconciler() (*Reconciler, *events.FakeRecorder) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kubeflowV1beta1})
	if f.served {
		mapper.Add(kubeflowV1beta1.WithKind("Notebook"), meta.RESTScopeNamespace)
	}
	for _, kind := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"), corev1.SchemeGroupVersion.WithKind("Pod"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	answers := interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
				review.Status.Allowed = review.Spec.ResourceAttributes.Verb != f.forbidden
				return nil
			}
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if f.refuse != nil {
				return f.refuse
			}
			return c.Patch(ctx, o, p, options...)
		},
	}
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithRESTMapper(mapper).
		WithObjects(f.pod, f.set, f.notebook).WithInterceptorFuncs(answers).Build()
	recorder := events.NewFakeRecorder(10)
	return &Reconciler{
		client: api, live: api, recorder: recorder, config: config.DefaultConfiguration(), memory: newMemory(),
		now: func() time.Time { return now },
		Dependencies: Dependencies{
			IdleTime: func(string, string, string, time.Time) (time.Duration, bool) { return 60 * time.Hour, true },
			PodIdleTime: func(_, _, _, pod string, since time.Time) time.Duration {
				if pod != "nb-0" {
					return 0
				}
				return now.Sub(since)
			},
		},
	}, recorder
}

// annotated is what the annotation on the notebook says; empty for none.
func annotated(g *WithT, r *Reconciler) string {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kubeflowV1beta1.WithKind("Notebook"))
	g.Expect(r.client.Get(context.Background(), client.ObjectKey{Namespace: "ads", Name: "nb"}, o)).To(Succeed())
	g.Expect(o.GetAnnotations()).To(HaveKeyWithValue("a", "b"), "others stay")
	return o.GetAnnotations()[quota.AnnotationNotebookStopped]
}

// decided is what is decided about a pod that was seen idle, if it may be a notebook's.
func decided(r *Reconciler, pod *corev1.Pod) *quota.ProfileDecision {
	tasks := idleTasks{}
	r.noteIdle(tasks, pod, 2000)
	profile := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads", UID: "uid-of-ads"}}
	d := &quota.ProfileDecision{Profile: profile}
	for _, t := range tasks {
		if t.Notebook != nil && t.Notebook.Is == quota.NotebookUnasked && t.Notebook.Refused == "" {
			d.Stop = append(d.Stop, quota.NotebookStop{
				Namespace: t.Namespace, Name: t.Name, Pod: *t.Notebook, After: 48 * time.Hour, AsOf: now.Add(-time.Minute),
			})
		}
	}
	return d
}

func TestAnIdleNotebookIsStopped(t *testing.T) {
	g := NewWithT(t)
	f := newFixture()
	r, told := f.reconciler()
	d := decided(r, f.pod)
	again, err := r.stopNotebooks(t.Context(), d, now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(time.Millisecond), "the next plan says so")
	g.Expect(annotated(g, r)).To(Equal("2026-11-20T10:00:00Z"))
	g.Expect(told.Events).To(HaveLen(2), "on the Notebook and on the profile")
	g.Expect(<-told.Events).To(ContainSubstring("IdleNotebookStopped Stopped Notebook ads/nb of alice: its accelerators (2) were " +
		"not in use for 50h as of 2026-11-20T09:59:00Z"))
	g.Expect(r.memory.entryFor(d.Profile).stopped).To(ConsistOf(v1beta1.StoppedNotebook{
		Namespace: "ads", Name: "nb", User: "alice", Held: "2", IdleHours: 50,
		AsOf: metav1.NewTime(now.Add(-time.Minute)), Time: metav1.NewTime(now),
	}))
	g.Expect(decided(r, f.pod).Stop).To(BeEmpty(), "its pod takes a while to leave")
	r.memory.forgetNotebooks([]corev1.Pod{*f.pod}, now.Add(9*time.Minute))
	g.Expect(decided(r, f.pod).Stop).To(BeEmpty())
	r.memory.forgetNotebooks([]corev1.Pod{*f.pod}, now.Add(10*time.Minute))
	_, err = r.stopNotebooks(t.Context(), decided(r, f.pod), now.Add(10*time.Minute))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(annotated(g, r)).To(Equal("2026-11-20T10:00:00Z"), "it is stopped already")
	r.memory.forgetNotebooks(nil, now.Add(10*time.Minute))
	g.Expect(r.memory.notebooks).To(BeEmpty(), "the pod is gone")
}

// Labels and owner references of a pod are written by whoever creates it.
func TestOnlyTheNotebookOfItsPodIsStopped(t *testing.T) {
	for name, forge := range map[string]func(f *fixture, forged *corev1.Pod){
		"a pod of another name":               func(_ *fixture, forged *corev1.Pod) { forged.Name = "forged-0" },
		"another pod of the StatefulSet":      func(_ *fixture, forged *corev1.Pod) { forged.Name = "nb-1" },
		"a pod without the label":             func(_ *fixture, forged *corev1.Pod) { forged.Labels = nil },
		"a pod that leaves":                   func(_ *fixture, forged *corev1.Pod) { forged.DeletionTimestamp = ptr.To(metav1.Now()) },
		"a pod of another kind of controller": func(_ *fixture, forged *corev1.Pod) { forged.OwnerReferences[0].Kind = "ReplicaSet" },
		"a StatefulSet of another group":      func(_ *fixture, forged *corev1.Pod) { forged.OwnerReferences[0].APIVersion = "x/v1" },
		"a pod that does not control":         func(_ *fixture, forged *corev1.Pod) { forged.OwnerReferences[0].Controller = nil },
		"a pod that was there before":         func(_ *fixture, forged *corev1.Pod) { forged.UID = "uid-before" },
		"a StatefulSet that was there before": func(_ *fixture, forged *corev1.Pod) { forged.OwnerReferences[0].UID = "uid-before" },
		"no StatefulSet":                      func(f *fixture, _ *corev1.Pod) { f.set.Name = "other" },
		"a StatefulSet of no Notebook":        func(f *fixture, _ *corev1.Pod) { f.set.OwnerReferences = nil },
		"a StatefulSet that a user made":      func(f *fixture, _ *corev1.Pod) { f.set.OwnerReferences[0].Controller = nil },
		"a StatefulSet of another Notebook":   func(f *fixture, _ *corev1.Pod) { f.set.OwnerReferences[0].Name = "other" },
		"a Notebook that was there before":    func(f *fixture, _ *corev1.Pod) { f.set.OwnerReferences[0].UID = "uid-before" },
		"a Notebook of another group":         func(f *fixture, _ *corev1.Pod) { f.set.OwnerReferences[0].APIVersion = "x.org/v1" },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFixture()
			forged := f.pod.DeepCopy()
			forge(f, forged)
			r, told := f.reconciler()
			again, err := r.stopNotebooks(t.Context(), decided(r, forged), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(annotated(g, r)).To(BeEmpty())
			g.Expect(told.Events).To(BeEmpty())
			if again > 0 {
				g.Expect(decided(r, forged).Stop).To(BeEmpty(), "the API server is not asked again and again")
			}
		})
	}
}

func TestWhatKeepsANotebookFromBeingStopped(t *testing.T) {
	notebooks := schema.GroupResource{Group: "kubeflow.org", Resource: "notebooks"}
	for name, c := range map[string]struct {
		refuse  error
		again   time.Duration
		fails   bool
		refused string
	}{
		"its user changes it": {refuse: apierrors.NewConflict(notebooks, "nb", errors.New("changed")), again: quota.RefusedInterval},
		"the API server is busy": {
			refuse: apierrors.NewServerTimeout(notebooks, "patch", 1), fails: true,
		},
		"a policy": {
			refuse: apierrors.NewForbidden(notebooks, "nb", errors.New("by a policy")), again: time.Millisecond, refused: "by a policy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFixture()
			f.refuse = c.refuse
			r, told := f.reconciler()
			r.memory.asked = now
			again, err := r.stopNotebooks(t.Context(), decided(r, f.pod), now)
			g.Expect(err != nil).To(Equal(c.fails), "%v", err)
			g.Expect(again).To(Equal(c.again))
			g.Expect(told.Events).To(BeEmpty())
			next := decided(r, f.pod)
			if c.refused == "" {
				g.Expect(next.Stop).To(HaveLen(1), "another try may do")
				return
			}
			g.Expect(next.Stop).To(BeEmpty())
			g.Expect(r.memory.notebooks["uid-of-pod"].refused).To(ContainSubstring(c.refused))
			g.Expect(r.memory.asked).To(BeZero(), "the right may be gone")
			r.memory.forgetNotebooks([]corev1.Pod{*f.pod}, now.Add(tryAgain))
			g.Expect(decided(r, f.pod).Stop).To(HaveLen(1), "after a while it is tried again")
		})
	}
}

func TestWhetherNotebooksCanBeStopped(t *testing.T) {
	g := NewWithT(t)
	f := newFixture()
	r, _ := f.reconciler()
	clock := now
	r.now = func() time.Time { return clock }
	wants := quota.Observed{Profiles: []quota.Profile{{Object: &v1beta1.ResourceQuotaProfile{
		Spec: v1beta1.ResourceQuotaProfileSpec{StopIdleAfter: &metav1.Duration{Duration: time.Hour}},
	}}}}
	ask := func() quota.Stopping {
		o := wants
		g.Expect(r.observeStopping(t.Context(), &o)).To(Succeed())
		return o.Stopping
	}
	g.Expect(ask()).To(BeZero())
	f.forbidden = "patch"
	clock = clock.Add(askAgain - time.Second)
	g.Expect(ask()).To(BeZero(), "what was said is believed for a while")
	clock = clock.Add(time.Second)
	g.Expect(ask()).To(Equal(quota.Stopping{Reason: v1beta1.ReasonStoppingForbidden, Impossible: "The operator may not patch " +
		"notebooks.kubeflow.org: kubectl apply -f config/components/notebook-culling/role.yaml."}))
	f.forbidden = ""
	clock = clock.Add(quota.RefusedInterval)
	g.Expect(ask()).To(BeZero(), "somebody applied the component")

	f.served = false
	r, _ = f.reconciler()
	r.now = func() time.Time { return clock }
	g.Expect(ask().Reason).To(Equal(v1beta1.ReasonNotebooksMissing))
	wants.Profiles[0].Object.Spec.StopIdleAfter = nil
	r.memory = newMemory()
	g.Expect(ask()).To(BeZero())
	g.Expect(r.memory.asked).To(BeZero(), "without a profile that wants it nothing is asked")
}
