package why

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
)

// present is what there is to read about a job, with the user's own rights.
type present struct {
	// training or merge is the job; the other is nil.
	training *v1beta1.ElasticTrainingJob
	merge    *v1beta1.MergeJob
	// profile of the job's namespace; nil where there is none, or the user may not read it.
	profile *v1beta1.ResourceQuotaProfile
	events  []corev1.Event
	// unread is what the user may not read, in words.
	unread []string
}

// Now says what a job does now, and why.
type Now struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// State is what the job does, as in "waits for room"; Reason is the operator's word for it, as in Unschedulable.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Since is when it began to; absent before the operator has looked.
	Since *time.Time `json:"since,omitempty"`
	// Message is the operator's sentence, with the figures.
	Message string `json:"message,omitempty"`
	// Notes are what else is to be known: why it does not grow, which limits of its profile count.
	Notes []string `json:"notes,omitempty"`
	// Do is what to do; if nothing, what happens by itself.
	Do     string      `json:"do"`
	Events []eventLine `json:"events,omitempty"`
}

// eventLine is an event of the job.
type eventLine struct {
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

const (
	// mostEvents are shown, the newest.
	mostEvents = 5
	// soon is how long Volcano, and the operator, may take for their next step before they are suspected.
	soon = 30 * time.Second
)

// status is what trainings and merges have alike.
type status struct {
	kind, phase, reason, message, profile string
	observed                              int64
	conditions                            []metav1.Condition
}

func (p *present) status() (metav1.Object, status) {
	if j := p.training; j != nil {
		s := &j.Status
		return j, status{
			v1beta1.ElasticTrainingJobKind, string(s.Phase), s.Reason, s.Message, s.Profile, s.ObservedGeneration, s.Conditions,
		}
	}
	s := &p.merge.Status
	return p.merge, status{
		v1beta1.MergeJobKind, string(s.Phase), s.Reason, s.Message, s.Profile, s.ObservedGeneration, s.Conditions,
	}
}

// explain says what a job does now and why, what it waits for, and what to do.
func explain(p *present, now time.Time) *Now {
	job, s := p.status()
	n := &Now{Kind: s.kind, Namespace: job.GetNamespace(), Name: job.GetName(), Reason: s.reason, Message: s.message}
	age := now.Sub(job.GetCreationTimestamp().Time)
	if s.reason == "" {
		n.State, n.Do = "is new: the operator has not looked at it yet", "Ask again in a few seconds."
		if age > soon {
			n.Do = "The operator has not looked at it for " + lasting(age) + ": " + checkOperator
		}
		n.Notes = p.unread
		return n
	}
	since := sinceOf(s.conditions)
	if !since.IsZero() {
		n.Since = &since
	}
	w := wordsOf(s)
	n.State, n.Do = w.state, w.do
	if meta.IsStatusConditionTrue(s.conditions, v1beta1.ConditionStalled) && n.Do == "" {
		n.Do = "Nothing happens until what the message says is changed. If the template must change, delete the job and create it " +
			"again."
	}
	if w.byVolcano && !since.IsZero() && now.Sub(since) > soon {
		n.Do = fmt.Sprintf("Volcano has not placed it for %s. If the message says that it fits, check that Volcano's scheduler "+
			"runs: %s", lasting(now.Sub(since)), checkCluster)
	}
	if n.Do == "" {
		n.Do = "Nothing: it goes on by itself."
	}
	if gone := job.GetDeletionTimestamp(); gone != nil {
		n.Notes = append(n.Notes, "It was deleted "+lasting(now.Sub(gone.Time))+" ago, and goes when its pods are gone.")
	}
	if s.observed != job.GetGeneration() {
		n.Notes = append(n.Notes, "The spec was changed, and the operator has not looked at it since. If this stays so, "+checkOperator)
	}
	n.Notes = append(n.Notes, p.notes(s)...)
	n.Notes = append(n.Notes, p.unread...)
	n.Events = lastEvents(p.events)
	return n
}

// sinceOf is when the condition that matters most came true.
func sinceOf(conditions []metav1.Condition) time.Time {
	for _, kind := range []string{
		v1beta1.ConditionFailed, v1beta1.ConditionSucceeded, v1beta1.ConditionStalled, v1beta1.ConditionSuspended,
		v1beta1.ConditionReconciling, v1beta1.ConditionReady,
	} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// notes say what else matters to a job, from its other conditions and its profile.
func (p *present) notes(s status) []string {
	var all []string
	if j := p.training; j != nil && j.Status.Phase == v1beta1.PhaseRunning {
		all = append(all, "Workers: "+j.Status.Summary+" ready/existing (range).")
		full := meta.FindStatusCondition(s.conditions, v1beta1.ConditionFullSize)
		if full != nil && full.Status == metav1.ConditionFalse {
			all = append(all, "Growth ("+full.Reason+"): "+full.Message)
		}
	}
	for _, kind := range []string{v1beta1.ConditionRangePending, v1beta1.ConditionStoreUnavailable} {
		if c := meta.FindStatusCondition(s.conditions, kind); c != nil && c.Status == metav1.ConditionTrue && c.Reason != s.reason {
			all = append(all, c.Message)
		}
	}
	for _, kind := range []string{v1beta1.ConditionSchedulerConfigured, v1beta1.ConditionOwnerChecked} {
		if c := meta.FindStatusCondition(s.conditions, kind); c != nil && c.Status == metav1.ConditionFalse && c.Reason != s.reason {
			all = append(all, c.Message)
		}
	}
	return append(all, p.profileNotes()...)
}

// profileNotes say what of the profile's limits and of what is held may matter to the job.
func (p *present) profileNotes() []string {
	if p.profile == nil {
		return nil
	}
	st := &p.profile.Status
	said := fmt.Sprintf("Profile %s: accelerators used/share/limit %s; jobs: %d running, %d waiting, %d awaiting approval.",
		p.profile.Name, cmp.Or(st.Accelerators, "-"), st.Running, st.Waiting, st.AwaitingApproval)
	all := []string{said}
	owner := p.owner()
	if owner == "" {
		return all
	}
	if i := slices.IndexFunc(st.Users, func(u v1beta1.UsageStatus) bool { return u.Name == owner }); i >= 0 {
		all = append(all, fmt.Sprintf("%s holds %s accelerators there.", owner, st.Users[i].Held))
	}
	for _, b := range st.OverBudget {
		if b.User == owner {
			all = append(all, fmt.Sprintf("%s has used %d of %d accelerator hours of the last %s.", owner, b.UsedHours, b.MaxHours,
				b.Window.Duration))
		}
	}
	return all
}

func (p *present) owner() string {
	if p.training != nil {
		return p.training.Spec.Owner
	}
	return p.merge.Spec.Owner
}

// lastEvents are the newest events, the oldest of them first.
func lastEvents(events []corev1.Event) []eventLine {
	var all []eventLine
	for i := range events {
		e := &events[i]
		at := e.EventTime.Time
		for _, later := range []time.Time{e.FirstTimestamp.Time, e.LastTimestamp.Time} {
			if later.After(at) {
				at = later
			}
		}
		if e.Series != nil && e.Series.LastObservedTime.After(at) {
			at = e.Series.LastObservedTime.Time
		}
		all = append(all, eventLine{at, e.Reason, e.Message})
	}
	slices.SortStableFunc(all, func(a, b eventLine) int { return a.Time.Compare(b.Time) })
	return all[max(0, len(all)-mostEvents):]
}

// print prints the answer for people. What users wrote steers no terminal.
func (n *Now) print(to io.Writer, now time.Time) {
	head := fmt.Sprintf("%s %s/%s %s", n.Kind, n.Namespace, n.Name, n.State)
	if n.Reason != "" {
		head += " (" + n.Reason + ")"
	}
	if n.Since != nil {
		head += ", for " + lasting(now.Sub(*n.Since))
	}
	paragraph(to, "", head+".")
	if n.Message != "" {
		paragraph(to, "  ", n.Message)
	}
	cli.Tell(to, "\nWhat to do:\n")
	paragraph(to, "  ", n.Do)
	if len(n.Notes) > 0 {
		cli.Tell(to, "\nTo know as well:\n")
		for _, note := range n.Notes {
			paragraph(to, "  ", note)
		}
	}
	if len(n.Events) > 0 {
		cli.Tell(to, "\nLast events:\n")
		for _, e := range n.Events {
			paragraph(to, "  ", fmt.Sprintf("%s ago %s: %s", lasting(now.Sub(e.Time)), e.Reason, strings.TrimSpace(e.Message)))
		}
	}
}
