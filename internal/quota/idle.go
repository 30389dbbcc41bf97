package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// IdleTask is a task that is none of Tideline's jobs, such as a notebook, and that holds accelerators.
type IdleTask struct {
	Namespace string
	// Kind and Name of what controls its pods, or Pod and its own; User who owns it, empty if unknown.
	Kind, Name, User string
	// Accelerators that its pods hold, in thousandths.
	Accelerators int64
	// Idle is for how long they have been seen without use; 0 if they are in use, or were not measured.
	Idle time.Duration
	// Notebook is the pod of it that may be a Notebook's; nil for none.
	Notebook *NotebookPod
}

// unknownUser stands for the owner of a pod that names none.
const unknownUser = "an unknown user"

// defaultIdle is the time without use from which on accelerators are named, of a profile without a time.
const defaultIdle = 24 * time.Hour

// setAcceleratorsIdle names what holds accelerators and has not used them for as long as the profile says, the most wasteful
// first.
func (r *review) setAcceleratorsIdle() {
	if r.p.o.IdleOld && r.p.o.IdleAsOf.IsZero() {
		return // The operator has just started. What was last said has its date.
	}
	after := ptr.Deref(r.profile.Spec.IdleAfter, metav1.Duration{Duration: defaultIdle}).Duration
	idle := slices.DeleteFunc(r.idleTasks(), func(t IdleTask) bool { return t.Idle < after })
	if len(idle) == 0 {
		r.conditionWriter().Remove(v1beta1.ConditionAcceleratorsIdle)
		return
	}
	slices.SortFunc(idle, func(a, b IdleTask) int {
		return compareWaste(a.wasteOf(a.Accelerators, a.Idle), b.wasteOf(b.Accelerators, b.Idle))
	})
	var words []string
	all := int64(0)
	for i := range idle {
		t := &idle[i]
		all = addCapped(all, t.Accelerators)
		if i < namedConflicts {
			words = append(words, fmt.Sprintf("%s %s/%s of %s (%s for %s%s)", t.Kind, t.Namespace, t.Name, cmp.Or(t.User, unknownUser),
				text.FormatThousandths(t.Accelerators), text.FormatDuration(t.Idle.Truncate(time.Hour)), r.stopsAt(t)))
		}
	}
	if more := len(idle) - namedConflicts; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	r.setCondition(v1beta1.ConditionAcceleratorsIdle, metav1.ConditionTrue, v1beta1.ReasonNotInUse, fmt.Sprintf(
		"Not in use for %s or longer: %s accelerators. End what is not needed: %s.%s", text.FormatDuration(after),
		text.FormatThousandths(all), strings.Join(words, ", "), r.p.sayIdleAsOf()))
}

// idleTasks are those in the profile's namespaces.
func (r *review) idleTasks() []IdleTask {
	ours := map[string]bool{}
	for _, n := range r.p.namespaces[r.profile.Name] {
		ours[n] = true
	}
	return slices.DeleteFunc(slices.Clone(r.p.o.Idle), func(t IdleTask) bool { return !ours[t.Namespace] })
}

// waste is how much a task wastes, in thousandths of an accelerator × seconds.
type waste struct {
	amount float64
	task   string
}

func (t *IdleTask) wasteOf(accelerators int64, idle time.Duration) waste {
	return waste{float64(accelerators) * idle.Seconds(), t.Namespace + "/" + t.Name}
}

// compareWaste orders the most wasteful first, and others by name.
func compareWaste(a, b waste) int {
	return cmp.Or(cmp.Compare(b.amount, a.amount), cmp.Compare(a.task, b.task))
}

// sayIdleAsOf says of when the figures are, as a sentence after another.
func (p *planner) sayIdleAsOf() string {
	if p.o.IdleAsOf.IsZero() {
		return ""
	}
	said := fmt.Sprintf(" As of %s.", p.o.IdleAsOf.UTC().Format(time.RFC3339))
	if p.o.IdleOld {
		said += " Prometheus has not answered since."
	}
	return said
}
