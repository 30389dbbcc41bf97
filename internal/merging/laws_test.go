package merging

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil/environ"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

// TestRandomPools drives pools of merges through random events, kills of the operator among them, and holds every decision and
// every write to what must never happen. In every fourth history clocks are also put forward and back by an hour.
// TIDELINE_HISTORIES is how many, 20 by default, and TIDELINE_SEED repeats those of an earlier run.
func TestRandomPools(t *testing.T) {
	histories, seed := environ.Number(t, "TIDELINE_HISTORIES", 20), environ.Number(t, "TIDELINE_SEED", uint64(time.Now().UnixNano()))
	shards := uint64(runtime.GOMAXPROCS(0))
	for shard := range shards {
		t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
			t.Parallel()
			for n := shard; n < histories; n += shards {
				steps := n/shards%4 == 3
				if wrong := poolHistory(t, rand.New(rand.NewPCG(seed, n)), steps, nil); wrong != "" {
					poolHistory(t, rand.New(rand.NewPCG(seed, n)), steps, t.Logf)
					t.Fatalf("TIDELINE_SEED=%d, history %d: %s", seed, n, wrong)
				}
			}
		})
	}
}

// poolHistory is the life of one pool. It returns what was wrong with it, and tells the story if somebody listens.
func poolHistory(t *testing.T, c *rand.Rand, steps bool, tell func(string, ...any)) string {
	t.Helper()
	l := &randomPool{simulator: newSimulator(t, c.IntN(13)), c: c, steps: steps, models: map[*merger]*model{}, tell: tell}
	if tell == nil {
		l.tell = func(string, ...any) {}
	}
	for range 1 + c.IntN(6) {
		l.join()
	}
	for range 20 + c.IntN(60) {
		what := l.happen()
		if steps && l.chance(6) {
			l.now = l.now.Add(pick(l, time.Hour, -time.Hour))
			what += ", and clocks are set"
		}
		for range c.IntN(4) {
			l.operate(true)
			l.nature()
		}
		if tell != nil {
			l.tell("%s %s:%s", l.now.Format(time.TimeOnly), what, l.picture())
		}
		if l.wrong == "" && !steps && l.chance(10) {
			l.rest()
		}
		if l.wrong != "" {
			return l.wrong
		}
	}
	l.epilogue()
	return l.wrong
}

// judge holds one decision to the laws.
func (l *randomPool) judge(o *Observed, d *Decision) {
	for i := range d.Jobs {
		jd, was := &d.Jobs[i], &o.Jobs[i].Object.Status
		l.judgeObjects(jd, was.Run)
		if len(jd.Status.History) > v1beta1.MergeHistoryLimit {
			l.breaks("%s has a history of %d", jd.Job.Key(), len(jd.Status.History))
		}
		if asks(jd.Status.Run) && jd.Status.Run.Ahead == nil && ptr.Deref(jd.Status.Position, 0) != 1 {
			l.breaks("%s asks, and is not first of the line", jd.Job.Key())
		}
		l.judgeRead(jd)
		if !l.steps { // What is said to take so long takes an hour more or less.
			l.judgeAside(jd, l.jobs[i])
			l.judgeWindow(jd)
			l.judgeHaste(jd)
		}
		if asks(jd.Status.Run) && !asks(was.Run) {
			if slices.ContainsFunc(o.Leaving, func(g Leftover) bool { return l.now.Before(g.BlocksUntil()) }) {
				l.breaks("%s asks beside the gang of a merge that is gone", jd.Job.Key())
			}
			if jd.Status.Run.Ahead != nil {
				l.judgeWayAhead(o, d, i)
			} else {
				l.judgeTurn(d, i)
			}
		}
	}
}

// judgeRead: while the pods of a run are at work, its store cannot tell what came of it, and is not read for that in each pass.
func (l *randomPool) judgeRead(d *JobDecision) {
	was, s := &d.Job.Object.Status, d.Job.Store
	run := was.Run
	if !d.ReadStore || run == nil || run.Outcome != "" || run.RunTime == nil || d.Job.List == nil {
		return
	}
	if s == nil || s.Trouble != nil || s.Known != nameOf(was.LastFull) {
		return // It was not read by the record as it is.
	}
	if is := d.Status.Run; is == nil || is.Outcome != "" {
		return // The run has ended now, and the next one begins with what the store has by then.
	}
	if !IsOver(d.Job.Object, l.config.Tiers, d.Job.Pods, l.now) {
		l.breaks("%s has its store read while its pods are at work", d.Job.Key())
	}
}

func asks(run *v1beta1.MergeRun) bool {
	return run != nil && run.Outcome == "" && run.PlaceTime == nil
}

// judgeAside: no merge holds the line for long that is not placed although nothing that is counted is in the way; whoever is set
// aside is told so, and asks again when something has changed.
func (l *randomPool) judgeAside(d *JobDecision, m *merger) {
	was, is, k := &d.Job.Object.Status, &d.Status, l.models[m]
	v := d.Job.Verdict
	if short := v.Waiting > 0 && !v.Answer.Fits && v.Answer.Unknown == ""; !asks(was.Run) || short {
		k.fits = time.Time{}
	} else if k.fits.IsZero() {
		k.fits = l.now
	}
	timeout := time.Duration(l.config.Claims.PlacementTimeoutSeconds) * time.Second
	if held := l.now.Sub(k.fits); !k.fits.IsZero() && asks(is.Run) && held > 2*timeout+2*time.Second {
		l.breaks("%s holds the line for %s, and is not placed", d.Job.Key(), held)
	}
	if aside := is.SetAside; aside != nil && (was.SetAside == nil || *was.SetAside != *aside) {
		most := timeout << min(aside.Times-1, 5)
		if is.Run.Reason != v1beta1.ReasonNotPlaced || aside.Message == "" || aside.RetryTime.Sub(aside.Time.Time) != most {
			l.breaks("%s is set aside and is told %q, until %s", d.Job.Key(), aside.Message, aside.RetryTime)
		}
	}
	anew := asks(is.Run) && is.Run.Ahead == nil && (was.Run == nil || was.Run.Reason == v1beta1.ReasonNotPlaced)
	if aside := was.SetAside; anew && aside != nil && l.now.Before(aside.RetryTime.Time) && !m.claims.After(aside.Time.Time) &&
		!l.changes.Started.After(aside.Time.Time) && is.Run.Template == aside.Template {
		l.breaks("%s was set aside until %s, and asks although nothing has changed", d.Job.Key(), aside.RetryTime)
	}
	if is.Reason != v1beta1.ReasonNotPlaced {
		return
	}
	if at := is.SetAside.RetryTime.UTC().Format(time.RFC3339); !strings.Contains(is.Message, at) {
		l.breaks("%s is not told that it asks again at %s: %s", d.Job.Key(), at, is.Message)
	}
	if !l.now.Before(is.SetAside.RetryTime.Time) || m.claims.After(is.SetAside.Time.Time) {
		l.breaks("%s is kept aside for too long", d.Job.Key())
	}
}

// behind tells of a merge that was set aside within a day.
func (l *randomPool) behind(st *v1beta1.MergeJobStatus) bool {
	return st.SetAside != nil && l.now.Sub(st.SetAside.Time.Time) < 24*time.Hour
}

// judgeObjects: objects are made only of an attempt that is on record, and deleted when its end is.
func (l *randomPool) judgeObjects(d *JobDecision, written *v1beta1.MergeRun) {
	creates := len(d.CreatePods) > 0 || len(d.CreateGroups) > 0 || d.CreateList != nil || d.CreateLast != nil
	if made := d.Blueprint.Run; creates &&
		(written == nil || written.Outcome != "" || made.ID != written.ID || made.Attempt != written.Attempt) {
		l.breaks("%s: objects are created of an attempt that is not on record", d.Job.Key())
	}
	over := written != nil && written.Outcome != ""
	if len(d.DeleteGroups) > 0 && !over {
		l.breaks("%s: a PodGroup is deleted, and no end is on record", d.Job.Key())
	}
	for _, p := range d.DeletePods {
		if !over && (written == nil || p.Attempt == mergepod.AttemptName(written)) {
			l.breaks("%s: pod %d is deleted, and no end is on record", d.Job.Key(), p.Index)
		}
	}
	if d.DeleteList != "" && !over && (written == nil || d.Job.List.Run == written.ID) {
		l.breaks("%s: the list is deleted, and no end is on record", d.Job.Key())
	}
}

// judgeTurn checks that one merge asks at a time, and none from behind one that may ask.
func (l *randomPool) judgeTurn(d *Decision, asker int) {
	x := &d.Jobs[asker]
	returns := x.Job.Object.Status.Run != nil
	for i := range d.Jobs {
		y := &d.Jobs[i]
		if i == asker || y.Status.Position == nil {
			continue
		}
		back := y.Status.Run != nil
		switch s := y.Job.Store; {
		case asks(y.Status.Run):
			l.breaks("%s asks while %s does", x.Job.Key(), y.Job.Key())
		case s != nil && s.Trouble != nil, l.behind(&y.Status) && !l.behind(&x.Status):
		case l.behind(&x.Status) && !l.behind(&y.Status):
			l.breaks("%s, which was set aside, asks before %s, which can go", x.Job.Key(), y.Job.Key())
		case l.behind(&x.Status), returns && !back:
		case back && !returns:
			l.breaks("%s asks before the run of %s that was taken back", x.Job.Key(), y.Job.Key())
		case !back && l.order(y) > l.order(x)+1e-6:
			l.breaks("%s, weight %.2f, asks from behind %s, %.2f", x.Job.Key(), l.order(x), y.Job.Key(), l.order(y))
		}
	}
}

// judgeWayAhead: who goes ahead does so of a head that asks on record and lacks room, alone, and takes nothing from it.
func (l *randomPool) judgeWayAhead(o *Observed, d *Decision, asker int) {
	x := &d.Jobs[asker]
	fits, run, heads := x.Job.Verdict.Ahead, x.Status.Run, 0
	for i, job := range o.Jobs {
		written := job.Object.Status.Run
		switch {
		case i == asker || !asks(written):
		case written.Ahead != nil:
			l.breaks("%s and %s go ahead at once", x.Job.Key(), job.Key())
		case v1beta1.RefTo(job.Key()) == run.Ahead.Head && job.Verdict.Waiting > 0 && !job.Verdict.Answer.Fits:
			heads++
		}
	}
	if heads != 1 {
		l.breaks("%s goes ahead of %v, which does not wait for room", x.Job.Key(), run.Ahead.Head)
	}
	longest := time.Duration(*x.Job.Object.Spec.RunTimeoutSeconds+*x.Job.Object.Spec.StartTimeoutSeconds) * time.Second
	if past := x.Job.Past.Longest; past > 0 {
		longest = min(longest, past+20*time.Second)
	}
	if fits == nil || (!fits.Spare && l.now.Add(longest).After(fits.HeadAt)) {
		l.breaks("%s goes ahead for %s, and takes from the head: %+v", x.Job.Key(), longest, fits)
	}
	if retry := x.Job.Object.Status.AheadRetryTime; retry != nil && l.now.Before(retry.Time) {
		l.breaks("%s was not placed, and goes ahead again before %s", x.Job.Key(), retry)
	}
}

// judgeHaste: who goes ahead asks for seconds.
func (l *randomPool) judgeHaste(d *JobDecision) {
	if run := d.Status.Run; asks(run) && run.Ahead != nil && l.now.Sub(run.AskTime.Time) > 41*time.Second {
		l.breaks("%s goes ahead, and has asked for %s", d.Job.Key(), l.now.Sub(run.AskTime.Time))
	}
}

// order is the weight in the line of a merge that is due.
func (l *randomPool) order(d *JobDecision) float64 {
	s, st := &d.Job.Object.Spec, &d.Status
	if s.Schedule != nil && s.Schedule.Increments != nil {
		return l.orderByIncrements(d)
	}
	age := 100.0
	if st.LastFull != nil && s.Schedule != nil {
		age = 100 * max(l.now.Sub(st.LastFull.Time.Time).Seconds(), 0) / s.Schedule.Interval.Seconds()
	} else if joined := d.Job.Object.Status.QueueTime; joined != nil {
		interval := 24 * time.Hour
		if s.Schedule != nil {
			interval = s.Schedule.Interval.Duration
		}
		// A clock that was set back by more than the interval takes all of the age, and no more.
		age = max(0, age+100*l.now.Sub(joined.Time).Seconds()/interval.Seconds())
	}
	extra := min(int64(s.Weight.PerIncrement)*int64(st.Increments)+int64(s.Weight.Boost), 1000)
	return age*float64(l.config.Tiers.MergeFactor(st.Tier)) + float64(extra)
}

// judgeWritten: what was written of one merge follows from what was written before.
func (l *randomPool) judgeWritten(m *merger, was *v1beta1.MergeJobStatus) {
	is, name := m.status(), m.object.Name
	if asks(was.Run) && (is.Run == nil || is.Run.ID != was.Run.ID || is.Run.Attempt != was.Run.Attempt) {
		l.breaks("%s: the run that asked is not the one on record", name)
	}
	run := is.Run
	if w := was.Run; w != nil && (run == nil || run.ID != w.ID) && (w.Outcome == "" ||
		w.Outcome == v1beta1.OutcomeWithdrawn && w.Reason != v1beta1.ReasonNotPlaced && w.Reason != v1beta1.ReasonGoingAhead) {
		l.breaks("%s: run %s is gone, and its end was not on record", name, w.ID)
	}
	if run == nil || m.list == nil || m.list.Run != run.ID || len(m.pods) == 0 {
		return
	}
	if len(m.names) != int(run.Increments) || (len(m.names) > 0 && m.names[len(m.names)-1] != run.LastIncrement) {
		l.breaks("%s: the list has %v, on record are %d until %s", name, m.names, run.Increments, run.LastIncrement)
	}
}

// judgePool: one head at most asks and waits for a place, and one merge that goes ahead of it; no model has pods of two attempts.
func (l *randomPool) judgePool() {
	waiting, asking := map[bool][]string{}, map[bool][]string{}
	for _, m := range l.jobs {
		run := m.status().Run
		ahead := run != nil && run.Ahead != nil
		if core, _ := m.waiting(); len(core) > 0 {
			waiting[ahead] = append(waiting[ahead], m.object.Name)
		}
		if asks(run) {
			asking[ahead] = append(asking[ahead], m.object.Name)
		}
		attempts := map[string]bool{}
		for _, p := range m.pods {
			if !p.HasEnded() {
				attempts[p.Attempt] = true
			}
		}
		if len(attempts) > 1 {
			l.breaks("%s has pods of %d attempts", m.object.Name, len(attempts))
		}
	}
	for _, ahead := range []bool{false, true} {
		if len(waiting[ahead]) > 1 || len(asking[ahead]) > 1 {
			l.breaks("gangs of %v wait for a place, and %v ask (ahead of the head: %t)", waiting[ahead], asking[ahead], ahead)
		}
	}
}

// quiet has the operator work until it does nothing, all stores read and nothing else happening. It is false if it never ends.
func (l *randomPool) quiet() bool {
	for range 100 {
		for _, m := range l.jobs {
			m.look()
			l.models[m].late = nil
		}
		if l.operate(false) == 0 {
			return true
		}
	}
	l.breaks("the operator does not come to rest:%s", l.picture())
	return false
}

// rest: nothing is written when nothing changed, before the time that the plan names, and at that time something is.
func (l *randomPool) rest() {
	if !l.quiet() {
		return
	}
	if l.operate(false) > 0 {
		l.breaks("writes although nothing changed")
	}
	// By their weights alone, merges may pass each other in the line while time passes, and so may one that goes behind the others.
	waiting := 0
	for _, m := range l.jobs {
		switch st := m.status(); {
		case st.Position == nil, asks(st.Run):
		case l.behind(st):
			waiting += 2
		default:
			waiting++
		}
	}
	now, again := l.now, l.plan().RequeueAfter
	until := max(again-time.Second, 0) // Times are told in whole seconds.
	if again == 0 {
		until = 30 * time.Hour
	}
	for range 3 {
		l.now = now.Add(time.Duration(l.c.Int64N(int64(until) + 1)))
		d := l.plan()
		if pace := l.busy(&d); pace == statuspace.Now || (pace > statuspace.Never && waiting < 2) {
			l.breaks("%s later the pool changes by itself, and the plan named %s:%s", l.now.Sub(now), again, l.picture())
		}
	}
	if again > 0 {
		l.now = now.Add(again)
		d := l.plan()
		looks := slices.ContainsFunc(d.Jobs, func(jd JobDecision) bool { return jd.ReadStore })
		if l.busy(&d) == statuspace.Never && !looks {
			l.breaks("the plan named %s, and nothing changes then:%s", again, l.picture())
		}
	}
	l.now = now
}

// busy is how urgent the most urgent status of a decision is, or whether it creates or deletes.
func (l *randomPool) busy(d *Decision) statuspace.Pace {
	pace := statuspace.Never
	for i := range d.Jobs {
		jd, m := &d.Jobs[i], l.jobs[i]
		pace = max(pace, PaceOf(m.status(), &jd.Status))
		writes := len(l.writes(m, jd))
		if PaceOf(m.status(), &jd.Status) > statuspace.Never {
			writes--
		}
		if writes > 0 {
			pace = statuspace.Now
		}
	}
	return pace
}

// epilogue: nothing is left when everybody is suspended, and in a pool without troubles everything is merged in the end.
func (l *randomPool) epilogue() {
	suspended := func(s bool) {
		for _, m := range l.jobs {
			m.object.Spec.Suspend, m.store.trouble = s, nil
		}
	}
	suspended(true)
	l.calm(false)
	for _, m := range l.jobs {
		if what := m.leftovers(); what != "" && l.wrong == "" {
			l.breaks("%s is suspended and has %s:%s", m.object.Name, what, l.picture())
		}
	}
	suspended(false)
	for _, m := range l.jobs {
		m.object.Spec.MaxIncrementsPerRun = nil
		m.unplaceable, m.claims = false, l.now.Add(time.Second)
	}
	l.room, l.down = 12, false
	l.forget()
	for range 8 {
		l.calm(true)
		l.now = l.now.Add(10 * time.Hour)
	}
	for _, m := range l.jobs {
		once := m.object.Spec.Schedule == nil && m.status().MergeTime != nil
		few := m.object.Spec.Schedule.IsByIncrements() && ptr.Deref(m.status().Weight, 0) < int64(*m.object.Spec.Threshold)
		if m.status().Increments > 0 && !once && !few {
			l.breaks("%s never merges:%s", m.object.Name, l.picture())
		}
		if what := m.leftovers(); what != "" {
			l.breaks("%s has merged and has %s:%s", m.object.Name, what, l.picture())
		}
	}
}

// calm lets pods start and end until nothing moves; runs that run complete their models, if they may.
func (l *randomPool) calm(completes bool) {
	for range 60 {
		if l.wrong != "" || !l.quiet() {
			return
		}
		before := l.picture()
		for range 4 {
			l.nature()
		}
		for _, m := range l.jobs {
			if completes && m.status().Phase == v1beta1.MergeRunning {
				l.complete(m)
			}
		}
		if before == l.picture() && l.plan().RequeueAfter != time.Second && !slices.ContainsFunc(l.jobs, (*merger).moves) {
			return
		}
		l.now = l.now.Add(time.Second)
	}
}

func (m *merger) moves() bool { return m.status().Run != nil }

// leftovers says what the merge has that asks for room or holds any.
func (m *merger) leftovers() string {
	switch {
	case m.status().Run != nil:
		return "a run"
	case m.core != nil || m.surplus != nil:
		return "a PodGroup"
	case m.list != nil:
		return "a list"
	case slices.ContainsFunc(m.workers(), func(w podstate.Worker) bool { return !w.HasEnded() }):
		return "pods"
	}
	return ""
}
