package elastictrainingjob

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/test/testutil"
)

func TestLabelsArePutBackOnThePodsThatWereSeenAndToldOnce(t *testing.T) {
	g := NewWithT(t)
	sent, mu := map[string]string{}, sync.Mutex{}
	var answer error
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{Patch: func(
		_ context.Context, _ client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption,
	) error {
		content, err := patch.Data(o)
		g.Expect(patch.Type()).To(Equal(types.MergePatchType))
		mu.Lock()
		defer mu.Unlock()
		sent[o.GetName()] = string(content)
		o.SetResourceVersion("8")
		return errors.Join(err, answer)
	}}).Build()
	recorder := events.NewFakeRecorder(8)
	r := &Reconciler{
		children: children{kube.Applier{Creator: kube.Creator{Client: c}, Writes: kube.NewWrites(nil, clientgoscheme.Scheme)}},
		memory:   newMemory(), recorder: recorder,
	}
	job := testutil.Job("ctr").Range(2, 4).Obj()
	job.UID = "job"
	d := training.Decision{RestoreMarks: []training.Restored{
		{Index: 1, UID: "u-1", Marks: []podstate.Mark{{Key: "tideline.io/part", Have: "gold", Want: "core"}}},
		{Index: 3, UID: "u-3", Marks: []podstate.Mark{
			{Key: "tideline.io/owner-hash", Have: "x"}, {Key: "tideline.io/owner", Annotation: true, Want: "bob"},
		}},
	}}
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	restore := func() {
		r.restoreMarks(t.Context(), jobstate.Observed{Job: job, PutBack: r.memory.putBackOn(job)}, d, now)
	}
	restore()
	g.Expect(sent).To(Equal(map[string]string{
		"ctr-worker-1": `{"metadata":{"labels":{"tideline.io/part":"core"},"uid":"u-1"}}`,
		"ctr-worker-3": `{"metadata":{"annotations":{"tideline.io/owner":"bob"},"labels":{"tideline.io/owner-hash":null},"uid":"u-3"}}`,
	}))
	g.Expect(recorder.Events).To(Receive(And(HavePrefix("Warning LabelsRestored Worker 1's pod: label tideline.io/part was gold "+
		"and is core again. So it was on 1 more."), HaveSuffix("write others to mark pods of your own."))))
	g.Expect(r.memory.putBackOn(job)).To(Equal(jobstate.PutBack{Last: now, Times: 1}))
	restore()
	g.Expect(recorder.Events).NotTo(Receive(), "who fights is told once")
	g.Expect(r.memory.putBackOn(job).Times).To(Equal(2))

	answer = apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "ctr-worker-1")
	restore()
	answer = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "ctr-worker-1", errors.New("a policy says no"))
	restore()
	g.Expect(r.memory.putBackOn(job).Times).To(Equal(4), "what fails is tried again after the pause")
	another := job.DeepCopy()
	another.UID = "another"
	g.Expect(r.memory.putBackOn(another)).To(BeZero(), "a job of the same name begins anew")
}

// Whoever may create pods may say of them that a job of that name controls them which never was.
func TestDeparturesOfOthersAreForgotten(t *testing.T) {
	g := NewWithT(t)
	m := newMemory()
	job := jobNamed("ctr")
	job.UID = "job"
	key := client.ObjectKeyFromObject(job)
	gone := func(owner, pod types.UID) {
		m.noteGone(key, owner, pod, podstate.Worker{UID: pod, Phase: corev1.PodFailed})
	}
	gone(job.UID, "recorded")
	gone(job.UID, "since")
	gone("forged", "x")
	m.settle(job, []podstate.Departure{{UID: "recorded"}})
	left := m.jobs[key].departures
	g.Expect(left).To(HaveLen(1))
	g.Expect(left[0].UID).To(Equal(types.UID("since")))
}

// The label of a pod that is a member was changed, and the pod deleted before that was put back.
func TestAPodIsRememberedAsOfItsAttemptWhateverItsLabelSays(t *testing.T) {
	g := NewWithT(t)
	m := newMemory()
	job := &v1beta1.ElasticTrainingJob{}
	job.Namespace, job.Name, job.UID = "ads", "ctr", "job"
	job.Status.Attempt = &v1beta1.AttemptStatus{Number: 1}
	job.Status.Members = []v1beta1.Member{{Index: 1, UID: "u-1"}}
	m.noteGone(client.ObjectKeyFromObject(job), job.UID, "u-1", podstate.Worker{
		Index: 1, UID: "u-1", Attempt: "gold", Phase: corev1.PodSucceeded,
	})
	gone, complete := m.unsettled(job, nil)
	g.Expect(complete).To(BeTrue())
	g.Expect(gone).To(HaveLen(1))
	g.Expect(gone[0].Attempt).To(Equal(job.Status.Attempt.ID()))
}
