package recorder

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/cli/why"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// tuesday is a time on the day in question, as "14:30:00".
func tuesday(clock string) time.Time {
	t, err := time.Parse(time.DateTime, "2026-11-17 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

// waits is a status of a training that waits since noon.
func waits(reason, message string, place int32) *v1beta1.ElasticTrainingJobStatus {
	st := &v1beta1.ElasticTrainingJobStatus{
		Phase: v1beta1.PhasePending, Reason: reason, Message: message, Queue: "ads", Profile: "ads", Tier: "exploratory", Place: place,
		Attempt: &v1beta1.AttemptStatus{Number: 1, StartTime: metav1.NewTime(tuesday("12:00:00")), MinReplicas: 2, MaxReplicas: 8},
	}
	st.Conditions = []metav1.Condition{{
		Type: v1beta1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(tuesday("12:00:00")),
	}}
	return st
}

// runs is a status of a training whose core runs.
func runs(since string) *v1beta1.ElasticTrainingJobStatus {
	st := waits(v1beta1.ReasonTraining, "", 0)
	st.Conditions, st.Phase = nil, v1beta1.PhaseRunning
	st.RunningSince, st.StartTime = ptr.To(metav1.NewTime(tuesday(since))), ptr.To(metav1.NewTime(tuesday(since)))
	st.WaitSeconds = ptr.To(int64(tuesday(since).Sub(tuesday("12:00:00")).Seconds()))
	return st
}

func TestBehaviour6WhyDidIWaitOnTuesday(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	at := config.Ledger{File: filepath.Join(folder, "ledger.db")}
	kept := filepath.Join(folder, "configuration.yaml")
	content := "apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\nledger: {file: " + at.File + "}\n"
	g.Expect(os.WriteFile(kept, []byte(content), 0o600)).To(Succeed())
	held := func(name, user, role, begin, end string) *corev1.Pod {
		return newPod(name, boundOn(tuesday(begin)), of(v1beta1.GroupVersion.String(), v1beta1.ElasticTrainingJobKind, "launch"),
			annotated(v1beta1.AnnotationOwner, user), labelled(v1beta1.LabelPart, role), asks(gpu, "8"),
			phase(corev1.PodSucceeded, tuesday(end)))
	}
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", UID: "ctr"}}
	launch := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "launch", UID: "launch"}}
	rec := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "rec", Name: "rank", UID: "rank"}}
	hostile := "Your cap of 8 GPUs is reached: you hold 8.\x1b[2J\nForged: " + strings.Repeat("x", 150)
	job.Status = *runs("15:10:00")
	// operate lets an operator that leads have a turn, in which something is decided, and end.
	operate := func(decided func(*Recorder)) {
		l, err := ledger.Open(t.Context(), ledger.Options{File: at.File})
		g.Expect(err).NotTo(HaveOccurred())
		c := newCluster(t, l)
		c.stand()
		c.recorder.now = func() time.Time { return tuesday("18:00:00") }
		c.recorder.place = func(context.Context, *corev1.Pod) Place { return Place{Profile: "ads", Queue: "ads"} }
		for _, pod := range []*corev1.Pod{
			held("a", "bob", "core", "11:00:00", "16:00:00"), held("b", "bob", "core", "11:00:05", "16:00:00"),
			held("c", "eve\x1b[2J", "surplus", "13:30:00", "14:31:00"), held("d", "zoe", "core", "14:31:00", "15:00:00"),
		} {
			c.set(pod)
		}
		c.recorder.beginLeading()
		decided(c.recorder)
		g.Expect(c.trainings.Add(job)).To(Succeed())
		g.Expect(c.recorder.closeGap(t.Context(), l)).To(Succeed())
		g.Expect(c.recorder.writeWaiting(t.Context(), l, true)).To(Succeed())
		g.Expect(l.Close()).To(Succeed())
	}
	operate(func(r *Recorder) {
		before := &v1beta1.ElasticTrainingJobStatus{}
		for _, c := range []struct {
			at string
			st *v1beta1.ElasticTrainingJobStatus
		}{
			{"12:00:00", waits(v1beta1.ReasonUnschedulable, "Place 2 of 3 waiting in queue ads: asks for 16 GPUs all together.", 2)},
			{"12:30:00", waits(v1beta1.ReasonUnschedulable, "Place 1 of 3 waiting in queue ads.", 1)},
			{"14:00:00", waits(v1beta1.ReasonQuotaExceeded, hostile, 0)},
			{"15:10:00", &job.Status},
		} {
			TellTraining(r, job, before, c.st, tuesday(c.at))
			before = c.st
		}
		elsewhere := runs("13:00:00")
		elsewhere.Queue = "rec"
		TellTraining(r, rec, &v1beta1.ElasticTrainingJobStatus{}, elsewhere, tuesday("13:00:01"))
		TellTraining(r, launch, &v1beta1.ElasticTrainingJobStatus{}, runs("13:30:00"), tuesday("13:30:01"))
	})
	ask := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		clock := func() time.Time { return tuesday("20:00:00") }
		root := cli.Root("tideline", why.Command(cli.NewConnection(nil), OpenLedger, clock))
		code := cli.Execute(t.Context(), root, append([]string{"why", "ads/ctr", "--config", kept}, args...), nil, &out, &errs)
		return code, out.String(), errs.String()
	}
	want := `Job ctr in namespace ads, 2026-11-17 14:30:00 UTC

It waited under a cap (QuotaExceeded) since 2026-11-17 12:00:00, for 2h30m0s by then.
  Your cap of 8 GPUs is reached: you hold 8.\x1b[2J Forged:
  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
  object ElasticTrainingJob, queue ads, profile ads, tier exploratory, workers 2..8

Until then:
  2026-11-17 12:00:00 Waited (Unschedulable): Place 2 of 3 waiting in queue ads: asks for 16 GPUs
  all together.

In queue ads 3 pods held something at that time:
  USER        TASK        ROLE     PODS  DEVICES  SINCE
  bob         ads/launch  core     2     16 gpu   2026-11-17 11:00:00
  eve\x1b[2J  ads/launch  surplus  1     8 gpu    2026-11-17 13:30:00

While it waited, these of its queue began to run:
  2026-11-17 13:30:00 Ran: ads/launch: The core of 2 began to run in queue ads, 1h30m0s after
  submission.

What happened next:
  2026-11-17 15:10:00 Ran: The core of 2 began to run in queue ads, 3h10m0s after submission.
`
	code, said, errs := ask("--at", "2026-11-17 14:30")
	g.Expect(errs).To(BeEmpty())
	g.Expect(said).To(Equal(want))
	g.Expect(code).To(BeZero())
	for line := range strings.Lines(said) {
		g.Expect(utf8.RuneCountInString(line)).To(BeNumerically("<=", 101), line)
	}
	operate(func(r *Recorder) { // what may not have been kept is told again
		TellTraining(r, job, waits(v1beta1.ReasonQuotaExceeded, "other words", 0), &job.Status, tuesday("17:00:00"))
	})
	_, again, _ := ask("--at", "2026-11-17T22:30:00+08:00")
	g.Expect(again).To(Equal(want), "and is kept once")
	_, shanghai, _ := ask("--at", "2026-11-17 22:30", "--zone", "Asia/Shanghai")
	g.Expect(shanghai).To(ContainSubstring("since 2026-11-17 20:00:00, for 2h30m0s by then."))
	_, running, _ := ask("--at", "2026-11-17 15:30:00")
	g.Expect(running).To(And(ContainSubstring("It ran since 2026-11-17 15:10:00, for 20m0s by then."),
		Not(ContainSubstring("While it waited"))))
}
