package arbiter

import (
	"context"
	"fmt"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// scene is a large cluster as the caches have it: every node is full.
type scene struct {
	config *config.Configuration
	lists  map[reflect.Type][]runtime.Object
	grow   bool
}

// The scene of the benchmarks.
const (
	sceneNodes = 5000
	sceneJobs  = 10000
	sceneLines = 20
)

func (s *scene) add(list client.ObjectList, o client.Object) {
	of := reflect.TypeOf(list)
	s.lists[of] = append(s.lists[of], o)
}

// Get is for namespaces and single Queues, which the arbiter does not ask for here.
func (s *scene) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("objects").GroupResource(), key.Name)
}

// List lists as caches do: into a list whose items share what the objects point to.
func (s *scene) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return meta.SetList(list, s.lists[reflect.TypeOf(list)])
}

// newScene has jobs of two workers and two of surplus on nodes of eight devices and 41 labels, and so many gangs of 20 shapes
// that wait in 20 queues. The running jobs have room to grow in their ranges if they are to.
func newScene(waiting int, grow bool) *scene { return newSceneOf(sceneNodes, sceneJobs, waiting, grow) }

// newSceneOf has so many nodes, of which two jobs fill each.
func newSceneOf(nodes, jobs, waiting int, grow bool) *scene {
	s := &scene{grow: grow, config: config.DefaultConfiguration(), lists: map[reflect.Type][]runtime.Object{}}
	for i := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i), Labels: map[string]string{}}}
		for j := range 40 {
			n.Labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-feature-%02d", j)] = "true"
		}
		n.Labels["gpu"] = []string{"a100", "h100"}[i%2]
		n.Status.Allocatable = corev1.ResourceList{
			"cpu": resource.MustParse("96"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110"),
			"ephemeral-storage": resource.MustParse("1Ti"), gpus: resource.MustParse("8"),
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		s.add(&corev1.NodeList{}, n)
	}
	for i := range sceneLines {
		q := gang.NewQueue()
		q.SetName(fmt.Sprintf("queue-%02d", i))
		s.add(gang.NewQueueList(), q)
	}
	for i := range jobs {
		s.addJob(fmt.Sprintf("run-%05d", i), i, 1, i/2)
	}
	for i := range waiting {
		s.addJob(fmt.Sprintf("wait-%05d", i), i, int64(1+i%4), -1)
	}
	return s
}

// addJob adds a job: on a node, or waiting with its core if the number of the node is less than 0.
func (s *scene) addJob(name string, i int, each int64, node int) {
	queue := fmt.Sprintf("queue-%02d", i%sceneLines)
	j := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ads", Name: name, UID: types.UID(name), Generation: 1,
		CreationTimestamp: metav1.NewTime(now.Add(-time.Hour - time.Duration(i)*time.Second)),
	}}
	j.Spec.MinReplicas, j.Spec.MaxReplicas = 2, 4
	if node < 0 {
		j.Spec.MinReplicas, j.Spec.MaxReplicas = int32(2+i%5), int32(8)
	}
	j.Spec.Elasticity.Shrink = v1beta1.Shrink{Initiator: v1beta1.ShrinkAuto, StarvationSeconds: ptr.To[int32](60)}
	j.Spec.Framework.Torchrun = &v1beta1.Torchrun{JoinTimeoutSeconds: ptr.To[int32](600)}
	asks := corev1.ResourceList{
		"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), gpus: *resource.NewQuantity(each, resource.DecimalSI),
	}
	j.Spec.Template.Spec.NodeSelector = map[string]string{"gpu": []string{"a100", "h100"}[i/2%2]}
	j.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "trainer", Image: "trainer", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks},
	}}
	if s.grow && node >= 0 {
		j.Spec.MaxReplicas, j.Spec.Elasticity.Growth.Mode = 8, v1beta1.GrowthOnlyIfPays
	}
	started := metav1.NewTime(now.Add(-time.Hour))
	j.Status.Queue = queue
	j.Status.Attempt = &v1beta1.AttemptStatus{
		Number: 1, StartTime: started, MinReplicas: j.Spec.MinReplicas, MaxReplicas: j.Spec.MaxReplicas,
	}
	pods := j.Spec.MinReplicas
	if node >= 0 {
		j.Status.RunningSince, pods = &started, 4
	}
	s.add(&v1beta1.ElasticTrainingJobList{}, j)
	b := trainingpod.Blueprint{Job: j, Attempt: j.Status.Attempt, Tier: config.DefaultTiers()[0], Queue: queue}
	for _, g := range []client.Object{b.CoreGroup().PodGroup(), b.SurplusGroup().PodGroup()} {
		s.add(gang.NewPodGroupList(), g)
	}
	for i := range pods {
		pod := b.NewPod(i)
		pod.UID, pod.CreationTimestamp, pod.Status.Phase = types.UID(pod.Name), started, corev1.PodPending
		if node >= 0 {
			pod.Spec.NodeName, pod.Status.Phase = fmt.Sprintf("node-%04d", node), corev1.PodRunning
		}
		s.add(&corev1.PodList{}, pod)
	}
}

// arbiter is one that has seen all there is, and wakes no job.
func (s *scene) arbiter(ctx context.Context) *Arbiter {
	a := New(s, s.config, func() bool { return true }, nil, logr.Discard())
	var err error
	if a.mirror, err = readMirror(ctx, s, s.config); err != nil {
		panic(err)
	}
	a.watching = []func() bool{func() bool { return true }}
	a.wake = make(chan event.GenericEvent, mostWoken)
	go func() {
		for {
			select {
			case <-a.wake:
			case <-ctx.Done():
				return
			}
		}
	}()
	return a
}

// BenchmarkEvaluate is what one evaluation costs while 10,000 jobs run with 40,000 pods on 5,000 nodes.
func BenchmarkEvaluate(b *testing.B) {
	for _, c := range []struct {
		name    string
		waiting int
		grow    bool
	}{{"nothing waits", 0, false}, {"10,000 would grow", 0, true}, {"2,000 wait in 20 queues", 2000, false}} {
		b.Run(c.name, func(b *testing.B) {
			a := newScene(c.waiting, c.grow).arbiter(b.Context())
			if _, err := a.evaluate(b.Context(), now); err != nil {
				b.Fatal(err)
			}
			at, began := now, cpuTime(b)
			b.ReportAllocs()
			for b.Loop() {
				at = at.Add(time.Second)
				if _, err := a.evaluate(b.Context(), at); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkEvaluateRules is what one evaluation costs if each of 2,000 gangs that wait has a rule of its own about other pods, or
// all 12,000 jobs take the same port of their nodes.
func BenchmarkEvaluateRules(b *testing.B) {
	for name, ruled := range map[string]func(*corev1.PodSpec, string, bool){
		"own": func(pod *corev1.PodSpec, job string, waits bool) {
			if waits {
				pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
						TopologyKey: corev1.LabelHostname, NamespaceSelector: &metav1.LabelSelector{},
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"not-beside": job}},
					}},
				}}
			}
		},
		"ports": func(pod *corev1.PodSpec, _ string, _ bool) {
			pod.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 29500, ContainerPort: 29500}}
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := newScene(2000, false)
			for _, o := range s.lists[reflect.TypeOf(&v1beta1.ElasticTrainingJobList{})] {
				job, _ := o.(*v1beta1.ElasticTrainingJob)
				ruled(&job.Spec.Template.Spec, job.Name, job.Status.RunningSince == nil)
			}
			for _, o := range s.lists[reflect.TypeOf(&corev1.PodList{})] {
				pod, _ := o.(*corev1.Pod)
				ruled(&pod.Spec, pod.Labels[v1beta1.LabelJob], pod.Spec.NodeName == "")
			}
			a, at := s.arbiter(b.Context()), now
			for b.Loop() {
				at = at.Add(time.Second)
				if _, err := a.evaluate(b.Context(), at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// cpuTime is what the process has used of processors, the collector of garbage included.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
