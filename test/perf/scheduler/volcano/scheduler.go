package main

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"volcano.sh/apis/pkg/apis/scheduling/scheme"
	"volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	nodeshardv1alpha1 "volcano.sh/apis/pkg/apis/shard/v1alpha1"
	"volcano.sh/volcano/pkg/scheduler"
	_ "volcano.sh/volcano/pkg/scheduler/actions"
	"volcano.sh/volcano/pkg/scheduler/api"
	"volcano.sh/volcano/pkg/scheduler/cache"
	"volcano.sh/volcano/pkg/scheduler/conf"
	"volcano.sh/volcano/pkg/scheduler/framework"
	"volcano.sh/volcano/pkg/scheduler/metrics"
	_ "volcano.sh/volcano/pkg/scheduler/plugins"
)

// Question says what changed since the last one, and asks for a session.
type Question struct {
	Nodes   []*corev1.Node                `json:"nodes,omitempty"`
	Queues  []*v1beta1.Queue              `json:"queues,omitempty"`
	Classes []*schedulingv1.PriorityClass `json:"classes,omitempty"`
	// Groups and Pods are new or changed, and Gone and GoneGroups are the namespace/name of those that are no more. Gone are taken
	// out first.
	Groups     []*v1beta1.PodGroup `json:"groups,omitempty"`
	Pods       []*corev1.Pod       `json:"pods,omitempty"`
	Gone       []string            `json:"gone,omitempty"`
	GoneGroups []string            `json:"goneGroups,omitempty"`
}

// Answer is what a session decided, by namespace/name of pods and PodGroups.
type Answer struct {
	// Binds has the node of each pod that got one.
	Binds map[string]string `json:"binds,omitempty"`
	// Evicts are the pods that are to leave.
	Evicts []string `json:"evicts,omitempty"`
	// Phases are those of PodGroups whose status was written. Volcano knows them already.
	Phases map[string]string `json:"phases,omitempty"`
}

// session is Volcano's scheduler without its loop, its watches and its writes.
type session struct {
	cache          *cache.SchedulerCache
	actions        []framework.Action
	tiers          []conf.Tier
	configurations []conf.Configuration

	pods    map[string]*corev1.Pod
	groups  map[string]*v1beta1.PodGroup
	version int

	mu      sync.Mutex
	evicted []string
	// asked counts evictions when they are decided. They are carried out in goroutines.
	asked   int
	written []*api.PodGroup
}

func newScheduler(configuration string) (*session, error) {
	metrics.InitKubeSchedulerRelatedMetrics()
	actions, tiers, configurations, _, err := scheduler.UnmarshalSchedulerConf(configuration)
	if err != nil {
		return nil, err
	}
	s := &session{
		actions: actions, tiers: tiers, configurations: configurations,
		pods: map[string]*corev1.Pod{}, groups: map[string]*v1beta1.PodGroup{},
	}
	s.cache = cache.NewCustomMockSchedulerCache("volcano", binder{}, s, s, nil, recorder{s})
	stop := make(chan struct{})
	s.cache.SharedInformerFactory().Start(stop)
	s.cache.SharedInformerFactory().WaitForCacheSync(stop)
	conf.EnabledActionMap = map[string]bool{}
	for _, a := range actions {
		conf.EnabledActionMap[a.Name()] = true
	}
	return s, nil
}

// run tells Volcano's cache what changed, and runs one session.
func (s *session) run(q *Question) (*Answer, error) {
	if err := s.tell(q); err != nil {
		return nil, err
	}
	s.evicted, s.asked, s.written = nil, 0, nil
	ssn := framework.OpenSession(s.cache, s.tiers, s.configurations)
	for _, a := range s.actions {
		s.execute(a, ssn)
	}
	framework.CloseSession(ssn)
	a := &Answer{Binds: map[string]string{}, Phases: map[string]string{}}
	for len(s.cache.BindFlowChannel) > 0 {
		bound := (<-s.cache.BindFlowChannel).TaskInfo
		a.Binds[bound.Namespace+"/"+bound.Name] = bound.NodeName
	}
	for s.pending() {
		runtime.Gosched()
	}
	a.Evicts = s.evicted
	for _, written := range s.written {
		key := written.Namespace + "/" + written.Name
		before := s.groups[key]
		if before == nil {
			continue
		}
		after := &v1beta1.PodGroup{}
		if err := scheme.Scheme.Convert(&written.PodGroup, after, nil); err != nil {
			return nil, err
		}
		a.Phases[key] = string(after.Status.Phase)
		s.putGroup(key, before, after)
	}
	return a, nil
}

func (s *session) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.evicted) < s.asked
}

func (s *session) tell(q *Question) error {
	for _, key := range q.Gone {
		if p := s.pods[key]; p != nil {
			s.cache.DeletePod(p)
			delete(s.pods, key)
		}
	}
	for _, key := range q.GoneGroups {
		if g := s.groups[key]; g != nil {
			s.cache.DeletePodGroupV1beta1(g)
			delete(s.groups, key)
		}
	}
	for id, job := range s.cache.Jobs {
		if job.PodGroup == nil && len(job.Tasks) == 0 {
			delete(s.cache.Jobs, id)
		}
	}
	for _, n := range q.Nodes {
		if err := s.cache.AddOrUpdateNode(n); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	for _, queue := range q.Queues {
		s.cache.AddQueueV1beta1(queue)
	}
	for _, class := range q.Classes {
		s.cache.AddPriorityClass(class)
	}
	for _, g := range q.Groups {
		key := g.Namespace + "/" + g.Name
		s.putGroup(key, s.groups[key], g)
	}
	for _, p := range q.Pods {
		key := p.Namespace + "/" + p.Name
		if before := s.pods[key]; before == nil {
			s.cache.AddPod(p)
		} else {
			s.cache.UpdatePod(before, p)
		}
		s.pods[key] = p
	}
	return nil
}

func (s *session) putGroup(key string, before, after *v1beta1.PodGroup) {
	s.version++
	after.ResourceVersion = strconv.Itoa(s.version)
	if before == nil {
		s.cache.AddPodGroupV1beta1(after)
	} else {
		s.cache.UpdatePodGroupV1beta1(before, after)
	}
	s.groups[key] = after
}

// Evict is what the cache does with a pod that is to leave.
func (s *session) Evict(p *corev1.Pod, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evicted = append(s.evicted, p.Namespace+"/"+p.Name)
	return nil
}

// UpdatePodStatus does nothing: the simulation reads no status of pods.
func (s *session) UpdatePodStatus(p *corev1.Pod) (*corev1.Pod, error) { return p, nil }

// UpdatePodGroup keeps a status that was written until the session ends: then the watch reports it.
func (s *session) UpdatePodGroup(g *api.PodGroup) (*api.PodGroup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = append(s.written, g.Clone())
	return g, nil
}

// UpdateQueueStatus does nothing: the simulation reads no status of Queues.
func (s *session) UpdateQueueStatus(*api.QueueInfo) error { return nil }

// UpdateNodeShardStatus does nothing: there are no shards.
func (s *session) UpdateNodeShardStatus(n *nodeshardv1alpha1.NodeShard) (*nodeshardv1alpha1.NodeShard, error) {
	return n, nil
}

// binder is never called: who decides reads the channel of the cache instead.
type binder struct{}

func (binder) Bind(kubernetes.Interface, []*api.TaskInfo) map[api.TaskID]string { return nil }

// recorder counts evictions, which are told of when they are decided.
type recorder struct{ of *session }

func (r recorder) Event(_ k8sruntime.Object, _, reason, _ string) { r.count(reason) }

func (r recorder) Eventf(_ k8sruntime.Object, _, reason, _ string, _ ...any) { r.count(reason) }

func (r recorder) AnnotatedEventf(_ k8sruntime.Object, _ map[string]string, _, reason, _ string, _ ...any) {
	r.count(reason)
}

func (r recorder) count(reason string) {
	if reason == "Evict" {
		r.of.mu.Lock()
		defer r.of.mu.Unlock()
		r.of.asked++
	}
}
