package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// Kubeflow's Notebooks, and the annotation by which one is stopped until its user removes it. Its value is the time.
const (
	NotebookGroup, NotebookKind, NotebookResource = "kubeflow.org", "Notebook", "notebooks"

	AnnotationNotebookStopped = "kubeflow-resource-stopped"
)

// stopsPerInterval is how many Notebooks of a profile are stopped within idleInterval: the status names each of them.
const stopsPerInterval = v1beta1.StoppedNotebooksLimit

// NotebookPod is a pod with accelerators that may be a Notebook's: it says so, and has the name of the first pod of the
// StatefulSet that controls it. Whoever may create pods in its namespace can write all of that, so it proves nothing: before a
// Notebook is stopped, the API server is asked whether StatefulSet and Notebook are as the pod says.
type NotebookPod struct {
	// UID of the pod, and Set that of its StatefulSet.
	UID, Set types.UID
	// User who owns the pod, empty if unknown, and Accelerators that it holds, in thousandths.
	User         string
	Accelerators int64
	// Idle is for how long they have been seen without use, on days on which no other pod of the StatefulSet was seen.
	Idle time.Duration
	// Is is what became of the last try to stop it.
	Is NotebookState
	// Refused is why the API server refused that; empty if it did not.
	Refused string
}

// NotebookState is what is known of a pod that may be a Notebook's.
type NotebookState string

const (
	// NotebookUnasked is for pods about which the API server was not asked.
	NotebookUnasked NotebookState = ""
	// NotebookNone is for pods of no Notebook.
	NotebookNone NotebookState = "None"
	// NotebookStopped is for pods of a Notebook that is stopped, by the operator or before.
	NotebookStopped NotebookState = "Stopped"
)

// NotebookStop is a Notebook to stop, if the pod is of it.
type NotebookStop struct {
	Namespace, Name string
	Pod             NotebookPod
	// After is the time without use that the profile allows, and AsOf until when the use is known.
	After time.Duration
	AsOf  time.Time
}

// Stopping is what is known of how Notebooks are stopped.
type Stopping struct {
	// Impossible is in a sentence or two why none can be, and what to do; empty if they can. Reason is the same in one word.
	Reason, Impossible string
}

// planStops decides which Notebooks are stopped, and says whether they are.
func (r *review) planStops() {
	r.st.StoppedNotebooks = lastStopped(r.st.StoppedNotebooks, r.given.Stopped)
	after, o := r.profile.Spec.StopIdleAfter, &r.p.o
	switch {
	case r.given.Invalid != "":
	case after == nil:
		r.conditionWriter().Remove(v1beta1.ConditionIdleNotebooksStopped)
	case o.Stopping.Impossible != "":
		r.sayNotStopping(o.Stopping.Reason, o.Stopping.Impossible)
		r.p.wakeAfter(RefusedInterval)
	case !o.IdleAsOf.IsZero() && o.IdleOld:
		r.sayNotStopping(v1beta1.ReasonUseUnknown, fmt.Sprintf("Prometheus has not told the use of accelerators since %s.",
			o.IdleAsOf.UTC().Format(time.RFC3339)))
	case o.IdleOld && meta.FindStatusCondition(r.st.Conditions, v1beta1.ConditionIdleNotebooksStopped) != nil:
		// The operator has just started. What was last said will be true again in seconds.
	case o.IdleOld:
		r.sayNotStopping(v1beta1.ReasonUseUnknown, "The operator does not know the use of accelerators yet.")
	case o.IdleAsOf.IsZero():
		r.sayNotStopping(v1beta1.ReasonUseUnknown, "The use of accelerators is unknown, because the operator asks no Prometheus or "+
			"keeps no ledger. An administrator names both in its configuration (prometheus.url, ledger).")
	default:
		r.chooseStops(after.Duration)
		r.sayStopping(after.Duration)
	}
}

// chooseStops chooses the Notebooks to stop, the most wasteful first, and no more than the status can name in idleInterval:
// should figures be wrong after all, somebody can still step in.
func (r *review) chooseStops(after time.Duration) {
	room := stopsPerInterval
	for i := range r.st.StoppedNotebooks {
		if r.p.at.Sub(r.st.StoppedNotebooks[i].Time.Time) < idleInterval {
			room--
		}
	}
	var due []IdleTask
	for _, t := range r.idleTasks() {
		if n := t.Notebook; n != nil && n.Is == NotebookUnasked && n.Refused == "" && n.Idle >= after {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b IdleTask) int {
		return compareWaste(a.wasteOf(a.Notebook.Accelerators, a.Notebook.Idle), b.wasteOf(b.Notebook.Accelerators, b.Notebook.Idle))
	})
	for i := range due[:min(len(due), max(room, 0))] {
		t := &due[i]
		r.d.Stop = append(r.d.Stop, NotebookStop{
			Namespace: t.Namespace, Name: t.Name, Pod: *t.Notebook, After: after, AsOf: r.p.o.IdleAsOf,
		})
	}
}

// sayStopping says that Notebooks are stopped, and which were last, or which one could not be.
func (r *review) sayStopping(after time.Duration) {
	for _, t := range r.idleTasks() {
		if t.Notebook != nil && t.Notebook.Refused != "" {
			r.sayNotStopping(v1beta1.ReasonStoppingForbidden, fmt.Sprintf("Notebook %s/%s could not be stopped: %s. The operator tries "+
				"again every %s.", t.Namespace, t.Name, strings.TrimSuffix(t.Notebook.Refused, "."), text.FormatDuration(idleInterval)))
			return
		}
	}
	message := fmt.Sprintf("Notebooks are stopped that do not use their accelerators for %s.", text.FormatDuration(after))
	if last := r.st.StoppedNotebooks; len(last) > 0 {
		words := make([]string, 0, namedConflicts)
		for i := range last[:min(len(last), namedConflicts)] {
			s := &last[i]
			words = append(words, fmt.Sprintf("%s/%s of %s at %s (%s not in use for %dh, as of %s)", s.Namespace, s.Name,
				cmp.Or(s.User, unknownUser), s.Time.UTC().Format(time.RFC3339), s.Held, s.IdleHours, s.AsOf.UTC().Format(time.RFC3339)))
		}
		message += fmt.Sprintf(" The last were %s. To start one again: %s.", strings.Join(words, ", "),
			StartNotebookAgain(last[0].Namespace, last[0].Name))
	}
	r.setCondition(v1beta1.ConditionIdleNotebooksStopped, metav1.ConditionTrue, v1beta1.ReasonStoppingIdle, message)
}

func (r *review) sayNotStopping(reason, why string) {
	r.setCondition(v1beta1.ConditionIdleNotebooksStopped, metav1.ConditionFalse, reason, why+" Until then no other is stopped.")
}

// stopsAt says of a task that is named when its Notebook is stopped; empty if it is not, or that is not known.
func (r *review) stopsAt(t *IdleTask) string {
	after, o := r.profile.Spec.StopIdleAfter, &r.p.o
	switch {
	case after == nil || t.Notebook == nil || t.Notebook.Is == NotebookNone || o.Stopping.Impossible != "":
		return ""
	case t.Notebook.Is == NotebookStopped:
		return ", stopped"
	}
	return ", its Notebook is stopped at " + text.FormatDuration(after.Duration)
}

// StartNotebookAgain is the command by which a user starts a Notebook that was stopped.
func StartNotebookAgain(namespace, name string) string {
	return fmt.Sprintf("kubectl annotate -n %s %s.%s %s %s-",
		namespace, NotebookResource, NotebookGroup, name, AnnotationNotebookStopped)
}

// AsStopped is what the status says of a Notebook that was stopped at a time.
func (s *NotebookStop) AsStopped(at time.Time) v1beta1.StoppedNotebook {
	return v1beta1.StoppedNotebook{
		Namespace: s.Namespace, Name: s.Name, User: text.ClipLine(s.Pod.User, longestUser),
		Held: text.FormatThousandths(s.Pod.Accelerators), IdleHours: int64(s.Pod.Idle / time.Hour),
		AsOf: metav1.NewTime(s.AsOf).Rfc3339Copy(), Time: metav1.NewTime(at).Rfc3339Copy(),
	}
}

// longestUser is the longest name of a user in a status, in bytes.
const longestUser = 256

// InWords says who was stopped, and how the user starts it again.
func (s *NotebookStop) InWords() string {
	return fmt.Sprintf("Stopped Notebook %s/%s of %s: its accelerators (%s) were not in use for %s as of %s, and its profile "+
		"allows %s (stopIdleAfter). Its volumes stay. To start it again: %s.", s.Namespace, s.Name, cmp.Or(s.Pod.User, unknownUser),
		text.FormatThousandths(s.Pod.Accelerators), text.FormatDuration(s.Pod.Idle.Truncate(time.Minute)),
		s.AsOf.UTC().Format(time.RFC3339), text.FormatDuration(s.After), StartNotebookAgain(s.Namespace, s.Name))
}

// lastStopped are the last of both lists, the latest first, each once.
func lastStopped(written, known []v1beta1.StoppedNotebook) []v1beta1.StoppedNotebook {
	all := slices.Concat(written, known)
	slices.SortStableFunc(all, func(a, b v1beta1.StoppedNotebook) int {
		return cmp.Or(b.Time.Compare(a.Time.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	all = slices.CompactFunc(all, func(a, b v1beta1.StoppedNotebook) bool {
		return a.Time.Equal(&b.Time) && a.Namespace == b.Namespace && a.Name == b.Name
	})
	return all[:min(len(all), v1beta1.StoppedNotebooksLimit)]
}
