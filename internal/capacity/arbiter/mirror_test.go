package arbiter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil/environ"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// shelf is what the cache of one kind holds, by key.
type shelf map[string]client.Object

// GetByKey is that of a cache.
func (s shelf) GetByKey(key string) (any, bool, error) {
	o, there := s[key]
	return o, there, nil
}

// caches are those of all kinds, and the events of their changes that were not delivered yet.
type caches struct {
	random  *rand.Rand
	shelves map[reflect.Type]shelf
	put     map[reflect.Type]func(*mirror, types.NamespacedName, client.Object)
	events  []happening
	number  int
}

// happening is an event of one cache.
type happening struct {
	of    reflect.Type
	event any
}

func newCaches(random *rand.Rand) *caches {
	c := &caches{
		random: random, shelves: map[reflect.Type]shelf{},
		put: map[reflect.Type]func(*mirror, types.NamespacedName, client.Object){},
	}
	for _, kind := range kinds() {
		of := reflect.TypeOf(kind.list)
		c.shelves[of], c.put[of] = shelf{}, kind.put
	}
	return c
}

// Get is for namespaces and single Queues, which are not asked for here.
func (c *caches) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("objects").GroupResource(), key.Name)
}

// List lists the objects in any order.
func (c *caches) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	var items []runtime.Object
	for _, o := range c.shelves[reflect.TypeOf(list)] {
		items = append(items, o)
	}
	return meta.SetList(list, items)
}

// set has a cache hold an object, or nothing under its name, and tells it in one of the ways in which caches tell.
func (c *caches) set(list client.ObjectList, o client.Object, there bool) {
	of, key := reflect.TypeOf(list), strings.TrimPrefix(client.ObjectKeyFromObject(o).String(), "/")
	if was := c.shelves[of][key]; was != nil && c.random.IntN(2) == 0 {
		c.events = append(c.events, happening{of, was}) // An event that is late, with an object that is gone by now.
	}
	if there {
		c.shelves[of][key] = o
		c.events = append(c.events, happening{of, o})
		return
	}
	delete(c.shelves[of], key)
	c.events = append(c.events, happening{of, pick[any](c.random, o,
		toolscache.DeletedFinalStateUnknown{Key: key, Obj: o}, toolscache.DeletedFinalStateUnknown{Key: key})})
}

// deliver delivers events in any order, and some of them twice; all of them if it must.
func (c *caches) deliver(to *mirror, all bool) {
	c.random.Shuffle(len(c.events), func(i, j int) { c.events[i], c.events[j] = c.events[j], c.events[i] })
	count := len(c.events)
	if !all {
		count = c.random.IntN(count + 1)
	}
	for i, h := range c.events[:count] {
		to.look(c.shelves[h.of], h.event, c.put[h.of])
		if again := c.events[c.random.IntN(i+1)]; c.random.IntN(4) == 0 {
			to.look(c.shelves[again.of], again.event, c.put[again.of])
		}
	}
	c.events = c.events[count:]
	if all && c.random.IntN(4) == 0 { // A watch begins anew, and tells of all that there is.
		for of, shelf := range c.shelves {
			for _, o := range shelf {
				to.look(shelf, o, c.put[of])
			}
		}
	}
}

// happen changes one object.
func (c *caches) happen() {
	name, there := fmt.Sprintf("o%d", c.random.IntN(6)), c.random.IntN(5) > 0
	switch c.random.IntN(10) {
	case 0:
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"gpu": pick(c.random, "a100", "h100")}}}
		n.Status.Allocatable = corev1.ResourceList{gpus: *resource.NewQuantity(int64(c.random.IntN(9)), resource.DecimalSI)}
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: pick(c.random, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse),
		}}
		c.set(&corev1.NodeList{}, n, there)
	case 1:
		q := gang.NewQueue()
		q.SetName(pick(c.random, "default", "other"))
		c.set(gang.NewQueueList(), q, there)
	case 2:
		c.set(&corev1.PersistentVolumeList{}, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelTopologyZone: pick(c.random, "a", "b")},
		}}, there)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "data"}}
		claim.Spec.VolumeName, claim.Spec.AccessModes = name, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		claim.Status.Phase = corev1.ClaimBound
		c.set(&corev1.PersistentVolumeClaimList{}, claim, c.random.IntN(5) > 0)
	case 3:
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
		class.Scheduling = &nodev1.Scheduling{NodeSelector: map[string]string{"gpu": pick(c.random, "a100", "h100")}}
		c.set(&nodev1.RuntimeClassList{}, class, there)
	case 4:
		c.set(&v1beta1.MergeJobList{}, &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: name}}, there)
	default:
		c.jobHappens(name, there)
	}
}

// jobHappens changes a job, its PodGroups, or one of its pods.
func (c *caches) jobHappens(name string, there bool) {
	jobs := reflect.TypeOf(&v1beta1.ElasticTrainingJobList{})
	j, known := c.shelves[jobs]["ads/"+name].(*v1beta1.ElasticTrainingJob)
	if !known || c.random.IntN(4) == 0 {
		j = c.job(name, j)
		c.set(&v1beta1.ElasticTrainingJobList{}, j, there)
	}
	if j.Status.Attempt == nil {
		return
	}
	b := trainingpod.Blueprint{Job: j, Attempt: j.Status.Attempt, Tier: config.DefaultTiers()[0], Queue: j.Status.Queue}
	if group := pick(c.random, b.CoreGroup(), b.SurplusGroup()); c.random.IntN(3) == 0 {
		group.MinMember = int32(c.random.IntN(4))
		c.set(gang.NewPodGroupList(), group.PodGroup(), there)
		return
	}
	pod := b.NewPod(int32(c.random.IntN(4)))
	c.number++
	pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprintf("pod%d", c.number)), metav1.NewTime(now.Add(-time.Hour))
	pod.Status.Phase = pick(c.random, corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed)
	pod.Spec.NodeName = pick(c.random, "", "o0", "o1", "o2", "o3")
	if c.random.IntN(6) == 0 {
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(30 * time.Second)))
	}
	if c.random.IntN(6) == 0 {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
	}
	c.set(&corev1.PodList{}, pod, there)
}

// job is a job of that name: a new one, or the next state of one that is there.
func (c *caches) job(name string, was *v1beta1.ElasticTrainingJob) *v1beta1.ElasticTrainingJob {
	c.number++
	w := newSimulator(nil)
	j := w.addTraining(pick(c.random, "low", "mid", "high"), "default", 2, 4, int64(1+c.random.IntN(2)), hindrance{}).job
	j.Name, j.UID, j.Generation = name, types.UID(fmt.Sprint("job", c.number)), 1
	changes := true
	if was != nil && c.random.IntN(3) > 0 {
		j.UID, j.Generation = was.UID, was.Generation+1
		if c.random.IntN(2) == 0 {
			j, changes = was.DeepCopy(), false // Only its status changes.
		}
	}
	j.Status.Queue = pick(c.random, "default", "other")
	if c.random.IntN(6) > 0 {
		j.Status.Attempt = &v1beta1.AttemptStatus{Number: 1, MinReplicas: int32(1 + c.random.IntN(3)), MaxReplicas: 4}
	}
	j.Status.RunningSince = pick(c.random, nil, ptr.To(metav1.NewTime(now.Add(-time.Minute))))
	j.Status.CompletionTime = pick(c.random, nil, nil, nil, ptr.To(metav1.NewTime(now)))
	j.Status.Preemption = pick(c.random, nil, nil, nil, &v1beta1.PreemptionStatus{})
	if c.random.IntN(3) == 0 {
		j.Status.AvoidedNodes = []v1beta1.AvoidedNode{{Name: pick(c.random, "o0", "o1"), Until: ptr.To(metav1.NewTime(now))}}
	}
	if changes {
		j.Spec.Elasticity.Growth.Mode = pick(c.random, v1beta1.GrowthAlways, v1beta1.GrowthOnlyIfFits)
		j.Spec.Template.Spec.RuntimeClassName = pick(c.random, nil, ptr.To("fast"))
		j.Spec.Template.Spec.Volumes = pick(c.random, nil, []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}})
	}
	return j
}

// TestMirrorIsWhatTheCachesHold: after any history of events, late, repeated, out of order, or of objects that no watch saw go,
// the mirror is the one that is built from nothing, and so are the verdicts.
func TestMirrorIsWhatTheCachesHold(t *testing.T) {
	histories, seed := environ.Number(t, "TIDELINE_HISTORIES", 40), environ.Number(t, "TIDELINE_SEED", 4)
	waited := 0
	for n := range histories {
		random := rand.New(rand.NewPCG(seed, n))
		c := newCaches(random)
		served := random.IntN(2) == 0
		live, anew := c.arbiter(served), c.arbiter(served)
		live.watching = []func() bool{func() bool { return true }}
		at := now
		for step := range 60 {
			for range 1 + random.IntN(8) {
				c.happen()
				if random.IntN(2) == 0 {
					c.deliver(live.mirror, false)
				}
			}
			c.deliver(live.mirror, true)
			at = at.Add(time.Duration(random.IntN(60)) * time.Second)
			g := NewWithT(t)
			want, err := readMirror(t.Context(), c, config.DefaultConfiguration())
			g.Expect(err).NotTo(HaveOccurred())
			where := fmt.Sprintf("history %d of seed %d, step %d", n, seed, step)
			have := sumsOf(live.mirror)
			for name, sum := range sumsOf(want) {
				if !reflect.DeepEqual(have[name], sum) {
					t.Fatalf("%s: the mirror's %s are not those of the caches", where, name)
				}
			}
			g.Expect(live.shapesNow(live.mirror, at)).To(Equal(anew.shapesNow(want, at)), where)
			g.Expect(heldByPods(live.newCollector(live.mirror, at).snapshot(t.Context()))).To(BeTrue(), where)
			for _, a := range []*Arbiter{live, anew} {
				_, _, err := a.decide(t.Context(), at)
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(live.jobs.verdicts).To(Equal(anew.jobs.verdicts), where)
			waited += len(live.jobs.verdicts)
		}
	}
	if waited < int(histories) {
		t.Errorf("only %d verdicts in all: the histories try too little", waited)
	}
}

func (c *caches) arbiter(served bool) *Arbiter {
	cfg := newSimulator(nil).config
	return New(c, cfg, func() bool { return served }, nil, logr.Discard())
}

// sumsOf is all that a mirror keeps, without what it computes when somebody asks.
func sumsOf(m *mirror) map[string]any {
	rolls := map[types.NamespacedName]roll{}
	for key, r := range m.rolls {
		one := *r
		one.waiters, one.asOf = nil, 0
		one.pods = slices.SortedFunc(slices.Values(r.pods), func(a, b *knownPod) int { return cmp.Compare(a.key.Name, b.key.Name) })
		rolls[key] = one
	}
	return map[string]any{
		"jobs": m.jobs, "merges": m.merges, "PodGroups": m.groups, "Queues": m.queues, "nodes": m.nodes, "volumes": m.volumes,
		"claims": m.volumeClaims, "classes": m.classes, "pods": m.pods, "held": m.held, "booked": m.booked, "rolls": rolls,
		"unbound": m.unbound,
		"short":   m.short, "asking": m.asking, "growing": m.growing, "ready": strings.Join(m.ready, " "),
	}
}

// shapesNow are the shapes of all jobs.
func (a *Arbiter) shapesNow(m *mirror, at time.Time) map[string]capacity.Shape {
	c, all := a.newCollector(m, at), map[string]capacity.Shape{}
	for key, job := range m.jobs {
		for i := range int32(2) {
			all[fmt.Sprint(key, i)] = c.shapeOf(job, "", i)
		}
	}
	return all
}

// heldByPods is true if the nodes of a snapshot hold what its pods do.
func heldByPods(s capacity.Snapshot) bool {
	held := map[string]capacity.Amounts{}
	for i := range s.Pods {
		addTo(held, s.Pods[i].Node, s.Pods[i].Requests, 1)
		addTo(held, s.Pods[i].Node, capacity.Amounts{corev1.ResourcePods: 1}, 1)
	}
	return !slices.ContainsFunc(s.Nodes, func(n capacity.Node) bool { return !maps.Equal(n.Held, held[n.Name]) })
}
