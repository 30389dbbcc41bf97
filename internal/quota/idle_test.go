package quota

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestIdleAcceleratorsAreNamed(t *testing.T) {
	g := NewWithT(t)
	w, p := guarded(t)
	w.o.Namespaces = append(w.o.Namespaces, Namespace{Name: "elsewhere"})
	said := func() *metav1.Condition {
		d := w.plan()
		g.Expect(d.Again).To(And(BeNumerically(">", 0), BeNumerically("<=", idleInterval)), "no watch reports what was used")
		return meta.FindStatusCondition(d.Profiles[0].Status.Conditions, v1beta1.ConditionAcceleratorsIdle)
	}
	namespace := w.plan().Profiles[0].Status.Namespaces[0]
	task := func(namespace, name, user string, thousandths int64, idle time.Duration) IdleTask {
		return IdleTask{Namespace: namespace, Kind: "StatefulSet", Name: name, User: user, Accelerators: thousandths, Idle: idle}
	}
	w.o.Idle = []IdleTask{task(namespace, "busy", "bob", 1000, 0), task(namespace, "young", "bob", 1000, 23*time.Hour)}
	g.Expect(said()).To(BeNil(), "a day is the default")
	w.o.Idle = append(w.o.Idle, task(namespace, "half", "", 500, 24*time.Hour),
		task(namespace, "nb", "alice@example.com", 2000, 30*time.Hour+20*time.Minute),
		task("elsewhere", "nb", "eve", 8000, 90*time.Hour))
	g.Expect(said()).To(HaveValue(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1beta1.ReasonNotInUse),
		HaveField("Message", "Not in use for 24h or longer: 2.5 accelerators. End what is not needed: StatefulSet "+namespace+
			"/nb of alice@example.com (2 for 30h), StatefulSet "+namespace+"/half of an unknown user (0.5 for 24h)."))),
		"the most wasteful first, and nothing of others' namespaces")
	p.Spec.IdleAfter = &metav1.Duration{Duration: 25 * time.Hour}
	g.Expect(said()).To(HaveValue(HaveField("Message", HavePrefix("Not in use for 25h or longer: 2 accelerators."))))
	for i := range 9 {
		w.o.Idle = append(w.o.Idle, task(namespace, string(rune('a'+i)), "bob", 1000, 26*time.Hour))
	}
	g.Expect(said()).To(HaveValue(HaveField("Message", HaveSuffix(", 5 more."))))
	w.o.IdleAsOf = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	g.Expect(said()).To(HaveValue(HaveField("Message", HaveSuffix(", 5 more. As of 2026-11-20T09:00:00Z."))))
	w.o.IdleOld = true
	stale := said()
	g.Expect(stale.Message).To(HaveSuffix(" As of 2026-11-20T09:00:00Z. Prometheus has not answered since."))
	p.Status.Conditions = []metav1.Condition{*stale}
	w.o.Idle, w.o.IdleAsOf = nil, time.Time{}
	g.Expect(meta.FindStatusCondition(w.plan().Profiles[0].Status.Conditions, v1beta1.ConditionAcceleratorsIdle)).To(
		HaveValue(HaveField("Message", stale.Message)), "an operator that has not read its ledger knows nothing better")
	w.o.IdleOld = false
	d := w.plan()
	g.Expect(meta.FindStatusCondition(d.Profiles[0].Status.Conditions, v1beta1.ConditionAcceleratorsIdle)).To(BeNil())
}
