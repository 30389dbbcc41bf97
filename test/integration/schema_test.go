package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/integration/badinput"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// sideBySide is how many fields are tried at the same time: mostly, jobs wait for Volcano to look.
const sideBySide = 12

// asked is a job that is only asked whether it would take a change.
const asked = "asked"

var _ = Describe("The schema", func() {
	const how = "is walked to every boundary and back: refused with the field's name, or settled; and what was, is again"
	// Also where the walk itself is left to others: a field that is added may need company.
	It("has values to be tried for each field", func() {
		for path, values := range boundaries() {
			Expect(values).NotTo(BeEmpty(), "%s has no values: choose some", path)
		}
	})
	It(how, suite.Long, func() {
		s := newScenario("schema", 64)
		s.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Node(0)}},
			fmt.Sprintf(`{"metadata":{"labels":{"nvidia.com/gpu.product":%q}}}`, acceleratorModel))
		grant(s, "ssh-keys")
		grant(s, "training-progress")
		grant(s, "job-network-policy")
		all := boundaries()
		s.Submit(s.Job(asked).Range(1, 2))
		tried, places := 0, make(chan struct{}, sideBySide)
		var fields sync.WaitGroup
		for i, path := range slices.Sorted(maps.Keys(all)) {
			tried += len(all[path])
			places <- struct{}{}
			fields.Go(func() {
				defer GinkgoRecover()
				defer func() { <-places }()
				t := &trial{s: s, name: fmt.Sprintf("f%d", i), plain: i%2 == 1 && !strings.HasPrefix(path, "framework")}
				t.walk(all[path])
			})
		}
		fields.Wait()
		s.DeleteJob(asked)
		Eventually(s.Remains).Should(BeEmpty(), "nothing is left behind")
		AddReportEntry(fmt.Sprintf("tried %d values of %d fields", tried, len(all)))
	})
})

// trial tries the values of one field.
type trial struct {
	s    *testutil.Scenario
	name string
	// plain is true for workers without torchrun, which have a ConfigMap besides.
	plain bool
	// job is the one whose field is changed, and children what it consists of while nothing is changed.
	job      *v1beta1.ElasticTrainingJob
	children []string
}

// walk changes the field of a job that trains to each value and back, and where it is fixed, creates a job with the value.
func (t *trial) walk(values []boundary) {
	for i, b := range values {
		err := t.patch(asked, b, client.DryRunAll)
		switch {
		case err == nil && lasts(b):
			t.create(fmt.Sprintf("%s-%d", t.name, i), b)
		case err == nil:
			Expect(b.beyond).To(BeFalse(), "%s is accepted", b)
			t.change(b)
		case fixed(err):
			Expect(b.namedIn(err.Error())).To(BeTrue(), "%s is refused without its name: %v", b, err)
			t.create(fmt.Sprintf("%s-%d", t.name, i), b)
		default:
			Expect(b.namedIn(err.Error())).To(BeTrue(), "%s is refused without its name: %v", b, err)
		}
	}
	if t.job != nil {
		t.s.DeleteJob(t.name)
	}
}

// fixed tells whether a change is refused whatever the value.
func fixed(err error) bool { return strings.Contains(err.Error(), " cannot change") }

// lasts is true for a value that a job remembers when it is taken back: after another target, 1 asks for the core alone.
func lasts(b boundary) bool { return b.path == "replicas" }

// begin creates a job of one or two workers.
func (t *trial) begin() {
	t.s.Submit(t.s.Job(t.name).Range(1, 2).With(func(job *v1beta1.ElasticTrainingJob) {
		if t.plain {
			job.Spec.Framework.Type = v1beta1.FrameworkCustom
		}
	}))
	Eventually(t.s.Fetch(t.name)).Should(testutil.Train(2), "%s trains", t.name)
	if t.plain {
		Eventually(func() (string, error) {
			told := &corev1.ConfigMap{}
			err := t.s.Client.Get(t.s.Context(), client.ObjectKey{Namespace: t.s.Namespace, Name: t.name + "-hosts"}, told)
			return told.Data["hosts"], err
		}).Should(ContainSubstring(testutil.WorkerName(t.name, 1)), "%s lists its surplus, after its status does", t.name)
	}
	t.job = t.s.Read(t.name)
	var err error
	t.children, err = t.look()
	Expect(err).NotTo(HaveOccurred(), "what %s consists of is read", t.name)
}

// change changes the field of a job that trains, and takes the change back.
func (t *trial) change(b boundary) {
	if t.job == nil {
		t.begin()
	}
	Expect(t.patch(t.name, b)).To(Succeed(), "%s is accepted", b)
	t.settles(t.name, b)
	t.revert(b)
}

func (t *trial) patch(job string, b boundary, options ...client.PatchOption) error {
	patch, err := json.Marshal(map[string]any{"spec": b.spec()})
	Expect(err).NotTo(HaveOccurred(), "%s is well formed", b)
	o := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: t.s.Namespace, Name: job}}
	return t.s.Client.Patch(t.s.Context(), o, client.RawPatch(types.MergePatchType, patch), options...)
}

// settles waits until the job has followed the change, or says why it does not.
func (t *trial) settles(job string, b boundary) {
	Eventually(t.s.Fetch(job)).Should(Satisfy(settled), "%s: the job follows, or is stalled with words", b)
}

// outside are reasons of jobs that wait for something outside of them, and say for what.
var outside = []string{
	v1beta1.ReasonUnschedulable, v1beta1.ReasonNeverFits, v1beta1.ReasonAPIError, v1beta1.ReasonDataSetNotFound,
	v1beta1.ReasonDataClaimNotFound,
}

// settled tells whether the job is where its spec wants it, or says what keeps it from there.
func settled(job *v1beta1.ElasticTrainingJob) bool {
	st := &job.Status
	if st.ObservedGeneration != job.Generation || st.Reason == "" || st.Message == "" {
		return false
	}
	is := func(kind string) bool { return testutil.Condition(job, kind).Status == metav1.ConditionTrue }
	return st.CompletionTime != nil || is(v1beta1.ConditionStalled) || st.Reason == v1beta1.ReasonSuspended ||
		slices.Contains(outside, st.Reason) || (is(v1beta1.ConditionReady) && is(v1beta1.ConditionFullSize))
}

// revert takes the change back, after which the job consists of what it did before. A job that the change has ended is replaced.
func (t *trial) revert(b boundary) {
	now := t.s.Read(t.name)
	if now.Status.CompletionTime == nil {
		reverted := now.DeepCopy()
		reverted.Spec = t.job.Spec
		Expect(t.s.Client.Patch(t.s.Context(), reverted, client.MergeFrom(now))).To(Succeed(), "%s is taken back", b)
		t.settles(t.name, b)
		now = t.s.Read(t.name)
	}
	if now.Status.CompletionTime != nil {
		t.s.DeleteJob(t.name)
		t.awaitGone(t.name)
		t.job = nil
		return
	}
	Eventually(t.s.Fetch(t.name)).Should(testutil.Train(2), "%s was taken back: the job trains again", b)
	Eventually(t.look).Should(Equal(t.children), "%s was taken back: the job consists of what it did before", b)
}

// create tries the value in a new job.
func (t *trial) create(name string, b boundary) {
	job, err := json.Marshal(t.s.Job(name).Range(1, 1).Obj())
	Expect(err).NotTo(HaveOccurred(), "a job is well formed")
	o := map[string]any{}
	Expect(json.Unmarshal(job, &o)).To(Succeed(), "a job is well formed")
	o["apiVersion"], o["kind"] = v1beta1.GroupVersion.String(), v1beta1.ElasticTrainingJobKind
	delete(o, "status")
	badinput.Merge(o, map[string]any{"spec": b.spec()})
	changed, err := json.Marshal(o)
	Expect(err).NotTo(HaveOccurred(), "%s is well formed", b)
	u := &unstructured.Unstructured{}
	Expect(u.UnmarshalJSON(changed)).To(Succeed(), "%s is well formed", b)
	if err := t.s.Client.Create(t.s.Context(), u); err != nil {
		Expect(b.namedIn(err.Error())).To(BeTrue(), "%s is refused without its name: %v", b, err)
		return
	}
	Expect(b.beyond).To(BeFalse(), "%s is accepted", b)
	t.settles(name, b)
	t.s.DeleteJob(name)
}

func (t *trial) awaitGone(job string) {
	Eventually(func() error {
		_, err := t.s.Fetch(job)()
		return err
	}).Should(MatchError(apierrors.IsNotFound, "NotFound"), "%s goes", job)
	Eventually(t.s.Workers(job)).Should(BeEmpty(), "%s takes its workers along", job)
}

// look describes what the job consists of, line by line, without what another attempt has otherwise.
func (t *trial) look() ([]string, error) {
	job, err := t.s.Fetch(t.name)()
	if err != nil || job.Status.Attempt == nil {
		return nil, err
	}
	pods, groups := &corev1.PodList{}, &schedulingv1beta1.PodGroupList{}
	services, told := &corev1.ServiceList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{pods, groups, services, told} {
		if err := t.s.Client.List(t.s.Context(), list, client.InNamespace(t.s.Namespace)); err != nil {
			return nil, err
		}
	}
	var children []string
	add := func(kind string, o client.Object, content any) {
		if !metav1.IsControlledBy(o, job) {
			return
		}
		text, err := json.Marshal([]any{o.GetLabels(), o.GetAnnotations(), content})
		Expect(err).NotTo(HaveOccurred(), "%s %s is described", kind, o.GetName())
		children = append(children, kind+" "+o.GetName()+": "+strings.ReplaceAll(string(text), job.Status.Attempt.ID(), "ATTEMPT"))
	}
	for i := range pods.Items {
		add("Pod", &pods.Items[i], asMade(pods.Items[i].Spec))
	}
	for i := range groups.Items {
		add("PodGroup", &groups.Items[i], groups.Items[i].Spec)
	}
	for i := range services.Items {
		add("Service", &services.Items[i], services.Items[i].Spec)
	}
	for i := range told.Items {
		add("ConfigMap", &told.Items[i], told.Items[i].Data)
	}
	return children, nil
}

// asMade is the spec of a pod without what its scheduler and the API server add.
func asMade(spec corev1.PodSpec) corev1.PodSpec {
	added := func(name string) bool { return strings.HasPrefix(name, "kube-api-access-") }
	spec.NodeName = ""
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return added(v.Name) })
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return added(m.Name) })
	}
	return spec
}
