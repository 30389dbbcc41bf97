package arbiter

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

const (
	// mostInVain is how often others may leave in an hour for a gang that is never placed: with a placementTimeout of a minute, and
	// pauses of one, two, four, … minutes.
	mostInVain = 6
	// soonTold is how soon after the end of a claim those who left for it say so.
	soonTold = 10 * time.Second
)

// laws are what must be true of who is told to leave for which gang. They judge by what is simulated, and not by the model.
type laws struct {
	// broken is the first law that was broken; empty for none.
	broken string
	// promised are the gangs for which others leave, with how many were told to.
	promised map[types.NamespacedName]made
	// begun is when others were told to leave for gangs that are never placed.
	begun map[types.NamespacedName][]time.Time
	// stopped is when trainings were told to stop, by training and gang.
	stopped map[[2]types.NamespacedName][]time.Time
	// ended are the claims of gangs that ended last.
	ended map[types.NamespacedName]capacity.Ended
	owed  []debt
	// What the histories tried.
	victims, stops, claimsEnded, told, resumed, stepped int
}

// made is how many workers leave and trainings stop for a gang.
type made struct{ victims, stops int }

// debt is what a training must say of a gang for which its workers left in vain.
type debt struct {
	job   types.UID
	gang  string
	since time.Time
	// at is what time it was then by the clock.
	at     time.Time
	whole  bool
	ofOurs bool
}

func newLaws() *laws {
	return &laws{
		promised: map[types.NamespacedName]made{}, begun: map[types.NamespacedName][]time.Time{},
		ended: map[types.NamespacedName]capacity.Ended{}, stopped: map[[2]types.NamespacedName][]time.Time{},
	}
}

func (l *laws) broke(format string, args ...any) {
	if l.broken == "" {
		l.broken = fmt.Sprintf(format, args...)
	}
}

// forget is for an operator that starts anew, which forgets which claims ended.
func (l *laws) forget() {
	fresh := newLaws()
	l.promised, l.begun, l.ended, l.stopped, l.owed = fresh.promised, fresh.begun, fresh.ended, fresh.stopped, nil
}

// judge holds what the arbiter has just said to the laws.
func (l *laws) judge(w *simulator) {
	promised := map[types.NamespacedName]made{}
	for _, queue := range slices.Sorted(maps.Keys(w.arbiter.promises)) {
		promises := w.arbiter.promises[queue]
		for i := range promises.Standing {
			p := &promises.Standing[i]
			if now := (made{len(p.Victims), len(p.Stopped)}); now != (made{}) {
				if promised[p.For] = now; now != l.promised[p.For] {
					l.begins(w, p, l.promised[p.For])
				}
			}
		}
		for i := range promises.Ended {
			e := &promises.Ended[i]
			// One whose time alone is earlier ended by a clock that was set back since.
			if before := l.ended[e.For]; e.At.After(before.At) || e.Times != before.Times {
				l.ends(w, e)
			}
			l.ended[e.For] = *e
		}
	}
	l.promised = promised
	for _, t := range w.trainings {
		v := w.arbiter.VerdictFor(client.ObjectKeyFromObject(t.job))
		if len(v.GiveUp) > 0 || v.Preempt != nil {
			w.tell("    %s: gives up %v to %s, stops for %v", t.job.Name, v.GiveUp, v.To, v.Preempt)
		}
		if v.Preempt != nil {
			l.canBePlaced(w, v.Preempt.By)
			l.stopsAgain(w, t, v.Preempt.By)
		}
		if len(v.GiveUp) > 0 {
			l.canBePlaced(w, v.To)
		}
		if v.Resume {
			l.resumed++
		}
	}
	l.collect(w)
}

// canBePlaced: no worker leaves for a gang that no scheduler could place, wherever there were room.
func (l *laws) canBePlaced(w *simulator, key types.NamespacedName) []*corev1.Pod {
	at := w.group(key.Name)
	if at < 0 {
		l.broke("workers leave for %s, which has no PodGroup", key)
		return nil
	}
	pods := w.waiting(w.groups[at])
	queue := w.queueOf(key.Name)
	switch {
	case len(pods) == 0:
		l.broke("workers leave for %s, whose pods no scheduler may place", key)
	case queue.shut:
		l.broke("workers leave for %s, whose Queue is closed", key)
	default:
		if _, fits := w.seats(pods, queue, func(*corev1.Pod) bool { return true }); !fits {
			l.broke("workers leave for %s, which fits no node", key)
		}
	}
	return pods
}

// stopsAgain: no training stops and goes on in turns for one gang.
func (l *laws) stopsAgain(w *simulator, t *trainee, by types.NamespacedName) {
	if t.job.Status.Preemption != nil {
		return // It is on its way.
	}
	key := [2]types.NamespacedName{client.ObjectKeyFromObject(t.job), by}
	if l.stopped[key] = w.lastHour(append(l.stopped[key], w.now)); len(l.stopped[key]) > mostInVain {
		l.broke("%s was told %d times within an hour to stop for %s", t.job.Name, len(l.stopped[key]), by)
	}
}

func (w *simulator) lastHour(all []time.Time) []time.Time {
	return slices.DeleteFunc(all, func(at time.Time) bool { return w.now.Sub(at) >= time.Hour })
}

// begins judges a promise for which more are told to leave than were before.
func (l *laws) begins(w *simulator, p *capacity.Promise, before made) {
	pods := l.canBePlaced(w, p.For)
	w.tell("    for %s leave %d workers and stop %d trainings", p.For, len(p.Victims), len(p.Stopped))
	if w.hindered[p.For.Name].hidden && before == (made{}) {
		begun := w.lastHour(append(l.begun[p.For], w.now))
		if l.begun[p.For] = begun; len(begun) > mostInVain {
			l.broke("workers left %d times within an hour for %s, which is never placed", len(begun), p.For)
		}
	}
	if len(pods) == 0 || w.othersFirst(p.For) || w.leavesByAnotherClock() {
		return
	}
	// Trainings stop where all surplus that may leave is not enough, and surplus leaves where that is.
	stops := len(p.Stopped) > before.stops
	fits := func(spared ...string) bool {
		_, fits := w.seats(pods, w.queueOf(p.For.Name), func(pod *corev1.Pod) bool { return w.leavesFor(p, pod, stops, spared) })
		return fits
	}
	if !fits() {
		l.broke("for %s leave %v and stop %v, and even so it does not fit", p.For, p.Victims, p.Stopped)
	}
	if stops {
		l.stops += len(p.Stopped)
		for _, h := range p.Stopped {
			if fits(h.Job.Name) {
				l.broke("%s stops for %s, which would fit without that", h.Job, p.For)
			}
		}
		return
	}
	l.victims += len(p.Victims)
	for _, v := range p.Victims {
		if w.stepOf(v.Job) == 1 && fits(string(v.UID)) {
			l.broke("%s leaves for %s, which would fit without that", v.UID, p.For)
		}
	}
	l.wholeSteps(w, p, slices.IndexFunc(pods, func(o *corev1.Pod) bool { return gpusOf(o) != gpusOf(pods[0]) }) < 0, fits)
}

// wholeSteps: what stays of a training's surplus is a multiple of its step, and no whole step leaves in vain. For a gang of
// several shapes the model takes no pod that is not needed, but not the fewest.
func (l *laws) wholeSteps(w *simulator, p *capacity.Promise, alike bool, fits func(...string) bool) {
	leave := map[types.NamespacedName][]string{}
	for _, v := range p.Victims { // in the order of victims: the last come last
		leave[v.Job] = append(leave[v.Job], string(v.UID))
	}
	for job, uids := range leave {
		step := w.stepOf(job)
		if step == 1 {
			continue
		}
		l.stepped++
		if alone, all := w.remainder(job, []*capacity.Promise{p}), w.remainder(job, w.allPromises()); alone != 0 && all != 0 {
			l.broke("%v leave for %s, and %d stay of %s, which grows by %d", uids, p.For, min(alone, all), job, step)
		}
		if spared := min(step, len(uids)); alike && (len(uids) > step || len(uids) == spared) && fits(uids[len(uids)-spared:]...) {
			l.broke("%v leave for %s, which would fit without the last step of %s", uids, p.For, job)
		}
	}
}

// stepOf is by how many workers a training changes its size.
func (w *simulator) stepOf(job types.NamespacedName) int {
	for _, t := range w.trainings {
		if t.job.Name == job.Name {
			return int(max(1, t.job.Spec.Elasticity.Step))
		}
	}
	return 1
}

// remainder is how many surplus workers of a training are beyond its last whole step, once those have left who are promised.
func (w *simulator) remainder(job types.NamespacedName, promises []*capacity.Promise) int {
	stay := 0
	for _, pod := range w.pods {
		t := w.trainingOf(pod)
		if t == nil || t.job.Name != job.Name || !w.isSurplus(pod) || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil ||
			hasEnded(pod) || !w.isReady(pod.Spec.NodeName) {
			continue
		}
		if !slices.ContainsFunc(promises, func(p *capacity.Promise) bool {
			return slices.ContainsFunc(p.Victims, func(v capacity.Surplus) bool { return v.UID == pod.UID })
		}) {
			stay++
		}
	}
	return stay % w.stepOf(job)
}

func (w *simulator) isReady(node string) bool {
	return slices.ContainsFunc(w.nodes, func(n *corev1.Node) bool {
		return n.Name == node && n.Status.Conditions[0].Status == corev1.ConditionTrue
	})
}

func (w *simulator) allPromises() (all []*capacity.Promise) {
	for _, promises := range w.arbiter.promises {
		for i := range promises.Standing {
			all = append(all, &promises.Standing[i])
		}
	}
	return all
}

// queueOf is the queue of a PodGroup.
func (w *simulator) queueOf(group string) *queue { return w.queue(w.membership(group).Queue) }

// othersFirst tells whether a gang that comes first, or may, has its room before this one.
func (w *simulator) othersFirst(key types.NamespacedName) bool {
	for _, o := range w.groups {
		other := client.ObjectKeyFromObject(o)
		v := w.arbiter.VerdictFor(other)
		if other != key && v.Waiting > 0 && !v.Overdue && w.queueOf(o.GetName()) == w.queueOf(key.Name) {
			return true
		}
	}
	return slices.ContainsFunc(w.trainings, func(t *trainee) bool { // Room is kept for one whose attempt has just begun.
		return t.job.Name != key.Name && w.group(t.job.Name) < 0 &&
			w.arbiter.VerdictFor(client.ObjectKeyFromObject(t.job)).Waiting > 0
	})
}

// leavesFor tells of a pod whether it is gone once a promise is kept, but for the victims or the stopped training that are
// spared. Where trainings stop, all surplus of the queue has left.
func (w *simulator) leavesFor(p *capacity.Promise, pod *corev1.Pod, stops bool, spared []string) bool {
	t := w.trainingOf(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return w.leaving[pod.UID].Sub(w.now) <= capacity.LongestLeave
	case t == nil || slices.Contains(spared, string(pod.UID)):
		return false
	case t.job.Status.Preemption != nil:
		return true
	case w.isSurplus(pod) && t.queue == w.queueOf(p.For.Name).name && stops:
		return true
	case slices.ContainsFunc(p.Stopped, func(h capacity.Holder) bool { return h.Job.Name == t.job.Name }):
		return !slices.Contains(spared, t.job.Name)
	}
	return slices.ContainsFunc(p.Victims, func(v capacity.Surplus) bool { return v.UID == pod.UID })
}

// isSurplus tells of a pod whether it is a training's worker beyond its core.
func (w *simulator) isSurplus(p *corev1.Pod) bool {
	t := w.trainingOf(p)
	worker, ok := jobstate.WorkerOf(p)
	return ok && t != nil && t.job.Status.Attempt != nil && worker.Index >= t.job.Status.Attempt.MinReplicas
}

// ends notes who must say soon that a claim has ended.
func (l *laws) ends(w *simulator, e *capacity.Ended) {
	l.claimsEnded++
	w.tell("    the claim of %s has ended, for the time %d", e.For, e.Times)
	if w.group(e.For.Name) < 0 && w.placedAt[e.For.Name].Equal(w.now) {
		l.broke("the claim of %s ended as one that was not kept, and it had its places", e.For)
	}
	for _, t := range w.trainings {
		st, key := &t.job.Status, client.ObjectKeyFromObject(t.job)
		left := slices.ContainsFunc(e.Victims, func(v capacity.Surplus) bool { return v.Job == key }) && st.Elasticity != nil &&
			len(st.Elasticity.Evicted) > 0 && gaveWay(st, e.For.String())
		stopped := slices.ContainsFunc(e.Stopped, func(h capacity.Holder) bool { return h.Job == key }) && st.Preemption != nil &&
			st.Preemption.By.Key() == e.For
		if left || stopped {
			l.owed = append(l.owed, debt{job: t.job.UID, gang: e.For.String(), since: w.now, at: e.At, whole: stopped})
		}
		if e.For == key {
			l.owed = append(l.owed, debt{job: t.job.UID, gang: e.For.String(), since: w.now, at: e.At, ofOurs: true})
		}
	}
}

// collect: a claim that has ended is told, by the gang itself and by those who left for it.
func (l *laws) collect(w *simulator) {
	l.owed = slices.DeleteFunc(l.owed, func(d debt) bool {
		at := slices.IndexFunc(w.trainings, func(t *trainee) bool { return t.job.UID == d.job })
		if at < 0 {
			return true
		}
		st := &w.trainings[at].job.Status
		switch vain := st.LeftInVain; {
		case st.CompletionTime != nil || st.MasterCompletionTime != nil || !d.whole && st.Preemption != nil,
			!d.whole && !d.ofOurs && !gaveWay(st, d.gang):
			return true
		case d.ofOurs && w.saysNotPlaced(w.trainings[at]):
			l.told++
			return true
		case !d.ofOurs && vain != nil && vain.For.String() == d.gang && !vain.Time.Time.Before(d.at.Truncate(time.Second)):
			l.told++
			return true
		}
		if w.now.Sub(d.since) > soonTold {
			l.broke("the claim of %s has ended, and %s does not say so", d.gang, d.job)
		}
		return false
	})
}

// gaveWay tells whether workers last left because they were told to, and for the gang: with a node that was lost they left for
// nothing of the kind.
func gaveWay(st *v1beta1.ElasticTrainingJobStatus, gang string) bool {
	e := st.Elasticity
	return e != nil && e.GaveWayTo != nil && e.GaveWayTo.String() == gang && e.LastEvictionReason == "Told"
}

// saysNotPlaced tells whether a training says that it was not placed in time, or need not any more.
func (w *simulator) saysNotPlaced(t *trainee) bool {
	scheduled := meta.FindStatusCondition(t.job.Status.Conditions, v1beta1.ConditionScheduled)
	return !w.arbiter.VerdictFor(client.ObjectKeyFromObject(t.job)).Overdue ||
		scheduled != nil && scheduled.Reason == v1beta1.ReasonNotPlaced
}

// rest judges a simulator in which nothing has happened for hours.
func (l *laws) rest(w *simulator, quiet time.Duration) {
	if since := w.now.Sub(w.lastPod); since < quiet && !w.retries() {
		l.broke("at rest a pod was created or deleted %s ago", since)
	}
	claimants := 0
	for _, o := range w.groups {
		pods := w.waiting(o)
		h, key := w.hindered[o.GetName()], client.ObjectKeyFromObject(o)
		switch {
		case len(pods) == 0 || h == nil || w.queueOf(key.Name).shut:
			continue
		case h.hidden && w.arbiter.VerdictFor(key).Overdue:
			l.saysWhy(w, key.Name)
			continue
		case h.lifted && w.arbiter.VerdictFor(key).Overdue:
			continue
		}
		if _, ever := w.seats(pods, w.queueOf(o.GetName()), func(*corev1.Pod) bool { return true }); ever {
			claimants++
			if !h.hidden {
				l.served(w, key.Name, pods)
			}
		}
	}
	for _, t := range w.trainings {
		if t.job.Status.Preemption == nil || claimants > 0 {
			continue
		}
		if _, fits := w.seats(w.core(t), w.queue(t.queue), w.surplusOf(t.queue)); fits {
			l.broke("%s was stopped for %s, and stays so although it fits and no gang needs its room", t.job.Name,
				t.job.Status.Preemption.By)
		}
	}
}

// retries tells whether others leave from time to time, after a pause, for a gang that is never placed: they did before, and
// then others took the room.
func (w *simulator) retries() bool {
	for _, promises := range w.arbiter.promises {
		for i := range promises.Ended {
			if h := w.hindered[promises.Ended[i].For.Name]; h != nil && h.hidden {
				return true
			}
		}
	}
	return false
}

// saysWhy: a training that is not placed though it has room says so.
func (l *laws) saysWhy(w *simulator, name string) {
	for _, t := range w.trainings {
		if key := client.ObjectKeyFromObject(t.job); t.job.Name == name && w.arbiter.VerdictFor(key).Overdue && !w.saysNotPlaced(t) {
			l.broke("the claim of %s has ended, and it says %s", key, t.job.Status.Reason)
		}
	}
}

// served: no gang waits at rest for room that surplus, or trainings that it may stop, would make.
func (l *laws) served(w *simulator, name string, pods []*corev1.Pod) {
	queue := w.queueOf(name)
	if _, fits := w.seats(pods, queue, w.surplusOf(queue.name)); fits {
		l.broke("%s waits at rest, and would fit if surplus left", name)
	}
	for _, t := range w.trainings {
		if t.job.Name != name {
			continue
		}
		tier, _ := w.config.Tiers.FindTier(t.job.Spec.Tier)
		if _, fits := w.seats(pods, queue, func(p *corev1.Pod) bool {
			of := w.trainingOf(p)
			return w.surplusOf(queue.name)(p) || of != nil && of.queue == queue.name && slices.Contains(tier.Preempts, of.job.Spec.Tier) &&
				of.job.Status.RunningSince != nil
		}); fits && len(tier.Preempts) > 0 {
			l.broke("%s waits at rest, and would fit if the trainings stopped that it preempts", name)
		}
	}
}

// surplusOf tells of pods whether they are surplus in a queue.
func (w *simulator) surplusOf(queue string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return w.isSurplus(p) && w.trainingOf(p).queue == queue }
}

// core are pods as the core of a training has them.
func (w *simulator) core(t *trainee) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range t.job.Spec.MinReplicas {
		pod := &corev1.Pod{Spec: *t.job.Spec.Template.Spec.DeepCopy()}
		if m := t.job.Spec.Master; i == 0 && m != nil && m.Resources != nil {
			pod.Spec.Containers[0].Resources = *m.Resources
		}
		pods = append(pods, pod)
	}
	return pods
}
