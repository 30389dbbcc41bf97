package arbiter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/gang"
)

// advance lets time pass: each second in which something changes, and otherwise up to when time alone changes something.
func (w *simulator) advance(ctx context.Context, by time.Duration) error {
	for end := w.now.Add(by); ; {
		changed, err := w.tick(ctx)
		if err != nil || !w.now.Before(end) {
			return err
		}
		next := w.now.Add(time.Second)
		if !changed {
			next = end
			if soonest := w.now.Add(w.patience); w.next.After(soonest) {
				next = w.next
			} else if !w.next.IsZero() {
				next = soonest
			}
			next = earlier(next, end)
		}
		w.now = next
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// tick has everybody act once, and tells whether anything changed.
func (w *simulator) tick(ctx context.Context) (bool, error) {
	before := w.changes
	w.next = time.Time{}
	w.runKubelets()
	w.schedule()
	again, err := w.arbiter.evaluate(ctx, w.clock())
	if err != nil {
		return false, err
	}
	for len(w.arbiter.wake) > 0 {
		<-w.arbiter.wake
	}
	if again > 0 {
		w.wakeAt(w.now.Add(again))
	}
	w.laws.judge(w)
	for _, t := range w.trainings {
		w.reconcile(t)
	}
	return w.changes != before, nil
}

// runKubelets starts what was placed and ends what had its time to leave.
func (w *simulator) runKubelets() {
	for _, p := range slices.Clone(w.pods) {
		switch {
		case p.DeletionTimestamp != nil && !w.leaving[p.UID].After(w.now):
			w.gone(p)
		case p.DeletionTimestamp != nil:
			w.wakeAt(w.leaving[p.UID])
		case p.Spec.NodeName != "" && p.Status.Phase == corev1.PodPending:
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			w.changes++
		}
	}
}

// schedule places gangs whole, the most important and oldest first, and then each surplus worker by itself.
func (w *simulator) schedule() {
	if w.stopped {
		return
	}
	groups := slices.Clone(w.groups)
	slices.SortStableFunc(groups, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(w.priority(b.GetName()), w.priority(a.GetName())),
			a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	for _, o := range groups {
		pods := w.waiting(o)
		queue := w.queue(gang.MembershipOf(o).Queue)
		h := w.hindered[o.GetName()]
		if len(pods) > 0 && !queue.shut && (h == nil || !h.hidden) && w.place(pods, queue) {
			w.placedAt[o.GetName()] = w.now
			if h != nil && h.short {
				w.remove(o.GetName())
				continue
			}
		}
		for _, p := range w.podsOf(o.GetName()) {
			if w.minMember(o) <= w.placed(o.GetName()) && placeable(p) && !queue.shut {
				w.place([]*corev1.Pod{p}, queue)
			}
		}
	}
}

// place binds pods all together or not at all, and tells whether it did.
func (w *simulator) place(pods []*corev1.Pod, q *queue) bool {
	seats, fit := w.seats(pods, q, nil)
	if !fit {
		return false
	}
	for i, p := range pods {
		before := p.DeepCopy()
		p.Spec.NodeName = seats[i]
		w.arbiter.noteBinding(before, p)
		w.changes++
	}
	return true
}

func (w *simulator) minMember(group client.Object) int {
	return int(gang.MembershipOf(group).MinMember)
}

// placed counts the members of a gang that have their places, or have completed.
func (w *simulator) placed(group string) int {
	n := 0
	for _, p := range w.podsOf(group) {
		if p.Status.Phase != corev1.PodFailed && p.DeletionTimestamp == nil && p.Spec.NodeName != "" {
			n++
		}
	}
	return n + w.completedUnseen(group)
}

// completedUnseen counts core workers that have completed and whose pods are gone.
func (w *simulator) completedUnseen(group string) int {
	n := 0
	for _, t := range w.trainings {
		for _, m := range t.job.Status.Members {
			there := slices.ContainsFunc(w.pods, func(p *corev1.Pod) bool { return p.UID == m.UID })
			if t.job.Name == group && m.HasCompleted() && m.Index < t.job.Spec.MinReplicas && !there {
				n++
			}
		}
	}
	return n
}

// placeable tells whether a scheduler may place the pod.
func placeable(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !hasEnded(p) && len(p.Spec.SchedulingGates) == 0
}

// waiting are the pods that a gang must have placed together; none for one that has its places, or whose members are not all
// there.
func (w *simulator) waiting(group client.Object) (pods []*corev1.Pod) {
	missing := w.minMember(group) - w.placed(group.GetName())
	for _, p := range w.podsOf(group.GetName()) {
		if placeable(p) && len(pods) < missing {
			pods = append(pods, p)
		}
	}
	if len(pods) < missing || missing <= 0 {
		return nil
	}
	return pods
}

// priority is that of a gang's pods.
func (w *simulator) priority(group string) int32 {
	highest := int32(-1 << 31)
	for _, p := range w.podsOf(group) {
		highest = max(highest, ptr.Deref(p.Spec.Priority, 0))
	}
	return highest
}

// seats finds nodes for pods, as if the pods of which gone is true were not there. It tries every placement.
func (w *simulator) seats(pods []*corev1.Pod, q *queue, gone func(*corev1.Pod) bool) (on []string, fit bool) {
	free, held, asks := map[string]int64{}, int64(0), int64(0)
	var names []string
	for _, n := range w.nodes {
		if !n.Spec.Unschedulable {
			amount := n.Status.Allocatable[gpus]
			free[n.Name], names = amount.Value(), append(names, n.Name)
		}
	}
	for _, p := range w.pods {
		if p.Spec.NodeName == "" || hasEnded(p) || gone != nil && gone(p) {
			continue
		}
		if _, there := free[p.Spec.NodeName]; there {
			free[p.Spec.NodeName] -= gpusOf(p)
		}
		at := w.group(gang.GroupOf(p))
		if at >= 0 && p.DeletionTimestamp == nil && gang.MembershipOf(w.groups[at]).Queue == q.name {
			held += gpusOf(p)
		}
	}
	order := make([]int, len(pods))
	for i, p := range pods {
		if order[i] = i; p.Spec.NodeSelector != nil {
			return nil, false
		}
		asks += gpusOf(p)
	}
	if q.capability > 0 && asks > 0 && held+asks > q.capability {
		return nil, false
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(gpusOf(pods[b]), gpusOf(pods[a])) })
	on = make([]string, len(pods))
	return on, seat(pods, order, names, free, on)
}

// seat finds nodes for pods in that order; of nodes with as much room it tries one.
func seat(pods []*corev1.Pod, order []int, names []string, free map[string]int64, on []string) bool {
	if len(order) == 0 {
		return true
	}
	tried := map[int64]bool{}
	ask := gpusOf(pods[order[0]])
	for _, name := range names {
		if free[name] < ask || tried[free[name]] {
			continue
		}
		tried[free[name]] = true
		on[order[0]] = name
		free[name] -= ask
		if seat(pods, order[1:], names, free, on) {
			return true
		}
		free[name] += ask
	}
	return false
}

// picture is how the gangs stand, in a line.
func (w *simulator) picture() string {
	var text strings.Builder
	for _, n := range w.nodes {
		amount := n.Status.Allocatable[gpus]
		fmt.Fprintf(&text, " %s:%d", n.Name, amount.Value())
		if n.Spec.Unschedulable {
			text.WriteString(" cordoned")
		}
	}
	for _, o := range w.groups {
		fmt.Fprintf(&text, "; %s", o.GetName())
		if h := w.hindered[o.GetName()]; h != nil && *h != (hindrance{}) {
			fmt.Fprintf(&text, " (%s)", h)
		}
		for _, p := range w.podsOf(o.GetName()) {
			fmt.Fprintf(&text, " %d", gpusOf(p))
			switch {
			case p.DeletionTimestamp != nil:
				text.WriteString("/leaves")
			case hasEnded(p):
				text.WriteString("/" + string(p.Status.Phase))
			case p.Spec.NodeName == "":
				text.WriteString("/waits")
			default:
				text.WriteString("@" + p.Spec.NodeName)
			}
		}
	}
	for _, t := range w.trainings {
		fmt.Fprintf(&text, "; %s %s/%s", t.job.Name, t.job.Status.Phase, t.job.Status.Reason)
	}
	return text.String()
}
