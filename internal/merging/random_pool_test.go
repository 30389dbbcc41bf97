package merging

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/podstate"
)

// randomPool is a pool in which all may happen that a chance picks.
type randomPool struct {
	*simulator
	c *rand.Rand
	// steps is true where clocks are put forward and back.
	steps bool
	// models are what is known of each merge's model beyond the pods.
	models map[*merger]*model
	names  int
	// down is true while Volcano's scheduler places no gang.
	down bool
	tell func(string, ...any)
	// wrong is the first law that was broken.
	wrong string
}

// model is what its full models hold, and what the operator does not see.
type model struct {
	// content is how many of the store's increments each full model holds, from the first on.
	content map[string]int
	// foreign is true once others made or removed full models, whose content is unknown.
	foreign bool
	// windows is true for a merge that was over a window from the beginning.
	windows bool
	// fits is since when the head has asked, and is not short by Tideline's count.
	fits time.Time
	// late is a look at the store that has begun and whose result has not arrived.
	late *Sighting
	// refused is the attempt whose objects the API server refuses.
	refused string
}

func (l *randomPool) chance(n int) bool { return l.c.IntN(n) == 0 }

func (l *randomPool) breaks(law string, args ...any) {
	if l.wrong == "" {
		l.wrong = fmt.Sprintf(law, args...)
	}
}

// join adds a merge with a random spec.
func (l *randomPool) join() {
	l.names++
	m := l.add(fmt.Sprintf("m%d", l.names), func(s *v1beta1.MergeJobSpec) {
		s.MinReplicas = 1 + l.c.Int32N(6)
		s.MaxReplicas = s.MinReplicas + max(l.c.Int32N(4)-1, 0)
		s.Tier = pick(l, "", "", "main-traffic", "small-traffic", "exploratory")
		s.Schedule.Interval.Duration = pick(l, 10*time.Hour, time.Hour, 10*time.Minute, 7*time.Minute+13*time.Second)
		s.Weight = v1beta1.MergeWeight{PerIncrement: pick[int32](l, 0, 0, 10), Boost: pick[int32](l, 0, 0, 7, 100, 1000)}
		s.Threshold = ptr.To(pick[int32](l, 100, 100, 50, 130))
		s.RunTimeoutSeconds, s.StartTimeoutSeconds = ptr.To(pick[int32](l, 7200, 600)), ptr.To(pick[int32](l, 300, 60))
		s.MaxIncrementsPerRun = ptr.To(pick[int32](l, 5000, 2))
		s.Suspend = l.chance(8)
		switch l.c.IntN(12) {
		case 0, 1:
			s.Schedule = nil
		case 2, 3:
			s.Schedule.Increments = ptr.To(1 + l.c.Int32N(9))
		case 4, 5:
			s.Schedule = &v1beta1.MergeSchedule{Increments: ptr.To(1 + l.c.Int32N(9))}
		}
		if l.chance(4) {
			s.Window, s.MaxIncrementsPerRun = ptr.To(1+l.c.Int32N(6)), nil
		}
	})
	if l.chance(2) {
		m.past.Usual = time.Duration(1+l.c.IntN(90)) * time.Minute
		m.past.Longest = m.past.Usual + time.Duration(l.c.IntN(30))*time.Minute
	}
	m.unplaceable, m.unjudged = l.chance(5), l.chance(4)
	if !l.chance(4) {
		m.full(l.simulator, time.Duration(l.c.IntN(15))*time.Hour)
	}
	for i := range v1beta1.MergeHistoryLimit * l.c.IntN(5) / 4 {
		m.object.Status.History = append(m.object.Status.History, v1beta1.MergeResult{
			Run: fmt.Sprintf("earlier-%d", i), Outcome: v1beta1.OutcomeFailed, EndTime: metaTime(l.now),
		})
	}
	l.models[m] = &model{content: map[string]int{}, windows: m.object.Spec.Window != nil}
}

func pick[T any](l *randomPool, from ...T) T { return from[l.c.IntN(len(from))] }

// happen lets one thing happen to the pool or to one of its merges.
func (l *randomPool) happen() string {
	if len(l.jobs) == 0 || (len(l.jobs) < 8 && l.chance(30)) {
		l.join()
		return l.jobs[len(l.jobs)-1].object.Name + " joins"
	}
	i := l.c.IntN(len(l.jobs))
	m := l.jobs[i]
	var what string
	switch n := l.c.IntN(20); {
	case n < 4:
		l.now = l.now.Add(pick(l, time.Second, 10*time.Second, time.Minute, 6*time.Minute, time.Hour, 11*time.Hour))
		return "time passes"
	case n < 6:
		for range 1 + l.c.IntN(3) {
			m.store.increments = append(m.store.increments, fmt.Sprintf("%06d", len(m.store.increments)+1))
		}
		what = "increments"
	case n == 6:
		what = l.meddle(m)
	case n == 7:
		what = l.troubleStore(m)
	case n < 12:
		what = l.hurtPod(m)
	case n < 15:
		what = l.endRun(m)
	case n < 17:
		what = l.edit(m)
	case n == 17:
		what = "refused"
		if run := m.status().Run; run != nil {
			m.problem, l.models[m].refused = &Problem{Reason: v1beta1.ReasonRejected, Message: "No."}, mergepod.AttemptName(run)
		}
	case n == 18:
		return l.change(m)
	case l.chance(3):
		l.jobs = slices.Delete(l.jobs, i, i+1)
		delete(l.models, m)
		if m.core != nil {
			l.leaving = append(l.leaving, Leftover{Key: types.NamespacedName{Namespace: "ads", Name: m.object.Name}, Gone: l.now})
		}
		what = "is deleted"
	default:
		l.look(m)
		what = "look"
	}
	return m.object.Name + ": " + what
}

// change has the cluster change: its room, its scheduler, or what keeps a merge from being placed.
func (l *randomPool) change(m *merger) string {
	switch l.c.IntN(3) {
	case 0:
		l.down = !l.down
		return fmt.Sprintf("the scheduler is down: %t", l.down)
	case 1:
		m.unplaceable, m.claims = !m.unplaceable, l.now
		return fmt.Sprintf("%s: unplaceable %t", m.object.Name, m.unplaceable)
	}
	l.room = l.c.IntN(13)
	return fmt.Sprintf("room for %d", l.room)
}

// meddle has others make or remove full models.
func (l *randomPool) meddle(m *merger) string {
	if !l.chance(3) {
		return "nothing"
	}
	l.models[m].foreign = true
	if n := len(m.store.fulls); n > 0 && l.chance(2) {
		m.store.fulls = m.store.fulls[:n-1]
		return "full model vanishes"
	}
	l.names++
	m.store.fulls = append(m.store.fulls, Full{Name: fmt.Sprintf("foreign-%d", l.names), Time: l.now})
	return "foreign full model"
}

func (l *randomPool) troubleStore(m *merger) string {
	if m.store.trouble != nil {
		m.store.trouble = nil
		return "store is well"
	}
	m.store.trouble = &Trouble{Reason: v1beta1.ReasonStoreUnreachable, Message: "No answer.", Stalled: l.chance(3)}
	return "store in trouble"
}

func (l *randomPool) hurtPod(m *merger) string {
	pods := m.workers()
	if len(pods) == 0 {
		return "nothing"
	}
	p := m.pods[pods[l.c.IntN(len(pods))].Index]
	switch l.c.IntN(4) {
	case 0:
		if p.Scheduled && !p.HasEnded() {
			p.Phase = corev1.PodFailed
		}
		return fmt.Sprintf("pod %d fails", p.Index)
	case 1:
		p.Terminating = true
		return fmt.Sprintf("pod %d is deleted", p.Index)
	case 2:
		if p.Scheduled && !p.HasEnded() {
			p.Disruption = "PreemptionByScheduler"
		}
		return fmt.Sprintf("pod %d is evicted", p.Index)
	}
	delete(m.pods, p.Index)
	return fmt.Sprintf("pod %d vanishes", p.Index)
}

// endRun has the pods of a run that runs complete the full model, end, or both.
func (l *randomPool) endRun(m *merger) string {
	run := m.status().Run
	if run == nil || !m.coreRuns() {
		return "nothing"
	}
	marker, exit := !l.chance(4), !l.chance(4)
	if marker {
		l.complete(m)
	}
	if exit {
		for _, p := range m.pods {
			if p.Scheduled {
				p.Phase = corev1.PodSucceeded
			}
		}
	}
	return fmt.Sprintf("run ends: marker %t, exit %t", marker, exit)
}

// coreRuns tells whether the core of the attempt runs.
func (m *merger) coreRuns() bool {
	n, run := int32(0), m.status().Run
	for _, p := range m.pods {
		if p.Phase == corev1.PodRunning && p.Index < run.MinReplicas && p.Attempt == mergepod.AttemptName(run) {
			n++
		}
	}
	return n == run.MinReplicas
}

// complete writes the full model, of its base and what the list names.
func (l *randomPool) complete(m *merger) {
	run, k := m.status().Run, l.models[m]
	if slices.ContainsFunc(m.store.fulls, func(f Full) bool { return f.Name == run.ID }) {
		return
	}
	m.store.fulls = append(m.store.fulls, Full{Name: run.ID, Time: l.now})
	if k.foreign {
		return
	}
	if l.completeWindow(m, run) {
		return
	}
	base, known := k.content[run.Base]
	if run.Base != "" && run.Base != "base" && !known {
		l.breaks("run %s has an unknown base %s", run.ID, run.Base)
	}
	end := base + len(m.names)
	if end > len(m.store.increments) || !slices.Equal(m.names, m.store.increments[base:end]) {
		l.breaks("%s: full model %s holds %d increments, and the run on top of it merges %v", m.object.Name, run.Base, base, m.names)
	}
	k.content[run.ID] = end
}

func (l *randomPool) edit(m *merger) string {
	m.object.Generation++
	s := &m.object.Spec
	switch l.c.IntN(6) {
	case 0:
		s.Suspend = !s.Suspend
		return fmt.Sprintf("suspend %t", s.Suspend)
	case 1:
		s.Weight.Boost = pick[int32](l, 0, 50, 1000)
		return "boost"
	case 2:
		s.Threshold = ptr.To(pick[int32](l, 100, 20, 300))
		return "threshold"
	case 3:
		s.MinReplicas = 1 + l.c.Int32N(6)
		s.MaxReplicas = max(s.MinReplicas, s.MaxReplicas)
		return fmt.Sprintf("minReplicas %d", s.MinReplicas)
	case 4:
		if !l.models[m].windows {
			return "nothing"
		}
		s.Window = nil
		if !l.chance(3) {
			s.Window = ptr.To(1 + l.c.Int32N(6))
		}
		return "window"
	}
	l.names++
	m.object.Annotations = map[string]string{v1beta1.AnnotationRunNow: strconv.Itoa(l.names)}
	return "run now"
}

// look brings the result of the look that has begun, or else begins one, which may take its time.
func (l *randomPool) look(m *merger) {
	k := l.models[m]
	if k.late != nil {
		m.sighting, k.late = k.late, nil
		return
	}
	was := m.sighting
	m.look()
	if l.chance(3) {
		m.sighting, k.late = was, m.sighting
	}
}

// nature lets pods end that were told to, places gangs that fit, and has pods start, some of them slowly.
func (l *randomPool) nature() {
	if len(l.leaving) > 0 && l.chance(2) {
		l.leaving = l.leaving[1:]
	}
	used := int32(0)
	for _, m := range l.jobs {
		for _, w := range m.workers() {
			p := m.pods[w.Index]
			switch {
			case (p.Terminating || p.Disruption != "") && l.chance(2):
				delete(m.pods, p.Index)
			case p.Scheduled && !p.HasEnded():
				used++
				if p.Phase == corev1.PodPending && !l.chance(3) {
					p.Phase = corev1.PodRunning
				}
			}
		}
	}
	for _, m := range l.jobs {
		waiting, surplus := m.waiting()
		if m.surplus == nil {
			surplus = nil
		}
		if m.core == nil || len(waiting) < l.missing(m) || m.unplaceable || l.down {
			waiting = nil
		}
		for _, gang := range [][]*podstate.Worker{waiting, surplus} {
			if n := int32(len(gang)); n > 0 && used+n <= int32(l.room) && !l.chance(4) {
				used += n
				l.changes.Placed = l.now
				for _, p := range gang {
					p.Scheduled = true
				}
			}
		}
	}
}

// waiting are the pods without a place: those of the core, and the others.
func (m *merger) waiting() (core, surplus []*podstate.Worker) {
	for _, w := range m.workers() {
		switch run, p := m.status().Run, m.pods[w.Index]; {
		case p.Scheduled || p.Terminating || p.HasEnded() || run == nil:
		case p.Index < run.MinReplicas:
			core = append(core, p)
		default:
			surplus = append(surplus, p)
		}
	}
	return core, surplus
}

// missing is how many pods of the core have no place, be they there or not.
func (l *randomPool) missing(m *merger) int {
	n := int32(0)
	if run := m.status().Run; run != nil {
		n = run.MinReplicas
		for _, p := range m.pods {
			if p.Index < run.MinReplicas && p.Scheduled {
				n--
			}
		}
	}
	return int(n)
}

// picture is how the merges stand, in a line.
func (l *randomPool) picture() string {
	var text strings.Builder
	for _, m := range l.jobs {
		fmt.Fprintf(&text, " [%s %s", m.object.Name, m.status().Summary)
		if run := m.status().Run; run != nil {
			fmt.Fprintf(&text, " %s/%d %s base=%s n=%d", run.ID[9:16], run.Attempt, run.Outcome, run.Base, run.Increments)
		}
		for _, w := range m.workers() {
			fmt.Fprintf(&text, " %d:%s/%t", w.Index, w.Phase, w.Scheduled)
			if w.Terminating {
				text.WriteString("-")
			}
		}
		text.WriteString("]")
	}
	return text.String()
}

// forget is what the operator does when it is killed.
func (l *randomPool) forget() {
	l.changes = Changes{Started: l.now}
	for _, m := range l.jobs {
		m.sighting, m.problem, l.models[m].late, l.models[m].refused = nil, nil, nil, ""
		l.models[m].fits = time.Time{}
	}
}

// operate has the operator decide once, and carry it out as far as it gets. It returns how many writes there were.
func (l *randomPool) operate(kills bool) int {
	for _, m := range l.jobs {
		if run := m.status().Run; run == nil || mergepod.AttemptName(run) != l.models[m].refused {
			m.problem = nil
		}
	}
	o := l.observed()
	before := make([]v1beta1.MergeJobStatus, len(l.jobs))
	for i, m := range l.jobs {
		before[i] = *m.status().DeepCopy()
	}
	d := Plan(o, l.now)
	l.judge(&o, &d)
	most := unlimited
	if kills && l.chance(5) {
		most = l.c.IntN(6)
	}
	looks := l.delayLooks(&d)
	n := l.carryOut(d, most)
	for i, m := range l.jobs {
		l.judgeWritten(m, &before[i])
	}
	l.judgePool()
	if most < unlimited {
		l.tell("  killed after %d writes", n)
		l.forget()
		return n
	}
	for _, m := range looks {
		l.look(m)
	}
	return n
}

// delayLooks takes the looks at stores out of a decision: they take their time.
func (l *randomPool) delayLooks(d *Decision) []*merger {
	var looks []*merger
	for i := range d.Jobs {
		if d.Jobs[i].ReadStore {
			d.Jobs[i].ReadStore = false
			looks = append(looks, l.jobs[i])
		}
	}
	return looks
}
