package merging

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/merging/mergepod"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// simulator is a pool that holds so many pods, its merges, and their stores. Time passes only when a test says so.
type simulator struct {
	t      *testing.T
	now    time.Time
	config *config.Configuration
	room   int
	jobs   []*merger
	// webhooksOff is true while the operator serves no webhooks.
	webhooksOff bool
	// obstacles are those of Volcano's configuration.
	obstacles []string
	// leaving are gangs of merges that are gone, which the garbage collector has yet to delete.
	leaving []Leftover
	uids    int
	// placed is when Volcano last placed a pod, and changes when the rest last changed.
	changes Changes
	// ahead is how merges stand to the head of the line.
	ahead map[types.NamespacedName]capacity.Ahead
	// turns decides whose turn it is at the caps of profiles.
	turns turns
	// calls are the names of merges in the order in which they were first placed.
	calls []string
}

// merger is one MergeJob with all that belongs to it.
type merger struct {
	world         *simulator
	object        *v1beta1.MergeJob
	pods          map[int32]*podstate.Worker
	core, surplus *gang.State
	list          *List
	names         []string // of the list
	store         store
	sighting      *Sighting
	problem       *Problem
	profile       *v1beta1.ResourceQuotaProfile
	history       *sizing.History
	past          Past
	verdict       capacity.Verdict
	// unplaceable is true for a merge whose pods Volcano does not place, and unjudged where Tideline does not know better.
	unplaceable, unjudged bool
	// noClaim is true where the arbiter sees nothing of it that waits, and says is what Volcano says of its gang.
	noClaim bool
	says    string
	claims  time.Time
	rivals  []Rival
	// strangers and namesakes are pods of others, as the observer finds them.
	strangers, namesakes []Leftover
}

// store is what a model's store holds.
type store struct {
	increments []string
	fulls      []Full
	hollow     string // a folder newer than those, with a marker alone
	trouble    *Trouble
}

var morning = time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)

func newSimulator(t *testing.T, room int) *simulator {
	t.Helper()
	return &simulator{t: t, now: morning, config: config.DefaultConfiguration(), room: room}
}

// add adds a merge of 4 pods that is due every 10 hours, with 3 increments in its store and no full model.
func (w *simulator) add(name string, change ...func(*v1beta1.MergeJobSpec)) *merger {
	m := &merger{
		world: w,
		object: &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ads", Name: name, UID: w.uid(), Generation: 1, CreationTimestamp: metav1.NewTime(w.now),
		}},
		pods:  map[int32]*podstate.Worker{},
		store: store{increments: []string{"000001", "000002", "000003"}},
	}
	m.object.Spec = v1beta1.MergeJobSpec{
		Pool: "tideline-merge", MinReplicas: 4, MaxReplicas: 4,
		Schedule: &v1beta1.MergeSchedule{Interval: &metav1.Duration{Duration: 10 * time.Hour}},
		Store: v1beta1.ModelStore{
			Type: v1beta1.StoreS3, S3: &v1beta1.S3Store{Bucket: "models"}, Prefix: name, Increments: "inc/", Full: "full/",
			CompletionMarker: "_SUCCESS",
		},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "merge", Image: "merge", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
			}},
		}}}},
	}
	for _, c := range change {
		c(&m.object.Spec)
	}
	w.jobs = append(w.jobs, m)
	return m
}

// full gives the model a full model of that age.
func (m *merger) full(w *simulator, age time.Duration) *merger {
	m.store.fulls = append(m.store.fulls, Full{Name: "base", Time: w.now.Add(-age)})
	return m
}

func (m *merger) status() *v1beta1.MergeJobStatus { return &m.object.Status }

// look reads the store, as the observer does.
func (m *merger) look() {
	s := &Sighting{
		Known: nameOf(m.status().LastFull), Hollow: m.store.hollow, Generation: m.object.Generation,
		RunNow: m.object.Annotations[v1beta1.AnnotationRunNow],
	}
	defer func() { m.sighting = s }()
	run := m.status().Run
	if run != nil {
		s.Attempt, s.Run, s.RunOver = mergepod.AttemptName(run), run.ID, IsOver(m.object, m.world.config.Tiers, m.workers(),
			m.world.now)
	}
	if s.Trouble = m.store.trouble; s.Trouble != nil {
		return
	}
	if run != nil {
		s.RunComplete = slices.ContainsFunc(m.store.fulls, func(f Full) bool { return f.Name == run.ID })
	}
	after := ""
	if fulls := slices.Clone(m.store.fulls); len(fulls) > 0 {
		SortFulls(fulls, nameOf(m.status().LastFull), EarlierRuns(m.status()))
		s.Full = &fulls[0]
		if full := m.status().LastFull; full != nil && full.Name == s.Full.Name {
			after = full.LastIncrement
		} else {
			after = LastMerged(m.status())[s.Full.Name]
		}
	}
	var waiting []string
	for _, name := range m.store.increments {
		if name > after {
			waiting = append(waiting, name)
		}
	}
	listed := waiting[:min(len(waiting), int(ptr.Deref(m.object.Spec.MaxIncrementsPerRun, 5000)))]
	if window := m.object.Spec.Window; window != nil {
		listed = m.store.increments[max(len(m.store.increments)-int(*window), 0):]
	}
	s.Increments = Increments{Count: len(waiting), Listed: len(listed), List: zipped(listed)}
	if len(listed) > 0 {
		s.Increments.Last = listed[len(listed)-1]
	}
}

// writers are kept, because each takes long to make.
var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func zipped(names []string) []byte {
	if len(names) == 0 {
		return nil
	}
	var b bytes.Buffer
	z, _ := writers.Get().(*gzip.Writer)
	defer writers.Put(z)
	z.Reset(&b)
	_, _ = io.WriteString(z, strings.Join(names, "\n")+"\n")
	_ = z.Close()
	return b.Bytes()
}

func unzipped(t *testing.T, list []byte) []string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(content))
}

func (m *merger) workers() []podstate.Worker {
	var all []podstate.Worker
	for _, p := range m.pods {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b podstate.Worker) int { return int(a.Index - b.Index) })
	return all
}

func (w *simulator) observed() Observed {
	o := Observed{Pool: "tideline-merge", Config: w.config, QueueState: gang.QueueOpen, SchedulerObstacles: w.obstacles,
		Leaving: w.leaving, WebhooksOff: w.webhooksOff, Changes: w.changes}
	w.ahead = w.judgeAhead()
	decided := w.decideTurns()
	for _, m := range w.jobs {
		o.Jobs = append(o.Jobs, &Job{
			Object: m.object, Store: m.sighting, Pods: m.workers(), Core: m.core, Surplus: m.surplus, List: m.list, Problem: m.problem,
			Verdict: m.judged(), ClaimsChanged: m.claims, Profile: m.profile, History: m.history, Rivals: m.rivals, Strangers: m.strangers,
			Namesakes: m.namesakes, Past: m.past, Turn: decided[m],
		})
	}
	return o
}

func (w *simulator) plan() Decision { return Plan(w.observed(), w.now) }

// uid returns a new UID.
func (w *simulator) uid() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("u-%d", w.uids))
}

// writes lists what a decision does for one job, its status last.
func (w *simulator) writes(m *merger, d *JobDecision) []func() {
	var all []func()
	for _, p := range d.DeletePods {
		all = append(all, func() {
			if have := m.pods[p.Index]; have != nil && have.UID == p.UID {
				have.Terminating = true
			}
		})
	}
	for _, g := range d.DeleteGroups {
		all = append(all, func() {
			if g.Name == mergepod.CoreName(m.object.Name) {
				m.core = nil
			} else {
				m.surplus = nil
			}
		})
	}
	if d.DeleteList != "" {
		all = append(all, func() { m.list = nil })
	}
	if d.CreateList != nil {
		all = append(all, func() {
			m.list = &List{UID: w.uid(), Run: d.Blueprint.Run.ID}
			m.names = unzipped(w.t, d.CreateList)
		})
	}
	for _, g := range d.CreateGroups {
		all = append(all, func() {
			state := gang.StateOf(g.PodGroup())
			state.UID, state.Unschedulable = w.uid(), m.says
			m.core = &state
		})
	}
	for _, i := range d.CreatePods {
		pod := d.Blueprint.NewPod(i)
		all = append(all, func() {
			if m.pods[i] == nil {
				pod.UID, pod.Status.Phase = w.uid(), corev1.PodPending
				worker := podstate.ReadWorker(pod, i)
				m.pods[i] = &worker
			}
		})
	}
	if g := d.CreateLast; g != nil {
		all = append(all, func() {
			state := gang.StateOf(g.PodGroup())
			state.UID = w.uid()
			m.surplus = &state
		})
	}
	if PaceOf(m.status(), &d.Status) > statuspace.Never {
		all = append(all, func() { m.object.Status = *d.Status.DeepCopy() })
	}
	return all
}

// carryOut carries a decision out; at most so many writes, as an operator does that is killed. It returns how many there were.
func (w *simulator) carryOut(d Decision, most int) int {
	n := 0
	for i := range d.Jobs {
		m := w.jobs[slices.IndexFunc(w.jobs, func(m *merger) bool { return m.object == d.Jobs[i].Job.Object })]
		for _, write := range w.writes(m, &d.Jobs[i]) {
			if n == most {
				return n
			}
			write()
			n++
		}
		if d.Jobs[i].ReadStore && most > n {
			m.look()
		}
	}
	return n
}

const unlimited = 1 << 30

// settle plans, carries out and lets the cluster do its part until nothing happens any more.
func (w *simulator) settle() {
	w.t.Helper()
	for range 1000 {
		for _, m := range w.jobs {
			if m.sighting == nil {
				m.look()
			}
		}
		n := w.carryOut(w.plan(), unlimited)
		n += w.cluster()
		w.check()
		if n == 0 {
			if again := w.carryOut(w.plan(), unlimited); again > 0 {
				continue
			}
			return
		}
	}
	w.t.Fatal("the pool does not come to rest")
}

// cluster deletes what terminates, and places whole gangs where there is room. It returns how much it did.
func (w *simulator) cluster() int {
	n, used := 0, 0
	for _, m := range w.jobs {
		for i, p := range m.pods {
			if p.Terminating {
				delete(m.pods, i)
				n++
			} else if p.Scheduled && !p.HasEnded() {
				used++
			}
		}
	}
	for _, m := range w.jobs {
		waiting := m.unplaced()
		there := m.core != nil && len(waiting) > 0 && len(m.pods) >= int(m.status().Run.MinReplicas)
		if !there || m.unplaceable || used+len(waiting) > w.room {
			continue
		}
		for _, p := range waiting {
			p.Scheduled, p.Phase = true, corev1.PodRunning
			n++
		}
		used += len(waiting)
		w.changes.Placed = w.now
		w.calls = append(w.calls, m.object.Name)
	}
	return n
}

// unplaced are the pods of the core that wait for a place.
func (m *merger) unplaced() []*podstate.Worker {
	var all []*podstate.Worker
	for _, p := range m.pods {
		if run := m.status().Run; !p.Scheduled && !p.Terminating && run != nil && p.Index < run.MinReplicas {
			all = append(all, p)
		}
	}
	return all
}

// check holds the simulator to what must be true at every moment.
func (w *simulator) check() {
	w.t.Helper()
	w.checkCaps()
	asking := map[bool][]string{}
	for _, m := range w.jobs {
		if m.core != nil && len(m.unplaced()) > 0 {
			ahead := m.status().Run.Ahead != nil
			asking[ahead] = append(asking[ahead], m.object.Name)
		}
		runs := map[string]bool{}
		for _, p := range m.pods {
			if !p.HasEnded() {
				runs[p.Attempt] = true
			}
		}
		if len(runs) > 1 {
			w.t.Fatalf("%s has pods of %d attempts", m.object.Name, len(runs))
		}
	}
	if len(asking[false]) > 1 || len(asking[true]) > 1 {
		w.t.Fatalf("more than one head, or more than one that goes ahead, waits for its place: %v", asking)
	}
}

func (m *merger) placed() bool {
	run := m.status().Run
	if run == nil {
		return false
	}
	n := int32(0)
	for _, p := range m.pods {
		if p.Scheduled && p.Index < run.MinReplicas {
			n++
		}
	}
	return n == run.MinReplicas
}

// merge completes the run of a merge that runs: its pods write the full model and end.
func (w *simulator) merge(m *merger) {
	m.store.fulls = append(m.store.fulls, Full{Name: m.status().Run.ID, Time: w.now})
	w.exit(m)
}

// exit has all pods end well.
func (w *simulator) exit(m *merger) {
	for _, p := range m.pods {
		p.Phase = corev1.PodSucceeded
	}
	m.look()
}

// pass lets time pass; stores are read.
func (w *simulator) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for _, m := range w.jobs {
		m.look()
	}
	w.settle()
}

func (w *simulator) running() []*merger {
	var all []*merger
	for _, m := range w.jobs {
		if m.status().Phase == v1beta1.MergeRunning {
			all = append(all, m)
		}
	}
	return all
}
