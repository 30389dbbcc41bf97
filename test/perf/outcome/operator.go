package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// operator runs trainings as ElasticTrainingJobs: the arbiter and the planner are the real ones, and this is what the reconciler
// does around them.
type operator struct {
	*cluster

	arbiter *arbiter.Arbiter
	config  *config.Configuration
	pacer   *kube.Pacer
	watches *watches
	// blind is the first error of a watch.
	blind error
	jobs  map[types.NamespacedName]*trainee
	// due are the trainings to plan now. stale is true when the arbiter has not seen what changed.
	due   map[types.NamespacedName]bool
	stale bool
	stays map[string]*growth.Stay
}

// trainee is an ElasticTrainingJob, and what its reconciler remembers.
type trainee struct {
	*run

	object     *v1beta1.ElasticTrainingJob
	service    types.UID
	departures []podstate.Departure
	// bound is since when surplus has had a node.
	bound map[types.UID]time.Duration
}

func newOperator(c *cluster) (*operator, error) {
	o := &operator{
		cluster: c, config: config.DefaultConfiguration(), pacer: kube.NewPacer(), watches: newWatches(),
		jobs: map[types.NamespacedName]*trainee{}, due: map[types.NamespacedName]bool{}, stays: map[string]*growth.Stay{},
	}
	for i := range o.config.Tiers {
		o.config.Tiers[i].LongestRunSeconds = 0
	}
	for _, class := range o.config.Tiers.PriorityClasses() {
		c.addClass(class)
	}
	o.arbiter = arbiter.New(o, o.config, func() bool { return true },
		func(string, time.Duration) (admission.Spending, error) {
			return admission.Spending{}, errors.New("there is no ledger")
		}, logr.Discard())
	c.see = func(of client.Object, gone bool) {
		if err := o.watches.see(of, gone); err != nil && o.blind == nil {
			o.blind = err
		}
	}
	for _, n := range c.told.Nodes {
		c.see(n, false)
	}
	for _, q := range c.told.Queues {
		c.see(q, false)
	}
	return o, o.arbiter.WatchCluster(context.Background(), o.watches)
}

// newJob is the object of a training that comes now.
func (o *operator) newJob(r *run) *v1beta1.ElasticTrainingJob {
	object := &v1beta1.ElasticTrainingJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.team, Name: r.name, UID: types.UID(r.name), Generation: 1, CreationTimestamp: metav1.NewTime(o.wall()),
		},
		Spec: v1beta1.ElasticTrainingJobSpec{
			MinReplicas: r.least(), MaxReplicas: r.most(),
			Elasticity: v1beta1.Elasticity{
				Growth: v1beta1.Growth{Mode: v1beta1.GrowthOnlyIfPays, CooldownSeconds: ptr.To[int32](v1beta1.DefaultCooldownSeconds)},
				Shrink: v1beta1.Shrink{
					Initiator: v1beta1.ShrinkAuto, StarvationSeconds: ptr.To[int32](60), MinRunSeconds: ptr.To[int32](0),
				},
			},
			Framework: v1beta1.Framework{Torchrun: &v1beta1.Torchrun{
				JoinTimeoutSeconds: ptr.To[int32](600), LastCallTimeoutSeconds: ptr.To[int32](30), ReadTimeoutSeconds: ptr.To[int32](300),
			}},
			Cleanup:       v1beta1.Cleanup{PodPolicy: v1beta1.CleanPodPolicyRunning},
			SuccessPolicy: v1beta1.SuccessPolicy{CompletionGraceSeconds: ptr.To[int32](300)},
		},
	}
	one := corev1.ResourceList{gpu: resource.MustParse("1")}
	object.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "trainer", Image: "trainer", Resources: corev1.ResourceRequirements{Requests: one, Limits: one},
	}}
	return object
}

func (o *operator) arrive(r *run) {
	object := o.newJob(r)
	r.need = r.least()
	key := client.ObjectKeyFromObject(object)
	o.see(object, false)
	o.jobs[key] = &trainee{run: r, object: object, bound: map[types.UID]time.Duration{}}
	o.due[key], o.stale = true, true
}

func (o *operator) left(r *run, p *corev1.Pod) {
	key := types.NamespacedName{Namespace: r.team, Name: r.name}
	t := o.jobs[key]
	if worker, ok := jobstate.WorkerOf(p); ok {
		t.departures = append(t.departures, worker.AsDeparture(false))
	}
	if o.noteHeld(t, p.UID) {
		o.stay(r.team).Left++
	}
	o.due[key], o.stale = true, true
}

func (o *operator) stay(queue string) *growth.Stay {
	if o.stays[queue] == nil {
		o.stays[queue] = &growth.Stay{}
	}
	return o.stays[queue]
}

// noteHeld adds for how long a pod of surplus held its node; false for one that held none.
func (o *operator) noteHeld(t *trainee, uid types.UID) bool {
	since, was := t.bound[uid]
	if was {
		o.stay(t.team).Held += o.now - since
		delete(t.bound, uid)
	}
	return was
}

func (o *operator) forget(r *run) {
	key := types.NamespacedName{Namespace: r.team, Name: r.name}
	for uid := range o.jobs[key].bound {
		o.noteHeld(o.jobs[key], uid)
	}
	o.see(o.jobs[key].object, true)
	delete(o.jobs, key)
	delete(o.due, key)
	o.stale = true
}

// settle has the arbiter judge and the planner plan until nothing changes any more.
func (o *operator) settle() error {
	for key, t := range o.jobs {
		for _, p := range t.pods {
			if o.pods[client.ObjectKeyFromObject(p).String()] == nil {
				continue
			}
			o.due[key], o.stale = true, true
		}
	}
	for range 30 {
		if o.blind != nil {
			return o.blind
		}
		if o.stale {
			o.stale = false
			woken, again, err := o.arbiter.EvaluateAt(context.Background(), o.wall())
			if err != nil {
				return err
			}
			for _, key := range woken {
				o.due[key] = true
			}
			if again > 0 {
				o.at(o.now+again, func() { o.stale = true })
			}
		}
		if len(o.due) == 0 {
			return nil
		}
		for key := range o.due {
			delete(o.due, key)
			if t := o.jobs[key]; t != nil {
				if err := o.reconcile(key, t); err != nil {
					return err
				}
			}
		}
	}
	return errors.New("the planners do not come to rest")
}

// reconcile plans one training, carries the decision out and writes the status when it is due, as the controller does.
func (o *operator) reconcile(key types.NamespacedName, t *trainee) error {
	seen := jobstate.Observed{
		Job: t.object, Config: o.config, Verdict: o.arbiter.VerdictFor(key), Service: t.service, Departures: slices.Clone(t.departures),
		Queue: jobstate.Queue{Name: t.team, State: gang.QueueOpen}, Stay: *o.stay(t.team),
	}
	for _, p := range t.pods {
		if worker, ok := jobstate.WorkerOf(p); ok {
			seen.Workers = append(seen.Workers, worker)
			if _, noted := t.bound[p.UID]; !noted && worker.Scheduled && worker.Index >= t.need {
				t.bound[p.UID] = o.now
			}
		}
	}
	for name, state := range map[string]**gang.State{
		gang.CoreName(t.name): &seen.Core, gang.SurplusName(t.name): &seen.Surplus,
	} {
		if g := o.groups[t.team+"/"+name]; g != nil {
			*state = ptr.To(gang.StateOf(g))
		}
	}
	d := training.Plan(seen, o.wall())
	if err := o.apply(t, &d); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if d.RequeueAfter > 0 {
		o.wake(key, o.now+d.RequeueAfter)
	}
	o.write(key, t, &seen, &d.Status)
	return nil
}

func (o *operator) wake(key types.NamespacedName, at time.Duration) {
	o.at(at, func() {
		if o.jobs[key] != nil {
			o.due[key] = true
		}
	})
}

func (o *operator) write(
	key types.NamespacedName, t *trainee, seen *jobstate.Observed, wanted *v1beta1.ElasticTrainingJobStatus,
) {
	pace := training.PaceOf(&t.object.Status, wanted)
	if pace == statuspace.Never {
		o.pacer.NoteAgreement(key)
	} else {
		noticed, written := o.pacer.NoteDifference(key, pace, o.wall())
		if wait := pace.TimeToWait(noticed, written, o.wall()); wait > 0 {
			o.wake(key, o.now+wait)
			return
		}
		object := t.object.DeepCopy()
		wanted.DeepCopyInto(&object.Status)
		t.object = object
		o.see(object, false)
		o.pacer.NoteWrite(key, o.wall())
		o.due[key], o.stale = true, true
	}
	t.departures = slices.DeleteFunc(t.departures, func(d podstate.Departure) bool {
		return slices.ContainsFunc(seen.Departures, func(k podstate.Departure) bool { return k.UID == d.UID })
	})
}

// apply carries a decision out, in the order of its fields.
func (o *operator) apply(t *trainee, d *training.Decision) error {
	if len(d.RestoreGroups) > 0 || d.RequestCheckpoint != nil || d.DeleteJob {
		return errors.New("a decision that nothing here leads to")
	}
	for i := range d.DeletePods {
		for _, p := range t.pods {
			if p.UID == d.DeletePods[i].UID {
				o.leave(t.run, p, "")
			}
		}
	}
	if d.CreateService {
		t.service = "service"
	}
	for _, g := range d.CreateGroups {
		o.addGroup(g.PodGroup())
	}
	for _, i := range d.CreateWorkers {
		pod := d.Blueprint.NewPod(i)
		if t.pods[client.ObjectKeyFromObject(pod).String()] != nil {
			continue // The name is taken until the one before is gone.
		}
		priority := d.Blueprint.Tier.SurplusPriority
		if i < d.Blueprint.Attempt.MinReplicas {
			priority = d.Blueprint.Tier.Priority
		}
		o.create(t.run, pod, priority)
	}
	for _, g := range d.DeleteGroups {
		o.removeGroup(t.team + "/" + g.Name)
	}
	if d.DeleteService != "" {
		t.service = ""
	}
	if len(d.CreateWorkers)+len(d.DeletePods)+len(d.CreateGroups)+len(d.DeleteGroups) > 0 || d.CreateService {
		key := types.NamespacedName{Namespace: t.team, Name: t.name}
		o.due[key], o.stale = true, true
	}
	return nil
}

// Get is for namespaces and single Queues, which the arbiter does not ask for here.
func (o *operator) Get(_ context.Context, key client.ObjectKey, of client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(v1beta1.GroupVersion.WithResource(fmt.Sprintf("%T", of)).GroupResource(), key.Name)
}

// List has no objects of the kinds that the arbiter reads and does not watch.
func (o *operator) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if _, none := list.(*v1beta1.ResourceQuotaProfileList); none {
		return nil
	}
	return fmt.Errorf("nothing here is a %T", list)
}
