package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

var noon = time.Unix(1000, 0)

// life is a time of life before noon, as the demo shows it.
func life(d time.Duration) time.Time { return noon.Add(-d / scale) }

// put adds a merge with a model whose newest increment and full model are so old.
func (v *poolView) put(name string, increment, full time.Duration, status v1beta1.MergeJobStatus) {
	v.merges[name] = &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status}
	v.increments[name], v.fulls[name] = life(increment), life(full)
}

// pool is one in which one merges, another ends, a third asks, a fourth waits in line, and a fifth is not due.
func pool() *poolView {
	v := newPoolView()
	first, second := int32(1), int32(2)
	run := &v1beta1.MergeRun{ID: "r"}
	placed := &v1beta1.MergeRun{ID: "p", PlaceTime: &metav1.Time{Time: noon}}
	ended := placed.DeepCopy()
	ended.Outcome = v1beta1.OutcomeMerged
	v.put("idle", 12*time.Minute, 90*time.Minute, v1beta1.MergeJobStatus{Summary: "Waiting (weight 15 < 100)"})
	v.put("second", 9*time.Minute, 11*time.Hour, v1beta1.MergeJobStatus{Summary: "Queued (2 of 2)", Position: &second})
	v.put("asks", 0, 10*time.Hour, v1beta1.MergeJobStatus{Summary: "Queued (asking)", Position: &first, Run: run})
	v.put("merges", 3*time.Minute, 25*time.Hour, v1beta1.MergeJobStatus{Summary: "Running (4/4)", Run: placed})
	v.put("ends", 0, 0, v1beta1.MergeJobStatus{Summary: "Merged", Run: ended})
	return v
}

func TestRows(t *testing.T) {
	const want = `MODEL     INCREMENT FULL MODEL  0 h               10 h               20 h  MERGE
ends          0 min      0 min  F                   :                   |  Merged
merges        3 min     25.0 h  i                   :                   F  Running (4/4)
asks          0 min     10.0 h  i                   F                   |  Queued (asking)
second        9 min     11.0 h  i                   : F                 |  Queued (2 of 2)
idle         12 min      1.5 h  i  F                :                   |  Waiting (weight 15 < 100)`
	lines := append([]string{rowHeader("MODEL", "MERGE")}, modelRows(pool(), noon)...)
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	const wantRow = "+1.7 h       12 min     25.0 h  i                   :                   F  0 merging, 2 in line"
	if got := row(pool(), 10*time.Second, noon); got != wantRow {
		t.Errorf("%s\nwant\n%s", got, wantRow)
	}
	for _, line := range lines {
		if len(line) > width {
			t.Errorf("wider than a terminal: %s", line)
		}
	}
}

// A program begins when all pods of its run run, and not before.
func TestGangs(t *testing.T) {
	v := newPoolView()
	add := func(attempt string, phase corev1.PodPhase) *corev1.Pod {
		v.pods = append(v.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1beta1.LabelAttempt: attempt}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{
				{Name: "TIDELINE_RUN_ID", Value: "r"}, {Name: "TIDELINE_COUNT", Value: "2"},
			}}}},
			Status: corev1.PodStatus{Phase: phase},
		})
		return &v.pods[len(v.pods)-1]
	}
	for attempt, phases := range map[string][]corev1.PodPhase{
		"all": {corev1.PodRunning, corev1.PodRunning}, "some": {corev1.PodRunning, corev1.PodPending},
		"over": {corev1.PodSucceeded, corev1.PodSucceeded}, "fewer": {corev1.PodRunning},
	} {
		for _, phase := range phases {
			add(attempt, phase)
		}
	}
	add("leaves", corev1.PodRunning)
	add("leaves", corev1.PodRunning).DeletionTimestamp = &metav1.Time{Time: noon}
	if got := v.gangs(); len(got) != 1 || len(got["all"]) != 2 {
		t.Errorf("gangs: %v", got)
	}
}

func TestTally(t *testing.T) {
	ran := &metav1.Time{Time: noon}
	merged := v1beta1.MergeResult{Run: "r1", Outcome: v1beta1.OutcomeMerged}
	for name, test := range map[string]struct {
		change func(*poolView)
		want   string
	}{
		"all is well":    {func(*poolView) {}, ""},
		"gangs compete":  {func(v *poolView) { v.waiting = 2 }, "2 gangs waited for a place"},
		"a merge failed": {fail, "1 merges ended without a full model, the first: Failed of idle: no"},
		"a model is old": {func(v *poolView) { v.fulls["idle"] = life(21 * time.Hour) }, "a full model was 21.0 h (idle) old"},
	} {
		t.Run(name, func(t *testing.T) {
			tally, v := newTally(), pool()
			v.fulls["merges"] = life(9 * time.Hour)
			v.merges["ends"].Status.History = []v1beta1.MergeResult{merged}
			v.merges["merges"].Status.QueueTime, v.merges["merges"].Status.Run.RunTime = &metav1.Time{Time: life(2 * time.Hour)}, ran
			v.merges["second"].Status.QueueTime = &metav1.Time{Time: life(time.Hour)}
			test.change(v)
			tally.note(v, noon)
			tally.note(v, noon)
			err := tally.held()
			if (err == nil) != (test.want == "") || (err != nil && !strings.HasPrefix(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if tally.merged["ends"] != 1 || tally.wait.String() != "2.0 h (merges)" || tally.increment.String() != "12 min (idle)" {
				t.Errorf("%v", tally)
			}
			if got := tally.least(2); got != 0 {
				t.Errorf("the least is %d of two models, of which one was never merged", got)
			}
			if got := tally.least(1); got != 1 {
				t.Errorf("the least is %d of one model", got)
			}
		})
	}
}

// fail has a run of a merge end badly.
func fail(v *poolView) {
	v.merges["idle"].Status.History = []v1beta1.MergeResult{{Run: "r2", Outcome: v1beta1.OutcomeFailed, Message: "no"}}
}
