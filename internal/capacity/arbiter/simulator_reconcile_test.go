package arbiter

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// reconcile plans one training, carries the decision out and writes the status when it is due, as the controller does.
func (w *simulator) reconcile(t *trainee) {
	key := client.ObjectKeyFromObject(t.job)
	o := jobstate.Observed{
		Job: t.job, Config: w.config, Verdict: w.arbiter.VerdictFor(key), Service: t.service, Departures: slices.Clone(t.departures),
		Queue: jobstate.Queue{Name: t.queue, State: w.queue(t.queue).state()}, SchedulerObstacles: []string{"it is not asked to"},
	}
	for _, p := range w.pods {
		if worker, ok := jobstate.WorkerOf(p); ok && metav1.IsControlledBy(p, t.job) {
			o.Workers = append(o.Workers, worker)
		}
	}
	for name, state := range map[string]**gang.State{gang.CoreName(t.job.Name): &o.Core, gang.SurplusName(t.job.Name): &o.Surplus} {
		if at := w.group(name); at >= 0 {
			*state = ptr.To(gang.StateOf(w.groups[at]))
		}
	}
	d := training.Plan(o, w.clock())
	wanted := d.Status
	if p := w.apply(t, &d); p != nil {
		wanted = training.ExplainObstacle(o, w.clock(), d,
			jobstate.Obstacle{Reason: p.Reason, Message: p.Message, Stalled: p.Class == kube.Terminal})
	}
	if d.RequeueAfter > 0 {
		w.wakeAt(w.now.Add(d.RequeueAfter))
	}
	w.write(t, &o, &wanted)
}

func (w *simulator) write(t *trainee, o *jobstate.Observed, wanted *v1beta1.ElasticTrainingJobStatus) {
	key := client.ObjectKeyFromObject(t.job)
	pace := training.PaceOf(&t.job.Status, wanted)
	if pace == statuspace.Never {
		w.pacer.NoteAgreement(key)
	} else {
		noticed, written := w.pacer.NoteDifference(key, pace, w.clock())
		if wait := pace.TimeToWait(noticed, written, w.clock()); wait > 0 {
			w.wakeAt(w.now.Add(wait))
			return
		}
		job := t.job.DeepCopy()
		wanted.DeepCopyInto(&job.Status)
		t.job = job
		w.pacer.NoteWrite(key, w.clock())
		w.changes++
	}
	t.departures = slices.DeleteFunc(t.departures, func(d podstate.Departure) bool {
		return slices.ContainsFunc(o.Departures, func(k podstate.Departure) bool { return k.UID == d.UID })
	})
}

func (w *simulator) wakeAt(at time.Time) {
	if w.next.IsZero() || at.Before(w.next) {
		w.next = at
	}
}

// group is where a PodGroup stands; less than 0 for one that does not exist.
func (w *simulator) group(name string) int {
	return slices.IndexFunc(w.groups, func(o client.Object) bool { return o.GetName() == name })
}

// apply carries a decision out, in the order of its fields, until a request is refused.
func (w *simulator) apply(t *trainee, d *training.Decision) *kube.Problem {
	for i := range d.DeletePods {
		for _, p := range slices.Clone(w.pods) {
			if p.UID == d.DeletePods[i].UID {
				w.leave(p, t.grace)
			}
		}
	}
	if d.CreateService {
		t.service = w.uid("service")
		w.changes++
	}
	for _, g := range d.CreateGroups {
		group := g.PodGroup()
		group.SetUID(w.uid(g.Name))
		group.SetCreationTimestamp(metav1.NewTime(w.clock()))
		w.groups = append(w.groups, group)
		w.changes++
	}
	for _, i := range d.CreateWorkers {
		pod := d.Blueprint.NewPod(i)
		if w.hindered[t.job.Name].refused {
			return kube.ProblemOf(apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, errors.New("exceeded quota: small")),
				"create pod "+pod.Name)
		}
		tier := d.Blueprint.Tier
		pod.Spec.Priority = ptr.To(tier.SurplusPriority)
		if i < d.Blueprint.Attempt.MinReplicas {
			pod.Spec.Priority = ptr.To(tier.Priority)
		}
		w.admit(pod)
	}
	for _, ref := range d.DeleteGroups {
		w.groups = slices.DeleteFunc(w.groups, func(o client.Object) bool { return o.GetUID() == ref.UID })
		w.changes++
	}
	if d.DeleteService != "" {
		t.service = ""
		w.changes++
	}
	return nil
}

// membership is what a PodGroup says of its place in a queue; the zero Membership for one that does not exist.
func (w *simulator) membership(group string) gang.Membership {
	if at := w.group(group); at >= 0 {
		return gang.MembershipOf(w.groups[at])
	}
	return gang.Membership{}
}
