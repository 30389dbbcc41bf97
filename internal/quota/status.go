package quota

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// say writes figures, words and conditions of a profile.
func (r *review) say(lent map[string]capacity.Amounts) {
	name := r.profile.Name
	namespaces := r.p.namespaces[name]
	r.st.NamespaceCount = int32(len(namespaces))
	r.st.Namespaces = namespaces[:min(len(namespaces), v1alpha1.ProfileNamespacesLimit)]
	if q, there := r.p.queues[name]; there && q.Labels[v1alpha1.LabelProfile] == name {
		r.st.Queue = name
	} else {
		r.st.Queue = ""
	}
	r.sayFigures(lent[name])
	unknown := r.sayOverBudget()
	reason, message := r.summary()
	r.st.Reason, r.st.Message = reason, text.Clip(message, conditions.MessageLimit)
	r.setReady(reason, message)
	r.setReconciling(reason, message)
	r.setStalled(reason, message)
	r.setNamespaceConflict()
	r.setOvercommitted()
	r.setBudgetExceeded(unknown)
	r.conditions().Settle(r.profile.Status.Conditions)
}

// sayFigures tells what the team has and uses.
func (r *review) sayFigures(lent capacity.Amounts) {
	share := r.p.shares[r.profile.Name]
	used, borrowed, lends := capacity.Amounts{}, capacity.Amounts{}, capacity.Amounts{}
	for name := range share {
		used[name] = r.used[name]
		if beyond := r.used[name] - share[name]; beyond > 0 {
			borrowed[name] = beyond
		}
		if lent[name] > 0 {
			lends[name] = lent[name]
		}
	}
	r.st.Deserved, r.st.Used, r.st.Borrowed, r.st.Lent = listOf(share), listOf(used), listOf(borrowed), listOf(lends)
	r.sayHolders()
	offers := r.p.o.Offers[r.profile.Name]
	r.st.Available = offers[:min(len(offers), v1alpha1.AvailableLimit)]
	r.st.Running, r.st.Waiting, r.st.AwaitingApproval = 0, 0, 0
	for _, n := range r.p.namespaces[r.profile.Name] {
		r.st.Running += r.p.o.Jobs[n].Running
		r.st.Waiting += r.p.o.Jobs[n].Waiting
		r.st.AwaitingApproval += r.p.o.Jobs[n].AwaitingApproval
	}
}

// accelerators is used/deserved/capability of all accelerators that the operator's configuration knows, of which so many
// thousandths are used.
func (r *review) accelerators(used int64) string {
	cfg, share := r.p.o.Config, r.p.shares[r.profile.Name]
	limits := capacity.AmountsOf(r.profile.Spec.Queue.Capability)
	limited, some := true, false
	for _, name := range cfg.CountedAccelerators() {
		forms := cfg.Forms(name)
		if slices.ContainsFunc(forms, in(share)) {
			some, limited = true, limited && slices.ContainsFunc(forms, in(limits))
		}
	}
	if !some {
		return ""
	}
	limit := "-"
	if limited {
		limit = text.Thousandths(cfg.AcceleratorsIn(of(limits)))
	}
	return text.Thousandths(used) + "/" + text.Thousandths(cfg.AcceleratorsIn(of(share))) + "/" + limit
}

// of tells how much of a resource there is among amounts, and in whether they name it at all.
func of(amounts capacity.Amounts) func(string) int64 {
	return func(resource string) int64 { return amounts[corev1.ResourceName(resource)] }
}

func in(amounts capacity.Amounts) func(string) bool {
	return func(resource string) bool {
		_, named := amounts[corev1.ResourceName(resource)]
		return named
	}
}

// namedConflicts is how many namespaces a message names.
const namedConflicts = 5

// setNamespaceConflict says which namespaces the profile chooses in vain.
func (r *review) setNamespaceConflict() {
	conflicts := r.p.conflicts[r.profile.Name]
	if len(conflicts) == 0 {
		r.conditions().Remove(v1alpha1.ConditionNamespaceConflict)
		return
	}
	var words []string
	for _, c := range conflicts[:min(len(conflicts), namedConflicts)] {
		words = append(words, fmt.Sprintf("%s belongs to profile %s", c.Namespace, c.Profile))
	}
	if more := len(conflicts) - namedConflicts; more > 0 {
		words = append(words, fmt.Sprintf("%d more are taken too", more))
	}
	r.set(v1alpha1.ConditionNamespaceConflict, metav1.ConditionTrue, v1alpha1.ReasonNamespaceTaken, fmt.Sprintf(
		"The selector chooses %s of other profiles, which were created before and keep them: %s. Narrow one of the selectors, or "+
			"change the labels of the namespaces.", count(len(conflicts), "namespace"), strings.Join(words, "; ")))
}

// setOvercommitted says that more is promised to all queues than there is.
func (r *review) setOvercommitted() {
	if len(r.p.excess) == 0 {
		r.conditions().Remove(v1alpha1.ConditionOvercommitted)
		return
	}
	r.set(v1alpha1.ConditionOvercommitted, metav1.ConditionTrue, v1alpha1.ReasonGuaranteesExceedNodes, fmt.Sprintf(
		"The guarantees and fixed shares of all queues are %s more than the nodes have: nothing is left to divide by weight, and not "+
			"all of them can be kept. Lower some, or add nodes.", r.p.excess.String()))
}

// summary says how the profile stands: what keeps its Queue from being as it says, or what that serves.
func (r *review) summary() (reason, message string) {
	switch {
	case r.obstacle != nil:
		return r.obstacle.reason, r.obstacle.message
	case r.changes():
		return v1alpha1.ReasonQueueChanging, fmt.Sprintf("Queue %s is being brought to what the profile says.", r.profile.Name)
	}
	return v1alpha1.ReasonQueueReady, fmt.Sprintf("Queue %s serves %s with a share of %s.", r.profile.Name,
		count(int(r.st.NamespaceCount), "namespace"), shareInWords(r.p.shares[r.profile.Name]))
}

// changes tells whether the Queue is written because of the profile. What nodes and other profiles change is no news of it.
func (r *review) changes() bool {
	return r.d.Create != nil || r.rewrites() || r.d.Apply != nil && r.profile.Status.ObservedGeneration != r.profile.Generation
}

// setReady says whether the Queue is as the profile says.
func (r *review) setReady(reason, message string) {
	ready := metav1.ConditionTrue
	if r.obstacle != nil || r.changes() {
		ready = metav1.ConditionFalse
	}
	r.set(v1alpha1.ConditionReady, ready, reason, message)
}

// setReconciling says that the Queue comes to be as the profile says by itself.
func (r *review) setReconciling(reason, message string) {
	if r.obstacle != nil && !r.obstacle.stalled || r.obstacle == nil && r.changes() {
		r.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, message)
		return
	}
	r.conditions().Remove(v1alpha1.ConditionReconciling)
}

// setStalled says what somebody must change before the Queue is as the profile says.
func (r *review) setStalled(reason, message string) {
	if r.obstacle != nil && r.obstacle.stalled {
		r.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
		return
	}
	r.conditions().Remove(v1alpha1.ConditionStalled)
}

// shareInWords leaves out what is nothing.
func shareInWords(share capacity.Amounts) string {
	some := maps.Clone(share)
	maps.DeleteFunc(some, func(_ corev1.ResourceName, amount int64) bool { return amount == 0 })
	if len(some) == 0 {
		return "nothing, because the nodes have nothing to divide"
	}
	return some.String()
}

// listOf is a list of amounts as the API has it.
func listOf(amounts capacity.Amounts) corev1.ResourceList {
	if len(amounts) == 0 {
		return nil
	}
	list := make(corev1.ResourceList, len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		switch {
		case name == corev1.ResourceCPU:
			list[name] = *resource.NewMilliQuantity(amounts[name], resource.DecimalSI)
		case capacity.IsBytes(name):
			list[name] = *resource.NewQuantity(amounts[name], resource.BinarySI)
		default:
			list[name] = *resource.NewQuantity(amounts[name], resource.DecimalSI)
		}
	}
	return list
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// conditions writes those of the profile.
func (r *review) conditions() conditions.Writer {
	return conditions.Writer{List: &r.st.Conditions, Generation: r.profile.Generation, Now: r.p.now}
}

func (r *review) set(kind string, status metav1.ConditionStatus, reason, message string) {
	r.conditions().Set(kind, status, reason, message)
}
