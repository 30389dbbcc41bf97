package quota

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// stopping is a profile that has notebooks stopped that were idle for two days, with fresh figures.
func stopping(t *testing.T) (*simulator, *v1beta1.ResourceQuotaProfile) {
	t.Helper()
	w := newSimulator(t)
	p := w.profile("ads", 1)
	p.Spec.StopIdleAfter = &metav1.Duration{Duration: 48 * time.Hour}
	w.o.IdleAsOf = w.now.Add(-5 * time.Minute)
	return w, p
}

// idle adds a task with a pod that may be a notebook's.
func (w *simulator) idle(namespace, name string, thousandths int64, idle time.Duration) {
	pod := &NotebookPod{
		UID: types.UID(namespace + name), Set: "set", User: "alice", Accelerators: thousandths, Idle: idle,
	}
	w.o.Idle = append(w.o.Idle, IdleTask{
		Namespace: namespace, Kind: "StatefulSet", Name: name, User: "alice", Accelerators: thousandths, Idle: idle, Notebook: pod,
	})
}

// stops are the names of the notebooks to stop, in order, and what is said of that.
func (w *simulator) stops() (names []string, said *metav1.Condition) {
	d := w.plan().Profiles[0]
	for i := range d.Stop {
		names = append(names, d.Stop[i].Namespace+"/"+d.Stop[i].Name)
	}
	return names, meta.FindStatusCondition(d.Status.Conditions, v1beta1.ConditionIdleNotebooksStopped)
}

func TestIdleNotebooksAreStoppedWhereTheProfileSaysSo(t *testing.T) {
	g := NewWithT(t)
	w, p := stopping(t)
	w.profile("web", 1)
	w.idle("ads-dev", "young", 8000, 47*time.Hour+59*time.Minute)
	w.idle("ads-dev", "small", 500, 50*time.Hour)
	w.idle("ads-dev", "large", 2000, 48*time.Hour)
	w.idle("web-dev", "elsewhere", 8000, 500*time.Hour)
	w.o.Idle = append(w.o.Idle, IdleTask{
		Namespace: "ads-dev", Kind: "Deployment", Name: "web", Accelerators: 8000, Idle: 500 * time.Hour,
	})
	names, said := w.stops()
	g.Expect(names).To(Equal([]string{"ads-dev/large", "ads-dev/small"}), "the most wasteful first")
	g.Expect(said).To(HaveValue(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1beta1.ReasonStoppingIdle),
		HaveField("Message", "Notebooks are stopped that do not use their accelerators for 48h."))))
	named := meta.FindStatusCondition(w.plan().Profiles[0].Status.Conditions, v1beta1.ConditionAcceleratorsIdle)
	g.Expect(named).To(HaveValue(HaveField("Message", And(
		ContainSubstring("StatefulSet ads-dev/young of alice (8 for 47h, its Notebook is stopped at 48h)"),
		ContainSubstring("Deployment ads-dev/web of an unknown user (8 for 500h),")))), "who is stopped, and who is not")

	s := w.plan().Profiles[0].Stop[0]
	g.Expect(s.InWords()).To(Equal("Stopped Notebook ads-dev/large of alice: its accelerators (2) were not in use for 48h as of " +
		"2026-11-20T09:55:00Z, and its profile allows 48h (stopIdleAfter). Its volumes stay. To start it again: kubectl annotate " +
		"-n ads-dev notebooks.kubeflow.org large kubeflow-resource-stopped-."))
	w.o.Profiles[0].Stopped = []v1beta1.StoppedNotebook{s.AsStopped(w.now)}
	w.o.Idle[2].Notebook.Is = NotebookStopped
	w.o.Idle[1].Notebook.Is = NotebookNone
	names, said = w.stops()
	g.Expect(names).To(BeEmpty(), "one is stopped, and of the other the API server says that it is none")
	g.Expect(said.Message).To(Equal("Notebooks are stopped that do not use their accelerators for 48h. The last were " +
		"ads-dev/large of alice at 2026-11-20T10:00:00Z (2 not in use for 48h, as of 2026-11-20T09:55:00Z). To start one again: " +
		"kubectl annotate -n ads-dev notebooks.kubeflow.org large kubeflow-resource-stopped-."))
	named = meta.FindStatusCondition(w.plan().Profiles[0].Status.Conditions, v1beta1.ConditionAcceleratorsIdle)
	g.Expect(named.Message).To(And(ContainSubstring("large of alice (2 for 48h, stopped)"),
		ContainSubstring("small of alice (0.5 for 50h).")))

	p.Spec.StopIdleAfter = nil
	w.o.Idle[2].Notebook.Is = NotebookUnasked
	names, said = w.stops()
	g.Expect(names).To(BeEmpty(), "nothing is stopped by default")
	g.Expect(said).To(BeNil())
}

func TestNoNotebookIsStoppedByGuesses(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(o *Observed, p *Profile)
		reason, says string
	}{
		"Prometheus is down": {func(o *Observed, _ *Profile) { o.IdleOld = true }, v1beta1.ReasonUseUnknown,
			"Prometheus has not told the use of accelerators since 2026-11-20T09:55:00Z. Until then no other is stopped."},
		"the operator has just started": {func(o *Observed, _ *Profile) { o.IdleOld, o.IdleAsOf = true, time.Time{} },
			v1beta1.ReasonUseUnknown, "The operator does not know the use of accelerators yet."},
		"nothing is measured": {func(o *Observed, _ *Profile) { o.IdleAsOf = time.Time{} }, v1beta1.ReasonUseUnknown,
			"The use of accelerators is unknown, because the operator asks no Prometheus or keeps no ledger."},
		"a right is missing": {func(o *Observed, _ *Profile) { o.Stopping = Stopping{v1beta1.ReasonStoppingForbidden, "It may not."} },
			v1beta1.ReasonStoppingForbidden, "It may not. Until then no other is stopped."},
		"it was refused": {func(o *Observed, _ *Profile) { o.Idle[0].Notebook.Refused = "denied by a policy" },
			v1beta1.ReasonStoppingForbidden,
			"Notebook ads-dev/nb could not be stopped: denied by a policy. The operator tries again every 10m0s."},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w, _ := stopping(t)
			w.idle("ads-dev", "nb", 1000, 500*time.Hour)
			names, _ := w.stops()
			g.Expect(names).To(HaveLen(1))
			c.change(&w.o, &w.o.Profiles[0])
			names, said := w.stops()
			g.Expect(names).To(BeEmpty())
			g.Expect(said).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", c.reason),
				HaveField("Message", HavePrefix(c.says)))))
		})
	}
	g := NewWithT(t)
	w, p := stopping(t)
	_, said := w.stops()
	p.Status.Conditions = []metav1.Condition{*said}
	w.o.IdleOld, w.o.IdleAsOf = true, time.Time{}
	_, again := w.stops()
	g.Expect(again).To(Equal(said), "a restart of the operator is no news")
	w.o.Stopping.Impossible = "It may not."
	g.Expect(w.plan().Again).To(Equal(RefusedInterval), "it asks again")
	w.o.Profiles[0].Invalid = "spec.x: Invalid"
	names, _ := w.stops()
	g.Expect(names).To(BeEmpty())
}

// Should figures be wrong after all, somebody can still step in.
func TestFewNotebooksAreStoppedAtATime(t *testing.T) {
	g := NewWithT(t)
	w, p := stopping(t)
	for i := range 40 {
		w.idle("ads-dev", fmt.Sprintf("nb-%02d", i), 1000, 72*time.Hour)
	}
	stopped := map[string]bool{}
	// round does what is decided, and writes the status, each some minutes after the one before.
	round := func(after time.Duration) int {
		w.now = w.now.Add(after)
		w.o.IdleAsOf = w.now
		d := w.plan().Profiles[0]
		for i := range d.Stop {
			s := &d.Stop[i]
			g.Expect(stopped).NotTo(HaveKey(s.Name))
			stopped[s.Name] = true
			w.o.Profiles[0].Stopped = append(w.o.Profiles[0].Stopped, s.AsStopped(w.now))
			for j := range w.o.Idle {
				if w.o.Idle[j].Name == s.Name {
					w.o.Idle[j].Notebook.Is = NotebookStopped
				}
			}
		}
		p.Status = w.plan().Profiles[0].Status
		return len(d.Stop)
	}
	g.Expect(round(0)).To(Equal(16))
	g.Expect(p.Status.StoppedNotebooks).To(HaveLen(16))
	g.Expect(round(time.Millisecond)).To(BeZero(), "not at once")
	g.Expect(round(5 * time.Minute)).To(BeZero())
	w.o.Profiles[0].Stopped = nil // The operator was started anew.
	g.Expect(round(4*time.Minute)).To(BeZero(), "the status tells another operator")
	g.Expect(round(time.Minute)).To(Equal(16))
	g.Expect(round(10 * time.Minute)).To(Equal(8))
	g.Expect(p.Status.StoppedNotebooks).To(HaveLen(16), "the last ones")
	g.Expect(p.Status.StoppedNotebooks[0].Time.Time).To(BeTemporally("~", w.now, time.Second))
	g.Expect(stopped).To(HaveLen(40))
}
