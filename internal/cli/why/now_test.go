package why

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
)

func before(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// condition came true, or false, a while before noon.
func condition(kind string, status metav1.ConditionStatus, reason, message string, since time.Duration) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: before(since)}
}

// trainingNow is a job as it is.
func trainingNow(phase v1beta1.JobPhase, reason, message string, conditions ...metav1.Condition) *v1beta1.ElasticTrainingJob {
	j := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ads", Name: "ctr", UID: "7", Generation: 2, CreationTimestamp: before(time.Hour),
	}}
	j.Spec.Owner = "bob"
	j.Status = v1beta1.ElasticTrainingJobStatus{
		ObservedGeneration: 2, Phase: phase, Reason: reason, Message: message, Conditions: conditions, Summary: "4/4 (2..8)",
	}
	return j
}

type teamStatus = v1beta1.ResourceQuotaProfileStatus

func TestNow(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	waits := func(reason, message string, since time.Duration) *v1beta1.ElasticTrainingJob {
		return trainingNow(v1beta1.PhasePending, reason, message,
			condition(v1beta1.ConditionReconciling, yes, reason, message, since))
	}
	changed := waits(v1beta1.ReasonUnschedulable, "Place 1 of 1.", time.Minute)
	changed.Generation = 3
	fresh := trainingNow("", "", "")
	merge := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "full"}}
	merge.Status.Phase, merge.Status.Reason, merge.Status.Message = v1beta1.MergeQueued, v1beta1.ReasonInLine, "Position 2."
	merge.Status.Conditions = []metav1.Condition{
		condition(v1beta1.ConditionReconciling, yes, v1beta1.ReasonInLine, "", time.Minute),
	}
	leaving := trainingNow(v1beta1.PhaseRunning, v1beta1.ReasonTraining, "All 4 ready.")
	leaving.DeletionTimestamp = ptr.To(before(time.Minute))
	failed, merging := merge.DeepCopy(), merge.DeepCopy()
	failed.Status.Phase, failed.Status.Reason = v1beta1.MergeFailed, v1beta1.ReasonMergeFailed
	merging.Status = v1beta1.MergeJobStatus{Phase: v1beta1.MergeRunning, Reason: "New"}
	for name, c := range map[string]struct {
		p    present
		says string
	}{
		"waits for room": {present{training: waits(v1beta1.ReasonUnschedulable, "Place 2 of 3 waiting in queue ads.", 41*time.Second)},
			`ElasticTrainingJob ads/ctr waits for room (Unschedulable), for 41s.
  Place 2 of 3 waiting in queue ads.

What to do:
  Nothing: it starts by itself when there is room. To start sooner, ask for fewer workers
  (minReplicas) or less per worker.
`},
		"Volcano is about to place it": {present{training: waits(v1beta1.ReasonQueued, "It fits.", 5*time.Second)},
			"waits for Volcano to place it (Queued), for 5s.\n  It fits.\n\nWhat to do:\n  Nothing: it starts by itself"},
		"Volcano does not place it": {present{training: waits(v1beta1.ReasonQueued, "It fits.", 41*time.Second)},
			"\n\nWhat to do:\n  Volcano has not placed it for 41s. If the message says that it fits, check that Volcano's\n" +
				"  scheduler runs: tideline doctor, as an administrator.\n"},
		"stalled": {present{training: trainingNow(v1beta1.PhasePending, v1beta1.ReasonUnknownTier, "There is no tier gold.",
			condition(v1beta1.ConditionStalled, yes, v1beta1.ReasonUnknownTier, "", time.Minute))},
			"ads/ctr waits (UnknownTier), for 1m0s.\n  There is no tier gold.\n\nWhat to do:\n  Nothing happens until what the message"},
		"approval": {present{training: waits(v1beta1.ReasonAwaitingApproval, "Tier gold takes approval.", time.Minute)},
			"waits for approval (AwaitingApproval), for 1m0s.\n  Tier gold takes approval.\n\nWhat to do:\n  Ask a person who "},
		"trains, and does not grow": {present{training: trainingNow(v1beta1.PhaseRunning, v1beta1.ReasonTraining, "All 4 ready.",
			condition(v1beta1.ConditionReady, yes, v1beta1.ReasonTraining, "", time.Minute),
			condition(v1beta1.ConditionFullSize, no, v1beta1.ReasonWaitingForRoom, "4 more wait.", time.Minute))},
			"trains (Training), for 1m0s.\n  All 4 ready.\n\nWhat to do:\n  Nothing: it goes on by itself.\n\nTo know as well:\n" +
				"  Workers: 4/4 (2..8) ready/existing (range).\n  Growth (WaitingForRoom): 4 more wait.\n"},
		"failed": {present{training: trainingNow(v1beta1.PhaseFailed, v1beta1.ReasonFailurePolicy, "Exit code 3.",
			condition(v1beta1.ConditionFailed, yes, v1beta1.ReasonFailurePolicy, "", time.Minute))},
			"ads/ctr has failed (FailurePolicy), for 1m0s.\n  Exit code 3.\n\nWhat to do:\n  Read the log of the worker that failed."},
		"suspended": {present{training: trainingNow(v1beta1.PhaseSuspended, v1beta1.ReasonSuspended, "It is suspended.",
			condition(v1beta1.ConditionSuspended, yes, v1beta1.ReasonSuspended, "", time.Minute))},
			"ads/ctr is suspended (Suspended), for 1m0s.\n  It is suspended.\n\nWhat to do:\n  Nothing, or let it go on: set"},
		"no operator": {present{training: fresh}, "ads/ctr is new: the operator has not looked at it yet.\n\nWhat to do:\n  The " +
			"operator has not looked at it for 1h0m0s: check that the operator runs,"},
		"changed": {present{training: changed}, "To know as well:\n  The spec was changed, and the operator has not looked at it"},
		"no condition yet": {present{training: trainingNow(v1beta1.PhasePending, v1beta1.ReasonQueued, "It fits.")},
			"ads/ctr waits for Volcano to place it (Queued).\n  It fits.\n\nWhat to do:\n  Nothing: it starts by itself"},
		"the server's clock is ahead": {present{training: waits(v1beta1.ReasonUnschedulable, "Place 1.", -3*time.Second),
			events: []corev1.Event{{Reason: "Grew", Message: "now", LastTimestamp: before(-3 * time.Second)}}},
			"waits for room (Unschedulable), for 0s.\n"},
		"a newer operator": {present{training: trainingNow("Parked", "Parking", "Level 2.")},
			"ads/ctr is in phase Parked (Parking).\n"},
		"deleted": {present{training: leaving},
			"To know as well:\n  It was deleted 1m0s ago, and goes when its pods are gone.\n"},
		"merge that failed": {present{merge: failed}, "What to do:\n  Read the log of the pod that failed, if this repeats.\n"},
		"merge that runs":   {present{merge: merging}, "MergeJob ads/full runs (New).\n"},
		"merge": {present{merge: merge}, "MergeJob ads/full is due, and waits for its turn in the pool (InLine), for 1m0s.\n" +
			"  Position 2.\n\nWhat to do:\n  Nothing: it starts by itself when its turn comes.\n"},
		"profile and events": {present{
			training: waits(v1beta1.ReasonQuotaExceeded, "Your cap of 6 GPUs is reached.\x1b[2J", time.Minute),
			profile: &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Status: teamStatus{
				Accelerators: "6/8/-", Running: 1, Waiting: 2, Users: []v1beta1.UsageStatus{{Name: "bob", Held: "6"}},
				OverBudget: []v1beta1.OverBudget{{User: "bob", UsedHours: 9, MaxHours: 8, Window: metav1.Duration{Duration: time.Hour}}},
			}},
			events: []corev1.Event{
				{Reason: "GaveWay", Message: "later", LastTimestamp: before(time.Minute)},
				{Reason: "Grew", Message: "earlier", EventTime: metav1.NewMicroTime(noon.Add(-2 * time.Minute))},
			},
			unread: []string{"You may not read x."},
		}, `waits for quota (QuotaExceeded), for 1m0s.
  Your cap of 6 GPUs is reached.\x1b[2J

What to do:
  Nothing: it starts by itself when its turn comes.

To know as well:
  Profile team: accelerators used/share/limit 6/8/-; jobs: 1 running, 2 waiting, 0 awaiting
  approval.
  bob holds 6 accelerators there.
  bob has used 9 of 8 accelerator hours of the last 1h0m0s.
  You may not read x.

Last events:
  2m0s ago Grew: earlier
  1m0s ago GaveWay: later
`},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			explain(&c.p, noon).print(&said, noon)
			NewWithT(t).Expect(said.String()).To(ContainSubstring(c.says))
		})
	}
}

// Every reason of the API has words or a phase that has some, and no advice is without an end.
func TestWordsAreSentences(t *testing.T) {
	g := NewWithT(t)
	for reason, w := range ofReason {
		g.Expect(w.state).NotTo(BeEmpty(), reason)
		g.Expect(w.do == "" || strings.HasSuffix(w.do, ".")).To(BeTrue(), reason)
	}
	for _, phase := range []v1beta1.JobPhase{
		v1beta1.PhasePending, v1beta1.PhaseRunning, v1beta1.PhaseSuspended, v1beta1.PhaseSucceeded, v1beta1.PhaseFailed,
	} {
		g.Expect(wordsOf(status{phase: string(phase), reason: "New"}).state).NotTo(BeEmpty(), string(phase))
	}
	for _, phase := range []v1beta1.MergePhase{
		v1beta1.MergeWaiting, v1beta1.MergeQueued, v1beta1.MergeStarting, v1beta1.MergeRunning, v1beta1.MergeMerged,
		v1beta1.MergeTimedOut, v1beta1.MergeFailed, v1beta1.MergeSuspended,
	} {
		g.Expect(wordsOf(status{phase: string(phase), reason: "New"}).state).NotTo(BeEmpty(), string(phase))
	}
}

// A user who may read the jobs of one namespace, and nothing else, is answered.
func TestNowNeedsTheJobOnly(t *testing.T) {
	job := trainingNow(v1beta1.PhasePending, v1beta1.ReasonUnschedulable, "Place 1 of 1.")
	job.Status.Profile = "team"
	both := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "both"}}
	other := &v1beta1.ElasticTrainingJob{ObjectMeta: both.ObjectMeta}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "e"}, Reason: "Grew",
		InvolvedObject: corev1.ObjectReference{UID: "7"}}
	cluster := func(mayRead ...string) client.Client {
		scheme := runtime.NewScheme()
		NewWithT(t).Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
		NewWithT(t).Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
		refuse := func(o any) error {
			kind := fmt.Sprintf("%T", o)
			if slices.ContainsFunc(mayRead, func(k string) bool { return strings.Contains(kind, k) }) {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", nil)
		}
		return fake.NewClientBuilder().WithScheme(scheme).
			WithObjects(job.DeepCopy(), both.DeepCopy(), other.DeepCopy(), event.DeepCopy()).
			WithIndex(&corev1.Event{}, byUID, func(o client.Object) []string {
				return []string{string(o.(*corev1.Event).InvolvedObject.UID)}
			}).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, w client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if err := refuse(o); err != nil {
					return err
				}
				return w.Get(ctx, k, o, opts...)
			},
			List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
				if err := refuse(l); err != nil {
					return err
				}
				return w.List(ctx, l, opts...)
			},
		}).Build()
	}
	ask := func(c client.Client, args ...string) (int, string, string) {
		root := cli.Root("tideline", Command(cli.Connected(c), open, func() time.Time { return noon }))
		var out, errs bytes.Buffer
		code := cli.Execute(t.Context(), root, slices.Concat([]string{"why"}, args), nil, &out, &errs)
		return code, out.String(), errs.String()
	}
	g := NewWithT(t)
	code, said, errs := ask(cluster("ElasticTrainingJob"), "ctr", "-n", "ads")
	g.Expect(errs).To(BeEmpty())
	g.Expect(code).To(BeZero())
	g.Expect(said).To(And(ContainSubstring("waits for room"), ContainSubstring("Its events cannot be read: "),
		ContainSubstring("You may not read its profile team.")))

	code, said, _ = ask(cluster("Job", "Event"), "ads/ctr", "-o", "json")
	g.Expect(code).To(BeZero())
	var n Now
	g.Expect(json.Unmarshal([]byte(said), &n)).To(Succeed())
	g.Expect(n.Reason).To(Equal(v1beta1.ReasonUnschedulable))
	g.Expect(n.Events).To(ConsistOf(HaveField("Reason", "Grew")))

	for _, c := range []struct{ cluster, args, says string }{
		{"Job", "ads/none", "tideline why: there is no ElasticTrainingJob or MergeJob none in namespace ads; of a deleted one, "},
		{"Nothing", "ads/ctr", "tideline why: *v1beta1.MergeJob is forbidden"},
		{"ElasticTrainingJob", "ads/none", "tideline why: there is no ElasticTrainingJob none in namespace ads, and whether there is " +
			"a MergeJob cannot be read: *v1beta1.MergeJob is forbidden"},
		{"Job", "ads/both", "tideline why: there is an ElasticTrainingJob and a MergeJob of this name: say which"},
	} {
		code, said, errs := ask(cluster(c.cluster), strings.Fields(c.args)...)
		g.Expect(errs).To(HavePrefix(c.says))
		g.Expect(said).To(BeEmpty())
		g.Expect(code).To(Equal(1))
	}
	code, _, _ = ask(cluster("Job"), "ads/both", "--kind", "merge")
	g.Expect(code).To(BeZero())
	code, _, errs = ask(cluster("Job"), "ads/both", "--kind", "pod")
	g.Expect(errs).To(Equal("tideline why: --kind \"pod\": it is job or merge; -h says more\n"))
	g.Expect(code).To(Equal(2))
}
