package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/merging"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
)

const (
	queue   = "tideline-merge"
	machine = corev1.ResourceName("nvidia.com/gpu")
)

// line is a pool of MergeJobs. The planner of merges and the model of capacity decide, as in the operator; the line plays the
// rest: the API server, Volcano, the pods, the stores, and the ledger.
type line struct {
	hall
	config   *config.Configuration
	jobs     []*merger
	serial   int
	promises capacity.Promises
	placed   map[types.NamespacedName]bool
	changes  merging.Changes
	again    time.Duration
	verdicts map[types.NamespacedName]capacity.Verdict
	// learns tells whether the ledger says how long runs take.
	learns bool
}

// merger is one MergeJob.
type merger struct {
	object *v1beta1.MergeJob
	sees   *merging.Sighting
	pods   []podstate.Worker
	core   *gang.State
	list   *merging.List
	// asked is when its gang was complete.
	asked time.Time
	// held is for how long its last runs held machines.
	held []time.Duration
	// alone is when the head would have started if none had gone ahead since it asked.
	alone time.Time
	// complete is the run whose full model is there.
	complete string
}

// policy is how the line is set.
type policy struct{ strict, learns bool }

// play runs a line to the horizon.
func (p policy) play(w workload, machines int32) (*record, error) {
	l := &line{
		hall: newHall(w, machines), config: config.DefaultConfiguration(), placed: map[types.NamespacedName]bool{}, learns: p.learns,
	}
	if p.strict {
		l.config.Merges.StrictPools = []string{queue}
	}
	for i := range w.models {
		l.add(i)
	}
	for l.now.Before(l.over()) {
		for _, r := range l.finish() {
			l.end(r)
		}
		next, err := l.settle()
		if err != nil {
			return nil, err
		}
		l.pass(earlier(next, l.nextEnd()), l.waiting())
	}
	l.close()
	for i, n := range l.begun {
		if n == 0 {
			return nil, fmt.Errorf("model %d was never merged: %s", i, l.jobs[i].object.Status.Message)
		}
	}
	return l.record, nil
}

func (l *line) uid() types.UID {
	l.serial++
	return types.UID(fmt.Sprintf("u-%d", l.serial))
}

func (l *line) add(i int) {
	m := &l.models[i]
	// A tier may demand requests of CPU and memory.
	asks := corev1.ResourceList{machine: *resource.NewQuantity(1, resource.DecimalSI), corev1.ResourceCPU: resource.MustParse("1"),
		corev1.ResourceMemory: resource.MustParse("1Gi")}
	job := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ads", Name: fmt.Sprintf("m%02d", i), UID: l.uid(), Generation: 1, CreationTimestamp: metav1.NewTime(l.now),
	}}
	job.Spec = v1beta1.MergeJobSpec{
		Pool: queue, Tier: m.tier, MinReplicas: m.machines, MaxReplicas: m.machines,
		Schedule: &v1beta1.MergeSchedule{Interval: &metav1.Duration{Duration: m.interval}},
		Store: v1beta1.ModelStore{
			Type: v1beta1.StoreS3, S3: &v1beta1.S3Store{Bucket: "models"}, Prefix: job.Name, Increments: "inc/", Full: "full/",
			CompletionMarker: "_SUCCESS",
		},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "merge", Image: "merge", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks},
		}}}},
	}
	l.jobs = append(l.jobs, &merger{object: job})
	l.look(i)
}

// names is a list of one increment. What it is called plays no part here.
var names = func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte("increment\n"))
	_ = z.Close()
	return b.Bytes()
}()

// look reads the store of a model, as the observer does. There always is an increment that waits.
func (l *line) look(i int) {
	m := l.jobs[i]
	st := &m.object.Status
	s := &merging.Sighting{Generation: m.object.Generation, Full: &merging.Full{Name: "first", Time: l.full[i]}}
	if m.complete != "" {
		s.Full.Name = m.complete
	}
	if st.LastFull != nil {
		s.Known = st.LastFull.Name
	}
	if run := st.Run; run != nil {
		s.Attempt, s.Run, s.RunComplete = mergepod.AttemptName(run), run.ID, run.ID == m.complete
		s.RunOver = merging.IsOver(m.object, l.config.Tiers, m.pods, l.now)
	}
	s.Increments = merging.Increments{Count: 1, Listed: 1, Newest: l.now, List: names, Last: fmt.Sprintf("%012d", l.now.Unix())}
	m.sees = s
}

// end has the pods of a merge end well, with the full model complete.
func (l *line) end(r *run) {
	m := l.jobs[r.model]
	m.complete = m.object.Status.Run.ID
	for i := range m.pods {
		m.pods[i].Phase = corev1.PodSucceeded
	}
	m.held = append(m.held, l.now.Sub(r.placed))
	l.look(r.model)
}

// settle lets the planner and Volcano act until nothing changes, and returns when time alone changes something.
func (l *line) settle() (time.Time, error) {
	for range 200 {
		l.judge()
		d := merging.Plan(l.observed(), l.now)
		changed := false
		for i := range d.Jobs {
			changed = l.carryOut(i, &d.Jobs[i]) || changed
		}
		next := l.now.Add(horizon)
		if d.RequeueAfter > 0 {
			next = l.now.Add(d.RequeueAfter)
		}
		if l.again > 0 {
			next = earlier(next, l.now.Add(l.again))
		}
		placedOne := l.place(&next)
		if changed || placedOne {
			continue
		}
		if whole := next.Truncate(time.Second); whole.Before(next) {
			next = whole.Add(time.Second) // Status has whole seconds.
		}
		return next, nil
	}
	return time.Time{}, fmt.Errorf("the line does not come to rest at %s", l.now)
}

// carryOut does what is decided about one job. It reports whether it did anything.
func (l *line) carryOut(i int, d *merging.JobDecision) (changed bool) {
	m := l.jobs[i]
	if n := len(d.DeletePods); n > 0 {
		m.pods, changed = nil, true // At once: nobody else learns of it here.
	}
	if len(d.DeleteGroups) > 0 {
		m.core, changed = nil, true
	}
	if d.DeleteList != "" {
		m.list, changed = nil, true
	}
	if d.CreateList != nil {
		m.list, changed = &merging.List{UID: l.uid(), Run: d.Blueprint.Run.ID}, true
	}
	for _, g := range d.CreateGroups {
		state := gang.StateOf(g.PodGroup())
		state.UID = l.uid()
		m.core, changed = &state, true
	}
	if len(d.CreatePods) > 0 {
		m.pods = slices.DeleteFunc(m.pods, func(w podstate.Worker) bool { return w.HasEnded() })
	}
	for _, index := range d.CreatePods {
		pod := d.Blueprint.NewPod(index)
		pod.UID, pod.Status.Phase = l.uid(), corev1.PodPending
		m.pods, m.asked, changed = append(m.pods, podstate.ReadWorker(pod, index)), l.now, true
	}
	was := m.object.Status.Run
	if isAtRest(&m.object.Status, &d.Status) && !d.ReadStore {
		return changed
	}
	if pace := merging.PaceOf(&m.object.Status, &d.Status); pace > statuspace.Never {
		m.object.Status, changed = *d.Status.DeepCopy(), true
	}
	l.follow(i, was)
	if d.ReadStore {
		before := m.sees
		l.look(i)
		changed = changed || before.Known != m.sees.Known || before.Attempt != m.sees.Attempt || before.RunOver != m.sees.RunOver
	}
	return changed
}

// isAtRest tells whether nothing but words may differ, which are compared slowly and play no part here.
func isAtRest(was, is *v1beta1.MergeJobStatus) bool {
	return was.Run == nil && is.Run == nil && was.Summary != "" && was.Phase == is.Phase &&
		ptr.Deref(was.Position, 0) == ptr.Deref(is.Position, 0) && was.AheadRetryTime.Equal(is.AheadRetryTime) &&
		was.LastFull != nil && is.LastFull != nil && was.LastFull.Name == is.LastFull.Name && was.DueTime.Equal(is.DueTime)
}

// follow measures what became of a run.
func (l *line) follow(i int, was *v1beta1.MergeRun) {
	m := l.jobs[i]
	switch run := m.object.Status.Run; {
	case run == nil || (was != nil && was.ID == run.ID && was.Outcome == run.Outcome):
	case run.Outcome == v1beta1.OutcomeWithdrawn:
		l.stoodBack++
	case was == nil && run.Ahead == nil:
		m.alone = earlier(l.now.Add(horizon), l.roomAt(l.models[i].machines))
	}
}

// observed is what the planner sees.
func (l *line) observed() merging.Observed {
	o := merging.Observed{Pool: queue, Config: l.config, QueueState: gang.QueueOpen, Changes: l.changes}
	for i, m := range l.jobs {
		job := &merging.Job{Object: m.object, Store: m.sees, Pods: m.pods, Core: m.core, List: m.list, Verdict: l.verdicts[key(i)]}
		if l.learns {
			job.Past = merging.PastOf(m.held)
		}
		o.Jobs = append(o.Jobs, job)
	}
	return o
}

func key(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "ads", Name: fmt.Sprintf("m%02d", i)}
}

// place places gangs that fit, the head first, once Volcano has had its time.
func (l *line) place(next *time.Time) (placedOne bool) {
	var ready []int
	for i, m := range l.jobs {
		if l.isWaiting(i) {
			if at := m.asked.Add(l.placing()); at.After(l.now) {
				*next = earlier(*next, at)
			} else {
				ready = append(ready, i)
			}
		}
	}
	slices.SortStableFunc(ready, func(a, b int) int { return l.jobs[a].asked.Compare(l.jobs[b].asked) })
	for _, i := range ready {
		m := l.jobs[i]
		if l.models[i].machines > l.free {
			continue
		}
		r := l.start(i)
		for j := range m.pods {
			m.pods[j].Scheduled, m.pods[j].Phase, m.pods[j].Node = true, corev1.PodRunning, "n"
		}
		if m.object.Status.Run.Ahead != nil {
			l.ahead++
		} else if isCounted(l.now) {
			// Who need not wait is placed when Volcano has had its time.
			fair := m.alone
			if first := m.asked.Add(l.placing()); first.After(fair) {
				fair = first
			}
			l.delays = append(l.delays, max(r.placed.Sub(fair), 0).Minutes())
		}
		l.changes.Placed, placedOne = l.now, true
	}
	return placedOne
}

// isWaiting tells whether the gang of a model is complete and has no place.
func (l *line) isWaiting(i int) bool {
	m := l.jobs[i]
	run := m.object.Status.Run
	return run != nil && run.Outcome == "" && run.PlaceTime == nil && m.core != nil && len(m.pods) == int(run.MinReplicas) &&
		!m.pods[0].Scheduled
}

// waiting are the models that are due and have no machines.
func (l *line) waiting() []int {
	var all []int
	for i := range l.models {
		held := slices.ContainsFunc(l.running, func(r *run) bool { return r.model == i })
		if !held && !l.dueAt(i).After(l.now) {
			all = append(all, i)
		}
	}
	return all
}

// oneMachine is a worker. The model counts pods by itself.
var oneMachine = capacity.Shape{Requests: capacity.Amounts{machine: 1000}}

// judge asks the model of capacity, as the arbiter does.
func (l *line) judge() {
	l.verdicts, l.again = map[types.NamespacedName]capacity.Verdict{}, 0
	var head *capacity.Gang
	var asking, behind []*capacity.Gang
	for i, m := range l.jobs {
		st := &m.object.Status
		g := &capacity.Gang{
			Job: key(i), Queue: queue, Created: m.object.CreationTimestamp.Time, Since: m.asked, Shape: oneMachine,
			Workers: l.models[i].machines,
		}
		switch {
		case l.isWaiting(i):
			asking = append(asking, g)
			if st.Run.Ahead == nil {
				head = g
			}
		case st.Run == nil && ptr.Deref(st.Position, 0) > 0:
			behind = append(behind, g)
		}
	}
	if len(asking) == 0 {
		return
	}
	model := capacity.New(l.snapshot())
	all := func(types.NamespacedName) bool { return true }
	review := model.ReviewClaims(capacity.Docket{
		Queue: queue, Waiting: asking, Promises: l.promises, Placed: l.placed, PlacementTimeout: time.Minute,
		Starved: func(*capacity.Gang) (bool, time.Duration) { return true, 0 }, Yields: all, Leaves: all,
	}, l.now)
	l.verdicts, l.promises, l.again = review.Decide()
	if head == nil {
		return
	}
	for job, ahead := range model.JudgeAhead(head, behind) {
		v := l.verdicts[job]
		v.Ahead = &ahead
		l.verdicts[job] = v
	}
}

func (l *line) snapshot() capacity.Snapshot {
	machines := l.free
	for _, r := range l.running {
		machines += l.models[r.model].machines
	}
	s := capacity.Snapshot{
		Nodes: []capacity.Node{{Name: "n", Allocatable: capacity.Amounts{
			machine: 1000 * int64(machines), corev1.ResourcePods: int64(machines),
		}}},
		Queues: []capacity.Queue{{Name: queue}},
	}
	for _, r := range l.running {
		pod := capacity.Pod{Node: "n", Requests: oneMachine.Requests, Queue: queue}
		if run := l.jobs[r.model].object.Status.Run; run != nil && run.ExpectedEndTime != nil {
			pod.Until = run.ExpectedEndTime.Time
		}
		for range l.models[r.model].machines {
			s.Pods = append(s.Pods, pod)
		}
	}
	return s
}
