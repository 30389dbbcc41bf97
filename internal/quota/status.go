package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/conditions"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// writeStatus writes figures, message and conditions of a profile.
func (r *review) writeStatus(lent map[string]capacity.Amounts) {
	name := r.profile.Name
	namespaces := r.p.namespaces[name]
	r.st.NamespaceCount = int32(len(namespaces))
	r.st.Namespaces = namespaces[:min(len(namespaces), v1beta1.ProfileNamespacesLimit)]
	if q, there := r.p.queues[name]; there && q.Labels[v1beta1.LabelProfile] == name {
		r.st.Queue = name
	} else {
		r.st.Queue = ""
	}
	r.sayFigures(lent[name])
	r.sayData()
	unknown, unread := r.sayOverBudget()
	reason, message := r.summarize()
	r.st.Reason, r.st.Message = reason, text.ClipLine(message, conditions.MessageLimit)
	r.setReady(reason, message)
	r.setReconciling(reason, message)
	r.setStalled(reason, message)
	r.setNamespaceConflict()
	r.setOvercommitted()
	r.setBudgetExceeded(unknown, unread)
	r.setLedgerVolatile()
	r.setAcceleratorsIdle()
	r.planStops()
	r.planGuard()
	r.conditionWriter().RestoreTransitionTimes(r.profile.Status.Conditions)
}

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
	r.st.Available = offers[:min(len(offers), v1beta1.AvailableLimit)]
	r.st.Running, r.st.Waiting, r.st.AwaitingApproval = 0, 0, 0
	for _, n := range r.p.namespaces[r.profile.Name] {
		r.st.Running += r.p.o.Jobs[n].Running
		r.st.Waiting += r.p.o.Jobs[n].Waiting
		r.st.AwaitingApproval += r.p.o.Jobs[n].AwaitingApproval
	}
}

// acceleratorSummary is used/deserved/capability over all accelerators of the operator's configuration, as in 3.5/8/16. used
// is in thousandths. A capability that does not limit all of them is "-".
func (r *review) acceleratorSummary(used int64) string {
	cfg, share := r.p.o.Config, r.p.shares[r.profile.Name]
	limits := capacity.AmountsOf(r.profile.Spec.Queue.Capability)
	limited, some := true, false
	for _, name := range cfg.CountedAccelerators() {
		forms := cfg.AcceleratorForms(name)
		if slices.ContainsFunc(forms, isNamedIn(share)) {
			some, limited = true, limited && slices.ContainsFunc(forms, isNamedIn(limits))
		}
	}
	if !some {
		return ""
	}
	limit := "-"
	if limited {
		limit = text.FormatThousandths(cfg.AcceleratorsIn(amountOf(limits)))
	}
	return text.FormatThousandths(used) + "/" + text.FormatThousandths(cfg.AcceleratorsIn(amountOf(share))) + "/" + limit
}

// amountOf returns the amount of a resource as a function, and isNamedIn whether amounts contain it.
func amountOf(amounts capacity.Amounts) func(string) int64 {
	return func(resource string) int64 { return amounts[corev1.ResourceName(resource)] }
}

func isNamedIn(amounts capacity.Amounts) func(string) bool {
	return func(resource string) bool {
		_, named := amounts[corev1.ResourceName(resource)]
		return named
	}
}

// namedConflicts is how many namespaces a message names.
const namedConflicts = 5

// setNamespaceConflict names the namespaces that the profile selects and an older profile has.
func (r *review) setNamespaceConflict() {
	conflicts := r.p.conflicts[r.profile.Name]
	if len(conflicts) == 0 {
		r.conditionWriter().Remove(v1beta1.ConditionNamespaceConflict)
		return
	}
	var words []string
	for _, c := range conflicts[:min(len(conflicts), namedConflicts)] {
		words = append(words, fmt.Sprintf("%s belongs to profile %s", c.Namespace, c.Profile))
	}
	if more := len(conflicts) - namedConflicts; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	r.setCondition(v1beta1.ConditionNamespaceConflict, metav1.ConditionTrue, v1beta1.ReasonNamespaceTaken, fmt.Sprintf(
		"The selector matches %s of older profiles, which keep them: %s. Narrow one of the selectors, or change the labels of the "+
			"namespaces.", count(len(conflicts), "namespace"), strings.Join(words, "; ")))
}

// setOvercommitted reports that guarantees and fixed shares exceed the nodes.
func (r *review) setOvercommitted() {
	if len(r.p.excess) == 0 {
		r.conditionWriter().Remove(v1beta1.ConditionOvercommitted)
		return
	}
	r.setCondition(v1beta1.ConditionOvercommitted, metav1.ConditionTrue, v1beta1.ReasonGuaranteesExceedNodes, fmt.Sprintf(
		"The guarantees and fixed shares of all queues exceed the nodes by %s. Nothing is left to divide by weight, and Volcano "+
			"cannot "+
			"give each queue its guarantee. Lower some of them, or add nodes.", r.p.excess.String()))
}

// summarize returns the obstacle of the profile, or else what its Queue serves.
func (r *review) summarize() (reason, message string) {
	switch {
	case r.obstacle != nil:
		return r.obstacle.reason, r.obstacle.message
	case r.changedByProfile():
		return v1beta1.ReasonQueueChanging, fmt.Sprintf("Tideline is updating Queue %s to the profile.", r.profile.Name)
	}
	return v1beta1.ReasonQueueReady, fmt.Sprintf("Queue %s serves %s with a share of %s.", r.profile.Name,
		count(int(r.st.NamespaceCount), "namespace"), shareInWords(r.p.shares[r.profile.Name]))
}

// changedByProfile tells whether the Queue is written because the profile changed. Changes that follow from nodes or other
// profiles do not make the profile unready.
func (r *review) changedByProfile() bool {
	return r.d.Create != nil || r.rewritesQueue() || r.d.Apply != nil && r.profile.Status.ObservedGeneration != r.profile.Generation
}

// setReady is for a profile whose Queue is up to date.
func (r *review) setReady(reason, message string) {
	ready := metav1.ConditionTrue
	if r.obstacle != nil || r.changedByProfile() {
		ready = metav1.ConditionFalse
	}
	r.setCondition(v1beta1.ConditionReady, ready, reason, message)
}

// setReconciling is for a profile whose Queue will be up to date without an action of a person.
func (r *review) setReconciling(reason, message string) {
	if r.obstacle != nil && !r.obstacle.stalled || r.obstacle == nil && r.changedByProfile() {
		r.setCondition(v1beta1.ConditionReconciling, metav1.ConditionTrue, reason, message)
		return
	}
	r.conditionWriter().Remove(v1beta1.ConditionReconciling)
}

// setStalled is for a profile that waits until a person changes something.
func (r *review) setStalled(reason, message string) {
	if r.obstacle != nil && r.obstacle.stalled {
		r.setCondition(v1beta1.ConditionStalled, metav1.ConditionTrue, reason, message)
		return
	}
	r.conditionWriter().Remove(v1beta1.ConditionStalled)
}

// shareInWords writes a share, without resources whose amount is zero.
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

func count(n int, noun string) string { return text.FormatCount(n, noun) }

func (r *review) conditionWriter() conditions.Writer {
	return conditions.Writer{List: &r.st.Conditions, Generation: r.profile.Generation, Now: r.p.now}
}

func (r *review) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	r.conditionWriter().Set(kind, status, reason, message)
}
