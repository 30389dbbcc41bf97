package main

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/test/perf/scheduler"
)

const (
	gpu = corev1.ResourceName("nvidia.com/gpu")
	// tick is the time between two moments at which anything happens, and leaveTime how long a pod takes to leave its node.
	tick, leaveTime = 10 * time.Second, 10 * time.Second
	// mostSessions is how often Volcano schedules at one moment, at most. A real one would in each second.
	mostSessions = 5
	warmUp       = 12 * time.Hour
)

// subject is a way to run a training. Its methods change the cluster.
type subject interface {
	// arrive is called when a training has come, and left when a pod of it is gone that was not to go.
	arrive(r *run)
	left(r *run, pod *corev1.Pod)
	// settle decides until nothing changes any more.
	settle() error
	// forget is called when a training has ended and all of it is gone.
	forget(r *run)
}

// run is a training on the cluster.
type run struct {
	job
	progress

	// need is how many workers train at least.
	need int32
	pods map[string]*corev1.Pod
	// starts is when all that it needs was placed first; less than 0 for never.
	starts time.Duration
	// ended is when it did, once it is over.
	ended time.Duration
	over  bool
	// before is what was left to do when the measured time began; less than 0 for a training that came later.
	before time.Duration
	work   time.Duration
}

// cluster is the nodes, the pods and the clock.
type cluster struct {
	subject subject
	volcano *scheduler.Session
	now     time.Duration
	agenda  agenda
	serial  int

	runs   map[string]*run
	all    []*run
	groups map[string]client.Object
	taken  map[string]int32
	teams  []string
	told   scheduler.Question
	pods   map[string]*corev1.Pod // new or changed since the last session
	gone   map[string]bool
	owner  map[string]*run // of each pod
	// dirty is true while Volcano has not seen what others changed. Its own binds ask for no session: of 224 that followed
	// binds alone, none decided anything.
	dirty bool

	sums sums
	// see is called with each pod and PodGroup that is new, changed or gone.
	see func(o client.Object, gone bool)
	// tell says how far a run is, each simulated hour; nil to tell nothing.
	tell func(hour time.Duration, sessions int)
}

// event is something that happens at a time.
type event struct {
	at    time.Duration
	order int
	do    func()
}

type agenda []event

func (a *agenda) Len() int { return len(*a) }
func (a *agenda) Less(i, j int) bool {
	return cmp.Or(cmp.Compare((*a)[i].at, (*a)[j].at), (*a)[i].order-(*a)[j].order) < 0
}
func (a *agenda) Swap(i, j int) { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }
func (a *agenda) Push(x any)    { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func newCluster(v *scheduler.Session, jobs []job) (*cluster, error) {
	c := &cluster{
		volcano: v, runs: map[string]*run{}, groups: map[string]client.Object{}, taken: map[string]int32{},
		pods: map[string]*corev1.Pod{}, gone: map[string]bool{}, owner: map[string]*run{}, sums: newSums(),
		see: func(client.Object, bool) {},
	}
	offers := map[string]float64{}
	for i := range jobs {
		offers[jobs[i].team] += float64(jobs[i].asked) * jobs[i].lasts.Seconds()
		r := &run{
			job: jobs[i], progress: progress{asked: jobs[i].asked, left: jobs[i].lasts}, pods: map[string]*corev1.Pod{},
			starts: -1, before: -1, work: jobs[i].lasts,
		}
		c.at(jobs[i].comes, func() {
			c.runs[r.name] = r
			c.all = append(c.all, r)
			c.subject.arrive(r)
		})
	}
	total := 0.0
	for team, offer := range offers {
		c.teams, total = append(c.teams, team), total+offer
	}
	slices.Sort(c.teams)
	for i := range nodes {
		c.told.Nodes = append(c.told.Nodes, newNode(i))
	}
	for _, team := range c.teams {
		q, err := scheduler.NewQueue(team, gpu, max(1, int64(offers[team]/total*gpusOfCluster+0.5)))
		if err != nil {
			return nil, err
		}
		c.told.Queues = append(c.told.Queues, q)
	}
	return c, nil
}

// bound has teams hold no more GPUs than these, and deserve no more.
func (c *cluster) bound(capabilities map[string]int64) {
	for _, o := range c.told.Queues {
		q, is := o.(*schedulingv1beta1.Queue)
		if most, bounded := capabilities[o.GetName()]; is && bounded {
			q.Spec.Capability = gpus(most)
			if deserved := q.Spec.Deserved[gpu]; deserved.Value() > most {
				q.Spec.Deserved = gpus(most)
			}
		}
	}
}

func nodeSize(i int) int32 { return min(gpusPerNode, int32(gpusOfCluster-i*gpusPerNode)) }

func nodeName(i int) string { return fmt.Sprintf("node-%02d", i) }

func newNode(i int) *corev1.Node {
	has := corev1.ResourceList{
		gpu: *resource.NewQuantity(int64(nodeSize(i)), resource.DecimalSI), "cpu": resource.MustParse("96"),
		"memory": resource.MustParse("512Gi"), "pods": resource.MustParse("110"),
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), UID: types.UID(nodeName(i))}}
	n.Status = corev1.NodeStatus{
		Capacity: has, Allocatable: has, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}
	return n
}

// wall is the time of the simulated clock.
func (c *cluster) wall() time.Time { return weekBegins.Add(c.now) }

// at does something at a time, or as soon as may be after it.
func (c *cluster) at(when time.Duration, do func()) {
	c.serial++
	heap.Push(&c.agenda, event{max(when, c.now), c.serial, do})
}

// play plays so many days.
func (c *cluster) play(days int) error {
	end := time.Duration(days) * day
	c.at(warmUp, c.beginMeasure)
	for c.agenda.Len() > 0 {
		next := (c.agenda[0].at + tick - 1).Truncate(tick)
		if next > end {
			break
		}
		if hour := next.Truncate(time.Hour); hour > c.now && c.tell != nil {
			c.tell(hour, c.sums.sessions)
		}
		c.pass(next)
		for c.agenda.Len() > 0 && c.agenda[0].at <= c.now {
			heap.Pop(&c.agenda).(event).do()
		}
		if err := c.settle(); err != nil {
			return fmt.Errorf("at %s: %w", c.now, err)
		}
	}
	c.pass(end)
	return nil
}

// settle lets the subject and Volcano act until nothing changes any more.
func (c *cluster) settle() error {
	for range mostSessions {
		if err := c.subject.settle(); err != nil {
			return err
		}
		if !c.dirty {
			return nil
		}
		if err := c.schedule(); err != nil {
			return err
		}
	}
	c.at(c.now+tick, func() {})
	return c.subject.settle()
}

// schedule has Volcano run a session, and carries out what it decided.
func (c *cluster) schedule() error {
	q := c.told
	for _, p := range c.pods {
		q.Pods = append(q.Pods, p)
	}
	slices.SortFunc(q.Pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	for key := range c.gone {
		q.Gone = append(q.Gone, key)
	}
	c.told, c.dirty = scheduler.Question{}, false
	clear(c.pods)
	clear(c.gone)
	a, err := c.volcano.Ask(&q)
	if err != nil {
		return err
	}
	c.sums.sessions++
	touched := map[*run]bool{}
	for key, node := range a.Binds {
		if r, p := c.podAt(key); p != nil && p.Spec.NodeName == "" {
			c.bind(r, p, node)
			touched[r] = true
		}
	}
	for _, key := range a.Evicts {
		if r, p := c.podAt(key); p != nil && p.DeletionTimestamp == nil {
			c.sums.evicted(c.now)
			c.leave(r, p, corev1.PodReasonPreemptionByScheduler)
			touched[r] = true
		}
	}
	for r := range touched {
		c.meet(r)
	}
	return nil
}

func (c *cluster) podAt(key string) (*run, *corev1.Pod) {
	if r := c.owner[key]; r != nil {
		return r, r.pods[key]
	}
	return nil, nil
}

func (c *cluster) bind(r *run, p *corev1.Pod, node string) {
	is := p.DeepCopy()
	since := metav1.NewTime(c.wall())
	is.Spec.NodeName, is.Status.Phase, is.Status.StartTime = node, corev1.PodRunning, &since
	is.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: since},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since},
	}
	c.taken[node]++
	c.put(r, is)
}

// create adds a pod of a training, with the priority of its class.
func (c *cluster) create(r *run, p *corev1.Pod, priority int32) {
	c.serial++
	p.UID, p.CreationTimestamp = types.UID(fmt.Sprintf("pod-%08d", c.serial)), metav1.NewTime(c.wall())
	p.Spec.Priority, p.Status.Phase = ptr.To(priority), corev1.PodPending
	c.put(r, p)
	c.dirty = true
}

func (c *cluster) put(r *run, p *corev1.Pod) {
	key := client.ObjectKeyFromObject(p).String()
	r.pods[key], c.pods[key], c.owner[key] = p, p, r
	c.see(p, false)
}

// leave has a pod go: at once without a node, else after leaveTime. why is the reason of its condition; empty for none.
func (c *cluster) leave(r *run, p *corev1.Pod, why string) {
	if p.DeletionTimestamp != nil {
		return
	}
	if p.Spec.NodeName == "" {
		c.remove(r, p)
		return
	}
	is := p.DeepCopy()
	is.DeletionTimestamp, is.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(c.wall().Add(leaveTime))), ptr.To[int64](10)
	if why != "" {
		is.Status.Conditions = append(is.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: why, LastTransitionTime: metav1.NewTime(c.wall()),
		})
	}
	c.put(r, is)
	c.dirty = true
	c.meet(r)
	c.at(c.now+leaveTime, func() {
		if !r.over {
			c.remove(r, is)
		}
	})
}

// remove takes a pod away.
func (c *cluster) remove(r *run, p *corev1.Pod) {
	key := client.ObjectKeyFromObject(p).String()
	delete(r.pods, key)
	delete(c.pods, key)
	delete(c.owner, key)
	c.see(p, true)
	c.gone[key], c.dirty = true, true
	if p.Spec.NodeName != "" {
		c.taken[p.Spec.NodeName]--
	}
	if !r.over {
		c.subject.left(r, p)
	}
}

// addGroup creates a PodGroup.
func (c *cluster) addGroup(g client.Object) {
	c.serial++
	g.SetUID(types.UID(fmt.Sprintf("group-%08d", c.serial)))
	g.SetCreationTimestamp(metav1.NewTime(c.wall()))
	c.groups[client.ObjectKeyFromObject(g).String()] = g
	c.told.Groups, c.dirty = append(c.told.Groups, g), true
	c.see(g, false)
}

func (c *cluster) removeGroup(key string) {
	if g := c.groups[key]; g != nil {
		delete(c.groups, key)
		c.see(g, true)
		c.told.Groups = slices.DeleteFunc(c.told.Groups, func(g client.Object) bool {
			return client.ObjectKeyFromObject(g).String() == key
		})
		c.told.GoneGroups, c.dirty = append(c.told.GoneGroups, key), true
	}
}

func (c *cluster) addClass(class schedulingv1.PriorityClass) {
	c.told.Classes = append(c.told.Classes, &class)
}

// meet has the workers of a training that have a node train together, if they are enough, and notes when it will end.
func (c *cluster) meet(r *run) {
	size := int32(0)
	for _, p := range r.pods {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			size++
		}
	}
	if size < r.need || r.need == 0 {
		size = 0
	}
	if size == r.size {
		return
	}
	if size > 0 && r.starts < 0 {
		r.starts = c.now
	}
	if r.size > 0 {
		c.sums.changed(c.now)
	}
	r.resize(c.now, size)
	if end, runs := r.ends(); runs {
		c.at(end, func() {
			if now, still := r.ends(); still && now == end && !r.over {
				c.finish(r)
			}
		})
	}
}

// finish takes away all of a training that has ended.
func (c *cluster) finish(r *run) {
	r.end(c.now)
	r.over, r.left, r.ended = true, 0, c.now
	for _, p := range r.pods {
		c.remove(r, p)
	}
	for _, key := range []string{r.team + "/" + gang.CoreName(r.name), r.team + "/" + gang.SurplusName(r.name)} {
		c.removeGroup(key)
	}
	c.subject.forget(r)
	delete(c.runs, r.name)
}

func (r *run) leftNow(now time.Duration) time.Duration {
	if r.over {
		return 0
	}
	return r.leftAt(now)
}
